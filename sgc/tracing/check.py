"""The trace check: a trace is validated against the interpreter, not trusted.

The interpreter and the graph run on the same scripted replies, chosen to be nasty. Their
requests, texts and variables must be equal, else compiling fails and names the first line
that differs. What it cannot see: code that treats all the texts tried here alike.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from sgc.calls import finished, start_eager
from sgc.errors import (
    DeoptReached,
    ProgramError,
    ProgramRaised,
    SgcError,
    TraceError,
    UnknownVariable,
)
from sgc.ir.graph import Graph
from sgc.ir.types import Kind, Type
from sgc.runtime.executor.backend import Prompt, Sampling
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.loop import refuse_own_thread, shared
from sgc.runtime.executor.options import RunOptions
from sgc.runtime.executor.record import Request, RunResult
from sgc.runtime.executor.scripted import ScriptedBackend
from sgc.session import innermost_user_line, own_texts, replay_overlays
from sgc.tracing.overlay import Overlays
from sgc.tracing.scripted_replies import obeying
from sgc.tracing.scripted_tools import ScriptedTools
from sgc.tracing.tracer import copied

if TYPE_CHECKING:
    from sgc.functions import Function

NASTY = (
    "plain", " leading", "trailing ", "two\nlines\n", "", "MiXeD Case", "42", '"quoted" \'too\'',
    "naïve — 日本語 🙂", "a, b, c", "{brace} %s \\n", "yes", "No.", "\t tab",
)  # fmt: skip
IMAGES = (b"\x89PNG\r\n\x1a\n first", b"\xff\xd8\xff second")
MAX_ROUNDS = 64
# What one check may cost, in rounds times the program's nodes: a count and not a time, so
# that a slow machine does not check less.
MAX_WORK = 40_000
MIN_ROUNDS = 4
MAX_ASKED = 300  # generations of one run: a loop may go on until a reply that never comes


def check_trace(function: Function, graph: Graph, bound: Mapping[str, Any]) -> None:
    """Raises TraceError at the first line where graph and interpreter differ."""
    refuse_own_thread(shared.loop)
    own = _own_texts(function) or NASTY
    n_rounds = min(2 * max(len(NASTY), len(own)), MAX_ROUNDS)  # they take turns
    n_rounds = min(n_rounds, max(MIN_ROUNDS, MAX_WORK // max(graph.n_nodes, 1)))
    for number in range(n_rounds):
        # Neighbouring parameters get neighbouring texts: words of one constant, say.
        texts = NASTY if number % 2 else own
        arguments = {
            param.value.name: _argument(param.value.type, index + number // 2, texts)
            for index, param in enumerate(graph.params)
        }
        compiled = _attempt(_run_compiled, graph, texts, arguments, number)
        interpreted = _attempt(_run_interpreted, function, texts, bound, arguments, number)
        _compare(function, compiled, interpreted)


def _attempt(run: Callable[..., RunResult], *arguments: Any) -> RunResult | SgcError:
    """A run's result or its error: failing alike (on an empty choice, say) is agreement."""
    try:
        return run(*arguments)
    except TraceError:
        raise
    except SgcError as error:
        return error


def _own_texts(function: Function) -> Sequence[str]:
    """The program's own texts and their words: what its tests would compare with."""
    found: dict[str, None] = {}
    for text in own_texts(function.python):
        found.update(dict.fromkeys([text, *re.findall(r"\w+", text)]))
    return tuple(found)


def _argument(type_: Type, number: int, texts: Sequence[str]) -> Any:
    if type_.kind is Kind.INT:
        return (3, 1, 17)[number % 3]
    if type_.kind is Kind.FLOAT:
        return (0.5, 0.0, 1.0)[number % 3]
    if type_.kind is Kind.BOOL:
        return number % 2 == 0
    if type_.kind is Kind.MEDIA:
        return IMAGES[number % len(IMAGES)]
    if type_.kind is Kind.LIST:
        assert type_.item is not None
        return [_argument(type_.item, number + i, texts) for i in range(number % 4)]
    return texts[number % len(texts)]


def _backend(number: int, texts: Sequence[str]) -> ScriptedBackend:
    """Replies that depend on the end of the prompt, so that a request costs the same anywhere."""

    asked = itertools.count(1)

    def reply(prompt: Prompt, sampling: Sampling) -> str:
        if next(asked) > MAX_ASKED:
            raise ProgramError(f"the check ends a run after {MAX_ASKED} generations")
        return obeying(sampling, _index(f"{number}/{_end(prompt)}/{sampling.seed}"), texts)

    def prefer(prompt: Prompt, choices: tuple[str, ...]) -> int:
        return _index(f"{number}/{_end(prompt)}/{choices!r}") % len(choices)

    return ScriptedBackend(reply, prefer)


def _end(prompt: Prompt) -> str:
    return "".join(segment.text[-200:] for segment in prompt[-3:]) + f"/{len(prompt)}"


def _index(key: str) -> int:
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _run_compiled(
    graph: Graph, texts: Sequence[str], arguments: Mapping[str, Any], number: int
) -> RunResult:
    backend = _backend(number, texts)
    return shared.run(run_graph(graph, backend, arguments, _options(number, texts)))


def _options(number: int, texts: Sequence[str]) -> RunOptions:
    """Every tool is scripted: a check calls none of the program's own. Joins do not depend on
    time, which is another for each of the two runs.
    """
    tools = ScriptedTools(number, texts)
    return RunOptions(seed=number, allow_tools=tools, ordered_joins=True)


def _run_interpreted(
    function: Function,
    texts: Sequence[str],
    bound: Mapping[str, Any],
    arguments: Mapping[str, Any],
    number: int,
) -> RunResult:
    given = function.signature.bind((), {**bound, **arguments})
    backend, options = _backend(number, texts), _options(number, texts)
    given = {name: copied(value) for name, value in given.items()}
    # The body is not being run, only checked: on copies of what it reads, and silently.
    replaying = replay_overlays.set(Overlays(is_silent=True))
    try:
        return finished(start_eager(function, given, backend, options, shared.loop))
    except SgcError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error.args[0] if error.args else error}"
        raise ProgramRaised(message, where=innermost_user_line(error)) from error
    finally:
        replay_overlays.reset(replaying)


def _compare(
    function: Function, compiled: RunResult | SgcError, interpreted: RunResult | SgcError
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
        error = compiled if isinstance(compiled, SgcError) else interpreted
        assert isinstance(error, SgcError)
        raise _differs(function, "one of the two runs fails", str(error)) from error
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


def _compare_calls(function: Function, compiled: RunResult, interpreted: RunResult) -> None:
    for ours, theirs in zip_longest(compiled.tool_calls, interpreted.tool_calls):
        if ours is None or theirs is None or ours.identity() != theirs.identity():
            shown = [
                f"{call.name}({call.arguments})" if call else "none" for call in (ours, theirs)
            ]
            raise _differs(function, "a tool's call", ", ".join(shown))


def _failed(outcome: RunResult | SgcError) -> str:
    """The kind of error that a run ended with, and what it says if the program raised it."""
    if isinstance(outcome, ProgramRaised):
        kind, _, message = outcome.message.partition(": ")
        return kind if kind == UnknownVariable.__name__ else f"{kind}: {message}"
    return type(outcome).__name__ if isinstance(outcome, SgcError) else ""


def _asked(result: RunResult) -> dict[tuple[str, int, str], Request]:
    return {(r.path, r.ordinal, r.kind): r for r in result.requests}


def _mismatch(
    function: Function, found: Request, ours: Request | None, theirs: Request | None
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


def _differs(function: Function, what: str, detail: str) -> TraceError:
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
    return list(value) if isinstance(value, tuple) else value
