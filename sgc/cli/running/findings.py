"""What `sgc doctor` finds, line by line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. advice: a command or a step that would help; "" if there is nothing to do."""

    what: str
    found: str
    advice: str = ""
