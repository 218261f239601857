"""What a job has done so far."""

from __future__ import annotations

from dataclasses import dataclass

from sgc.errors import counted
from sgc.runs.jobs.records import cost_of
from sgc.runtime.executor.run.record import RunResult

_SUMMED = (
    "requests", "shared_requests", "cached_requests", "logged_requests",
    "prompt_tokens", "cached_tokens", "completion_tokens",
)  # fmt: skip


@dataclass(slots=True)
class Tally:
    """n_rows: of the job; n_before, n_failed_before: rows done by earlier runs; the other numbers
    are of this run."""

    n_rows: int = 0
    n_before: int = 0
    n_failed_before: int = 0
    n_ended: int = 0
    n_failed: int = 0
    requests: int = 0
    shared_requests: int = 0
    cached_requests: int = 0
    logged_requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    first_error: str = ""

    @property
    def n_done(self) -> int:
        return self.n_before + self.n_ended

    @property
    def n_all_failed(self) -> int:
        return self.n_failed_before + self.n_failed

    def add(self, key: str, outcome: RunResult | BaseException) -> None:
        self.n_ended += 1
        if isinstance(outcome, BaseException):
            self.n_failed += 1
            self.first_error = self.first_error or f"row {key}: {outcome}".split("\n")[0]
            return
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(outcome.stats, name))
        if (cost := cost_of(outcome)) is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost

    def summary(self, wall_s: float) -> str:
        failed = f", {self.n_all_failed} failed" if self.n_all_failed else ""
        failed += f" ({self.first_error})" if self.first_error else ""
        hit = self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0
        cost = "" if self.cost_usd is None else f"${self.cost_usd:.4g}, "
        others = f" ({self.logged_requests} from the log)" if self.logged_requests else ""
        others += f" ({self.shared_requests} more shared)" if self.shared_requests else ""
        others += f" ({self.cached_requests} from the cache)" if self.cached_requests else ""
        before = f" ({self.n_before} before)" if self.n_before else ""
        return (
            f"{counted(self.n_done, 'row')}{before}{failed}, "
            f"{counted(self.requests, 'request')}{others}, "
            f"{self.prompt_tokens} prompt tokens ({self.cached_tokens} cached, {hit:.1%} hit), "
            f"{self.completion_tokens} generated, {cost}{wall_s:.2f} s"
        )
