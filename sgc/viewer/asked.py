"""The requests and tool calls of runs, as a page shows them: from a log, or from a run's result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sgc.errors import RunLogError
from sgc.runtime.executor.interface.backend import Generated, Scored, Usage
from sgc.runtime.executor.interface.log import Json
from sgc.runtime.executor.log.log_timeline import REQUESTS, times_in
from sgc.runtime.executor.log.records import (
    MAX_PROMPT_CHARS,
    instance_of,
    sampling_parts,
    usage_in,
)
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.record import Request, RunResult, ToolCall

KINDS = (*REQUESTS, "tool")  # records with requests or calls to show


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. Times are in seconds since a moment that is the same for all requests.

    path: of the stream; line: `file:line` of the program; text: what it added to the prompt, None
    where that is not known; choices: of a `select`; is_cut: the prompt lacks its beginning.
    """

    row: str
    path: str
    kind: str
    name: str
    line: str
    prompt: str
    text: str | None
    start_s: float
    end_s: float
    usage: Usage
    finish: str = ""
    choices: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_cut: bool = False

    @property
    def is_spent(self) -> bool:
        """Whether tokens were spent on this request, and not on an equal one."""
        return not (self.usage.from_cache or self.usage.from_shared)


@dataclass(frozen=True, slots=True)
class Called:
    """One call of a tool; `arguments` and `value` are JSON or texts."""

    row: str
    path: str
    name: str
    line: str
    start_s: float
    end_s: float
    arguments: Any
    value: Any
    error: str


def in_log(log: RunLog) -> Iterator[Asked | Called]:
    """The requests and calls of a log, in its order; raises RunLogError for a malformed record."""
    try:
        for record in log.records():
            if record["kind"] in REQUESTS:
                yield _logged_request(record)
            elif record["kind"] == "tool":
                yield _logged_call(record)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise RunLogError(f"{log.path} has a malformed record: {error!r}") from error


def _logged_request(record: Json) -> Asked:
    kind, reply = record["kind"], record["reply"]
    choices = tuple(map(str, record.get("choices", ())))
    text = str(reply["text"]) if kind == "generate" else "" if kind == "commit" else None
    if kind == "score" and reply.get("chosen") is not None:
        text = dict(enumerate(choices))[reply["chosen"]]
    prompt = str(record["prompt"])
    return Asked(
        str(record["row"]), str(record["path"]), kind, str(record["name"]), str(record["line"]),
        prompt, text, *times_in(record), usage_in(record),
        str(reply.get("finish_reason", "")), choices, instance_of(record.get("sampling", {}), dict),
        len(prompt) >= MAX_PROMPT_CHARS,
    )  # fmt: skip


def _logged_call(record: Json) -> Called:
    return Called(
        str(record["row"]), str(record.get("path", "")), str(record["name"]), str(record["line"]),
        *times_in(record), record.get("args"), record.get("value"), str(record.get("error", "")),
    )  # fmt: skip


def in_result(row: str, result: RunResult) -> Iterator[Asked | Called]:
    """The requests and calls of a run that has ended."""
    for request in result.requests:
        yield _request(row, request)
    for call in result.tool_calls:
        yield _call(row, call)


def _request(row: str, request: Request) -> Asked:
    reply = request.reply
    text: str | None = ""
    if isinstance(reply, Generated):
        text = reply.text
    elif isinstance(reply, Scored):
        text = request.value if isinstance(request.value, str) else None
    return Asked(
        row, request.path, request.kind, request.name, str(request.loc or ""),
        "".join(segment.text for segment in request.prompt), text, request.start_s, request.end_s,
        request.usage, reply.finish_reason.value if isinstance(reply, Generated) else "",
        request.choices, sampling_parts(request.sampling) if request.sampling else {},
    )  # fmt: skip


def _call(row: str, call: ToolCall) -> Called:
    return Called(
        row, call.path, call.name, str(call.loc or ""), call.start_s, call.end_s,
        call.arguments, None, call.error,
    )  # fmt: skip


Span = tuple[int, int]


def generated_spans(requests: Iterable[Asked]) -> list[tuple[Asked, tuple[Span, ...]]]:
    """The requests of one row by start, each with the parts of its prompt that models wrote.

    A part is known if the prompt continues the prompt and reply of an earlier request. A choice is
    known from a later prompt that continues with it.
    """
    found: list[tuple[Asked, tuple[Span, ...]]] = []
    ends: list[tuple[str, tuple[Span, ...]]] = []  # texts that later prompts may continue
    for asked in sorted(requests, key=lambda each: each.start_s):
        spans = _spans_of(asked.prompt, ends)
        found.append((asked, spans))
        if asked.kind == "commit":
            continue
        for text in asked.choices if asked.text is None else (asked.text,):
            start = len(asked.prompt)
            ends.append((asked.prompt + text, (*spans, (start, start + len(text)))))
        del ends[:-_MAX_ENDS]
    after = [each.prompt for each, _ in found]
    return [
        (_chosen(each, after[index + 1 : index + 1 + _MAX_ENDS]), spans)
        for index, (each, spans) in enumerate(found)
    ]


_MAX_ENDS = 256  # how many requests before and after one are looked at


def _spans_of(prompt: str, ends: list[tuple[str, tuple[Span, ...]]]) -> tuple[Span, ...]:
    longest = 0
    spans: tuple[Span, ...] = ()
    for text, of_text in ends:
        if longest < len(text) <= len(prompt) and prompt.startswith(text):
            longest, spans = len(text), of_text
    return spans


def _chosen(asked: Asked, after: Sequence[str]) -> Asked:
    """after: the prompts of the next requests."""
    if asked.text is not None:
        return asked
    fitting = [
        choice
        for choice in asked.choices
        if any(prompt.startswith(asked.prompt + choice) for prompt in after)
    ]
    longest = max(fitting, key=len, default=None)
    is_sure = longest is not None and all(longest.startswith(each) for each in fitting)
    return replace(asked, text=longest) if is_sure else asked
