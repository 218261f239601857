"""What a file of tests holds: cases, and what is expected of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Assertion:
    """type: without `not-`; of: the variable to check, "" for the output; place: its line.

    threshold: of a number, or the least score; weight: in the score of its case.
    """

    type: str
    place: str
    value: Any = None
    is_negated: bool = False
    threshold: float | None = None
    weight: float = 1.0
    of: str = ""

    @property
    def name(self) -> str:
        return f"not-{self.type}" if self.is_negated else self.type


@dataclass(frozen=True, slots=True)
class Case:
    """One row and its assertions. threshold: the least score to pass; None: all must hold."""

    name: str
    file: str
    place: str
    line: int
    vars: Mapping[str, Any]
    asserts: tuple[Assertion, ...]
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """A file of tests. program: as the file names it, or None; has_texts: its values are cells of a
    CSV file, which are parsed by the parameters' types."""

    path: Path
    program: str | None
    cases: tuple[Case, ...]
    has_texts: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an assertion holds. score: from 0 to 1; reason: why not."""

    assertion: Assertion
    passed: bool
    reason: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a case. error: why its run failed; numbers: as the run counted them."""

    case: Case
    output: str = ""
    verdicts: tuple[Verdict, ...] = ()
    error: str = ""
    is_not_recorded: bool = False
    seconds: float = 0.0
    tokens: int = 0
    requests: int = 0
    cost_usd: float | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def score(self) -> float:
        weights = sum(each.assertion.weight for each in self.verdicts)
        scored = sum(each.assertion.weight * each.score for each in self.verdicts)
        return scored / weights if weights else 1.0

    @property
    def passed(self) -> bool:
        if self.error:
            return False
        if self.case.threshold is not None:
            return self.score >= self.case.threshold
        return all(each.passed for each in self.verdicts)

    @property
    def status(self) -> str:
        return "error" if self.error else "passed" if self.passed else "failed"
