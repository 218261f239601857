"""The requests of a run, their replies, and their sums.

Records are for statistics, traces and tests; nothing is executed from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from sgc.errors import UnknownVariable
from sgc.ir.graph import Loc
from sgc.runtime.executor.interface.backend import (
    FinishReason,
    Generated,
    Logprob,
    Prompt,
    Sampling,
    Scored,
    Usage,
    sum_costs,
)
from sgc.runtime.executor.interface.choice_methods import select_meta


@dataclass(frozen=True, slots=True)
class Request:
    """One request and its reply. Times in seconds of the monotonic clock.

    kind: generate, score, commit or prefetch; path: of the stream; ordinal: of the draw in the
    stream. is_used: false for a reply that did not meet its constraint; the next try is a request
    of its own.
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
    method: str = ""
    value: Any = None  # a text, or a list of them where several were drawn
    meta: Mapping[str, Any] | None = None  # of a choice by a user's method
    is_used: bool = True

    def identity(self) -> tuple[object, ...]:
        """Returns the fields that are equal if two runs make equal requests."""
        return (self.path, self.ordinal, self.kind, self.prompt, self.sampling, self.choices)

    def meta_info(self) -> dict[str, Any] | None:
        """Returns the meta info of `get_meta_info`, in SGLang's shape; None for a commit."""
        if isinstance(self.reply, Generated):
            return generated_meta(self.reply, self.sampling)
        if self.meta is not None:
            return dict(self.meta)
        if isinstance(self.reply, Scored) and self.reply.meta is not None:
            return dict(self.reply.meta)
        if isinstance(self.reply, Scored) and self.reply.chosen is not None:
            return {"chosen_by": self.reply.how}
        if isinstance(self.reply, Scored):
            return select_meta(self.method, self.reply.choices)
        return None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool. ordinal: among the calls of its run, in the program's order, or of the
    mapped call at `path` that makes it; arguments: as JSON, by position and by name; error: the
    failure that `on_error` replaced, if any; is_early: it began before it was known that the
    program would make it.
    """

    name: str
    ordinal: int
    effect: str
    arguments: str
    loc: Loc | None
    start_s: float
    end_s: float
    error: str = ""
    is_logged: bool = False
    path: str = ""
    is_early: bool = False

    def identity(self) -> tuple[object, ...]:
        """Returns the fields that are equal if two runs make equal tool calls."""
        return (self.path, self.ordinal, self.name, self.effect, self.arguments)


def generated_meta(reply: Generated, sampling: Sampling | None = None) -> dict[str, Any]:
    """Returns a generation's meta info: `finish_reason`, token counts, log-probabilities if any."""
    if reply.tells_all:
        return dict(reply.extra)
    finish: dict[str, Any] = {"type": reply.finish_reason.value}
    if reply.matched is not None:
        finish["matched"] = reply.matched
    elif reply.finish_reason is FinishReason.LENGTH and sampling is not None:
        finish["length"] = sampling.max_tokens
    found: dict[str, Any] = {
        "finish_reason": finish,
        "prompt_tokens": reply.usage.prompt_tokens,
        "completion_tokens": reply.usage.completion_tokens,
        "cached_tokens": reply.usage.cached_tokens,
    }
    for name in (
        "forced_tokens",
        "joined_tokens",
        "cache_written_tokens",
        "reasoning_tokens",
        "cost_usd",
    ):
        if getattr(reply.usage, name):
            found[name] = getattr(reply.usage, name)
    if reply.logprobs is not None:
        # As on SGLang's servers, the first token of the range has no log-probability.
        found["input_token_logprobs"] = _rows(reply.logprobs.input)
        for row in found["input_token_logprobs"][:1]:
            row[0] = None
        found["output_token_logprobs"] = _rows(reply.logprobs.output)
        tops = reply.logprobs.input_top
        found["input_top_logprobs"] = _top_rows([None, *tops[1:]] if tops else tops)
        found["output_top_logprobs"] = _top_rows(reply.logprobs.output_top)
    return {**found, **reply.extra}


def _rows(logprobs: Sequence[Logprob]) -> list[list[Any]]:
    return [list(row) for row in logprobs]


def _top_rows(logprobs: Sequence[Sequence[Logprob] | None]) -> list[list[list[Any]] | None]:
    return [None if rows is None else _rows(rows) for rows in logprobs]


def meta_of(requests: Iterable[Request], path: str, name: str) -> Any:
    """Returns the meta info of the last draw of a name in a stream: a list where it drew several
    texts.
    """
    found = [r for r in requests if r.name == name and r.path == path and r.is_used]
    last = [r.meta_info() for r in found if r.ordinal == found[-1].ordinal]
    return None if not last else last[0] if len(last) == 1 else last


# The fields of `Usage` whose sums are fields of `Stats`.
_SUMMED = (
    "prompt_tokens", "cached_tokens", "computed_tokens", "completion_tokens", "queue_s",
    "prefill_s", "decode_s", "forced_tokens", "joined_tokens", "cache_written_tokens",
    "reasoning_tokens",
)  # fmt: skip
_summed = attrgetter(*_SUMMED)


@dataclass(frozen=True, slots=True)
class Stats:
    """Sums over a run's requests (DESIGN.md, "Counts"); commits are requests too.

    requests: without answered_ahead, the requests that an earlier reply had answered, and without
    shared_requests, which share the reply of an equal request. cached_requests, logged_requests:
    how many of `requests` had replies from the result cache, or from the run's log. Tokens, times
    and cost are not counted for shared and cached requests, nor the cost for logged ones. queue_s,
    prefill_s, decode_s: the engine's times, of requests that may overlap. forced_tokens: those of
    completion_tokens that a constraint forced without a step of their own. joined_tokens: those of
    prompt_tokens that were encoded side by side, an approximation. cache_written_tokens,
    reasoning_tokens, cost_usd: of providers, as in `Usage`. prefetches: those that have ended;
    prefetched_tokens: the tokens that they computed, which are in no other sum.
    """

    requests: int
    commits: int
    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    completion_tokens: int
    wall_s: float
    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    forced_tokens: int = 0
    joined_tokens: int = 0
    logged_requests: int = 0
    cache_written_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    answered_ahead: int = 0
    shared_requests: int = 0
    cached_requests: int = 0
    prefetches: int = 0
    prefetched_tokens: int = 0
    failed_prefetches: int = 0

    @staticmethod
    def of(
        requests: tuple[Request, ...],
        wall_s: float,
        prefetches: Sequence[Request] = (),
        failed_prefetches: int = 0,
    ) -> Stats:
        shared = [request for request in requests if request.usage.from_shared]
        own = [r for r in requests if not (r.usage.from_shared or r.usage.from_cache)]
        n_cached = len(requests) - len(shared) - len(own)
        n_ahead = sum([request.usage.from_ahead for request in own])
        columns = zip(*[_summed(request.usage) for request in own], strict=True)
        sums = (
            dict(zip(_SUMMED, map(sum, columns), strict=True)) if own else dict.fromkeys(_SUMMED, 0)
        )
        return Stats(
            requests=n_cached + len(own) - n_ahead,
            answered_ahead=n_ahead,
            shared_requests=len(shared),
            cached_requests=n_cached,
            logged_requests=sum([request.usage.from_log for request in own]),
            prefetches=len(prefetches),
            prefetched_tokens=sum(each.usage.computed_tokens for each in prefetches),
            failed_prefetches=failed_prefetches,
            commits=sum([request.kind == "commit" for request in own]),
            wall_s=wall_s,
            cost_usd=sum_costs(r.usage.cost_usd for r in own if not r.usage.from_log),
            **sums,
        )

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens that were cached."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


@dataclass(frozen=True, slots=True)
class StreamResult:
    """A finished stream: its text, variables, and pieces as (kind, text) for display."""

    name: str
    path: str
    text: str
    variables: Mapping[str, Any]
    pieces: tuple[tuple[str, str], ...]
    messages: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    streams: in order of creation, the main one first; empty if the program was compiled to return
    only its value. prefetches: prompts computed ahead of their use, which are hints and not
    requests. early_calls: how many tools were called before it was known whether the program calls
    them; those that it did call are among `tool_calls`.
    """

    program: str
    streams: tuple[StreamResult, ...]
    ret_value: Any
    stats: Stats
    seed: int
    requests: tuple[Request, ...] = field(repr=False, default=())
    tool_calls: tuple[ToolCall, ...] = field(repr=False, default=())
    prefetches: tuple[Request, ...] = field(repr=False, default=())
    early_calls: int = 0

    @property
    def main(self) -> StreamResult:
        nothing = StreamResult(self.program, self.program, "", {}, ())
        return self.streams[0] if self.streams else nothing

    def text(self) -> str:
        return self.main.text

    @property
    def variables(self) -> Mapping[str, Any]:
        return self.main.variables

    def __getitem__(self, name: str) -> Any:
        if name not in self.main.variables:
            known = ", ".join(self.main.variables) or "none"
            raise UnknownVariable(f"no variable {name!r} was set; there are: {known}")
        return self.main.variables[name]

    def messages(self) -> list[dict[str, Any]]:
        return [dict(message) for message in self.main.messages]

    def get_meta_info(self, name: str) -> Any:
        """Returns how a variable was generated; None if it was not."""
        return meta_of(self.requests, self.main.path, name)
