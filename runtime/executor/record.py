"""What a run asked and what came back, and what it amounts to.

Records are facts for statistics, traces and tests; nothing is executed from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sgc.ir.graph import Loc
from sgc.runtime.executor.backend import Generated, Prompt, Sampling, Scored, Usage


@dataclass(frozen=True, slots=True)
class Request:
    """One request and its reply. Times in seconds of the monotonic clock.

    kind: generate, score or commit; path and ordinal say which draw of which stream.
    """

    kind: str
    name: str
    path: str
    ordinal: int
    prompt: Prompt
    loc: Loc | None
    start_s: float
    end_s: float
    usage: Usage
    sampling: Sampling | None = None
    choices: tuple[str, ...] = ()
    reply: Generated | Scored | None = None

    def identity(self) -> tuple[object, ...]:
        """What must be equal for two runs to have asked the same."""
        return (self.path, self.ordinal, self.kind, self.prompt, self.sampling, self.choices)


@dataclass(frozen=True, slots=True)
class Stats:
    """Sums over a run's requests (DESIGN.md, "Counts"); commits are requests too."""

    requests: int
    commits: int
    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    completion_tokens: int
    wall_s: float

    @staticmethod
    def of(requests: tuple[Request, ...], wall_s: float) -> Stats:
        return Stats(
            requests=len(requests),
            commits=sum(request.kind == "commit" for request in requests),
            prompt_tokens=sum(request.usage.prompt_tokens for request in requests),
            cached_tokens=sum(request.usage.cached_tokens for request in requests),
            computed_tokens=sum(request.usage.computed_tokens for request in requests),
            completion_tokens=sum(request.usage.completion_tokens for request in requests),
            wall_s=wall_s,
        )


@dataclass(frozen=True, slots=True)
class StreamResult:
    """A finished stream: its text, variables, and pieces as (kind, text) for display."""

    name: str
    path: str
    text: str
    variables: Mapping[str, Any]
    pieces: tuple[tuple[str, str], ...]
    messages: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run gave. streams: in order of creation, the main one first."""

    program: str
    streams: tuple[StreamResult, ...]
    ret_value: Any
    stats: Stats
    seed: int
    requests: tuple[Request, ...] = field(repr=False, default=())

    @property
    def main(self) -> StreamResult:
        return self.streams[0]

    def text(self) -> str:
        return self.main.text

    @property
    def variables(self) -> Mapping[str, Any]:
        return self.main.variables

    def __getitem__(self, name: str) -> Any:
        from sgc.errors import UnknownVariable

        if name not in self.main.variables:
            known = ", ".join(self.main.variables) or "none"
            raise UnknownVariable(f"no variable {name!r} was set; there are: {known}")
        return self.main.variables[name]

    def messages(self) -> list[dict[str, str]]:
        return [dict(message) for message in self.main.messages]
