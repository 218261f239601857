"""Code movement for prefix sharing: constants go in front of arguments where that says the same.

Changes prompts. `streams.py` reads a program, `pieces.py` cuts its text, `rules.py` proposes,
`check.py` judges every proposal, `rebuild.py` carries it out; `propose.py` puts them together.
"""

from sgc.passes.changing.movement.propose import (
    Draft,
    Outcome,
    Proposal,
    Proposer,
    Rejected,
    by_rules,
    move,
)
from sgc.passes.changing.movement.report import lines, report

__all__ = [
    "Draft",
    "Outcome",
    "Proposal",
    "Proposer",
    "Rejected",
    "by_rules",
    "lines",
    "move",
    "report",
]
