"""The corpus: programs as people write them, and what becomes of each (`outcomes.txt`).

.venv/bin/pytest -m slow tests/corpus     all of them; a better outcome is blessed by
.venv/bin/python -P tests/corpus/outcomes.py --seeds 4 --bless
"""

from __future__ import annotations

import pytest
from corpus.outcomes import CORPUS, KINDS, measured, programs, recorded

# Some that compile soon.
QUICK = (
    "agents/refund_approval", "chat/mock_interview", "judges/reference_grading",
    "rag/map_rerank_qa", "search/self_ask", "tools_and_data/text_to_sql",
)  # fmt: skip


def test_every_program_has_a_line() -> None:
    assert list(recorded()) == [f"{path.parent.name}/{path.stem}" for path in programs()]


def test_none_is_compiled_wrong() -> None:
    assert "wrong" not in recorded().values()


@pytest.mark.sweep
@pytest.mark.parametrize("name", QUICK)
def test_what_compiles_goes_on_to(name: str) -> None:
    check(name, n_seeds=1)


@pytest.mark.slow
@pytest.mark.full_check
@pytest.mark.full_budget
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", recorded())
def test_all_outcomes(name: str) -> None:
    check(name, n_seeds=8)


def check(name: str, n_seeds: int) -> None:
    found, wanted = measured(CORPUS / f"{name}.py", n_seeds), recorded()[name]
    assert KINDS.index(found.kind) <= KINDS.index(wanted), f"{name}: {found}"
