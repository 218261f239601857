"""Compares a compiled run with an interpreted one: requests, texts, variables and tool calls."""

from __future__ import annotations

import logging
import re
import sys
from collections import Counter, defaultdict
from itertools import zip_longest
from typing import Any

from sgc.core.session import Stream
from sgc.core.stops import INTERPRET
from sgc.errors import (
    DeoptReached,
    ProgramError,
    ProgramRaised,
    SgcError,
    TraceError,
    UnknownVariable,
    UsageError,
)
from sgc.lang.definition import Definition
from sgc.runtime.executor.interface.tools import Shown
from sgc.runtime.executor.run.record import Request, RunResult


def compare_asked(
    function: Definition, error: SgcError, compiled: Counter[str], interpreted: Counter[str]
) -> None:
    if more := compiled - interpreted:
        raise TraceError(
            f"the trace of {function.name} is wrong: until it reaches a bound ({error.message}) it "
            f"asks for {more.total()} replies that the interpreted program does not",
            where=error.where,
            hint="a value known only at run time was used in a way that tracing cannot see; "
            "run with --interpret",
        )


def compare(
    function: Definition, compiled: RunResult | SgcError, interpreted: RunResult | SgcError
) -> None:
    if isinstance(compiled, DeoptReached):
        return
    if isinstance(compiled, SgcError) or isinstance(interpreted, SgcError):
        if _failed(compiled) == _failed(interpreted):
            return
        if isinstance(interpreted, ProgramRaised):
            raise TraceError(
                f"interpreted, {function.name} raised {interpreted.message}; its trace does not",
                where=interpreted.where,
                hint="the program looks into a value that tracing cannot see",
            ) from interpreted.__cause__
        is_raised = isinstance(compiled, ProgramRaised) or isinstance(interpreted, SgcError)
        if isinstance(compiled, (ProgramError, UsageError)) and not is_raised:
            error = TraceError(
                f"compiled, {function.name} would fail: {compiled.message}",
                where=compiled.where,
                hint=compiled.hint or INTERPRET,
            )
            error.fails_at = compiled.where
            raise error from compiled
        failed = compiled if isinstance(compiled, SgcError) else interpreted
        assert isinstance(failed, SgcError)
        raise _differs(function, "one of the two runs fails", str(failed)) from failed
    left, right = _asked(compiled), _asked(interpreted)
    for key in sorted(left.keys() | right.keys()):
        ours, theirs = left.get(key), right.get(key)
        if ours is None or theirs is None or ours.identity() != theirs.identity():
            found = ours or theirs
            assert found is not None
            raise _mismatch(function, found, ours, theirs)
    _compare_calls(function, compiled, interpreted)
    for a, b in zip(compiled.streams, interpreted.streams, strict=False):
        if (a.text, dict(a.variables)) != (b.text, dict(b.variables)):
            raise _differs(function, f"stream {a.path}", _first_difference(a, b))
    if len(compiled.streams) != len(interpreted.streams):
        raise _differs(function, "the number of streams", "")
    if _plain(compiled.ret_value) != _plain(interpreted.ret_value):
        raise _differs(
            function, "the value returned", f"{compiled.ret_value!r}, {interpreted.ret_value!r}"
        )


def _compare_calls(function: Definition, compiled: RunResult, interpreted: RunResult) -> None:
    for ours, theirs in zip_longest(compiled.tool_calls, interpreted.tool_calls):
        if ours is None or theirs is None or ours.identity() != theirs.identity():
            shown = [
                f"{call.name}({call.arguments})" if call else "none" for call in (ours, theirs)
            ]
            raise _differs(function, "a tool's call", ", ".join(shown))


def compare_shown(
    function: Definition, compiled: list[Shown], interpreted: list[Shown], is_in_order: bool
) -> None:
    """Compares what two runs show. is_in_order: else calls of a map show it in any order."""
    ours, theirs = _told(compiled), _told(interpreted)
    for to in sorted(ours.keys() | theirs.keys()):
        left, right = ours[to], theirs[to]
        if left != right and (is_in_order or sorted(left) != sorted(right)):
            shown = ", ".join(repr("".join(each))[:200] for each in (left, right))
            raise _differs(function, f"what is shown ({to})", shown)


def _told(shown: list[Shown]) -> dict[str, list[str]]:
    """What is shown, by where to: lines of the log and of what is printed, and warnings. Python
    prints a line in parts, and leaves out lines of the log below its level."""
    found = defaultdict[str, list[str]](list)
    for each in shown:
        if each.to in ("stdout", "stderr"):
            found[each.to].append(each.text)
        elif each.to == "warnings" or logging.getLogger(each.name or None).isEnabledFor(each.level):
            found[each.to].append(f"{each.name or 'root'} {each.level} {each.text}\n")
    for to in ("stdout", "stderr"):
        found[to] = "".join(found[to]).splitlines(keepends=True)
    return found


def compare_classes(function: Definition, compiled: Any, interpreted: Any) -> None:
    """Compares the classes of what two runs return, and of what is in it. A graph has Python's own
    classes of data alone. The program's stream may be returned: its text is a program's result."""
    if isinstance(interpreted, Stream):
        return
    kinds = type(compiled), type(interpreted)
    if kinds[0] is not kinds[1]:
        ours, theirs = (kind.__name__ for kind in kinds)
        raise TraceError(
            f"{function.name} returns a {theirs}, which is a {ours} when it is compiled",
            where=str(function.loc),
            hint=f"return a {ours}; or " + INTERPRET,
        )
    if isinstance(compiled, (list, tuple)):
        for ours, theirs in zip(compiled, interpreted, strict=True):
            compare_classes(function, ours, theirs)
    elif isinstance(compiled, dict):
        compare_classes(function, [*compiled, *compiled.values()],
                        [*interpreted, *interpreted.values()])  # fmt: skip


def _failed(outcome: RunResult | SgcError) -> str:
    """The kind of error that a run ended with, and its message if the program raised it."""
    if isinstance(outcome, ProgramRaised):
        kind, _, message = outcome.message.partition(": ")
        return kind if kind == UnknownVariable.__name__ else f"{kind}: {without_module(message)}"
    return type(outcome).__name__ if isinstance(outcome, SgcError) else ""


_OF_CALL = re.compile(r"([\w.]+)(\(\) (?:argument after|got multiple values) .*)", re.DOTALL)


def without_module(message: str) -> str:
    """Python's message for a call with a star, without the function's module: code has no module,
    and the program's may be `__main__`."""
    found = _OF_CALL.fullmatch(message)
    name, rest = found.groups() if found is not None else ("", "")
    parts = name.split(".")
    for n in range(len(parts) - 1, 0, -1):
        if ".".join(parts[:n]) in sys.modules:
            return ".".join(parts[n:]) + rest
    return message


def _asked(result: RunResult) -> dict[tuple[str, int, str], Request]:
    return {(r.path, r.ordinal, r.kind): r for r in result.requests}


def _mismatch(
    function: Definition, found: Request, ours: Request | None, theirs: Request | None
) -> TraceError:
    if ours is None or theirs is None:
        who = "interpreted" if ours is None else "compiled"
        what = f"only the {who} program asks for {found.name or found.kind!r}"
    else:
        what = f"compiled and interpreted, {found.name or found.kind!r} is asked differently"
    return TraceError(
        f"the trace of {function.name} is wrong: {what}",
        where=str(found.loc or ""),
        hint="a value known only at run time was used in a way that tracing cannot see, such as "
        "`x in text`, text.replace(x, …) or f-string == text, or the program depends on time or "
        "randomness; run with --interpret",
    )


def _differs(function: Definition, what: str, detail: str) -> TraceError:
    return TraceError(
        f"the trace of {function.name} is wrong: {what} differs when interpreted"
        + (f": {detail}" if detail else ""),
        hint="a value known only at run time was used in a way that tracing cannot see; "
        "run with --interpret",
    )


def _first_difference(a: Any, b: Any) -> str:
    for name in a.variables:
        if a.variables[name] != b.variables.get(name):
            return f"variable {name!r}: {a.variables[name]!r}, {b.variables.get(name)!r}"
    return f"text {a.text!r}, {b.text!r}"


def _plain(value: Any) -> Any:
    made = _comparable(value)
    return list(made) if isinstance(made, tuple) else made


def _comparable(value: Any) -> Any:
    """A value in which what is no number equals itself."""
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(map(_comparable, value))
    if isinstance(value, dict):
        return {key: _comparable(each) for key, each in value.items()}
    return _NAN if isinstance(value, float) and value != value else value


_NAN = object()
