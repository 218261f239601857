"""The trace check: a trace is validated against the interpreter, not trusted.

The interpreter and the graph run on the same scripted replies, chosen to be nasty. Their
requests, texts and variables must be equal, else compiling fails and names the first line
that differs. What it cannot see: code that treats all the texts tried here alike.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sgc.calls import finished, start_eager
from sgc.errors import SgcError, TraceError
from sgc.ir.graph import Graph
from sgc.ir.types import Kind, Type
from sgc.runtime.executor.backend import Prompt, Sampling
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.loop import shared
from sgc.runtime.executor.options import RunOptions
from sgc.runtime.executor.record import Request, RunResult
from sgc.runtime.executor.scripted import ScriptedBackend
from sgc.session import own_texts

if TYPE_CHECKING:
    from sgc.functions import Function

NASTY = (
    "plain", " leading", "trailing ", "two\nlines\n", "", "MiXeD Case", "42", '"quoted" \'too\'',
    "naïve — 日本語 🙂", "a, b, c", "{brace} %s \\n", "yes", "No.", "\t tab",
)  # fmt: skip
MAX_ROUNDS = 64
BUDGET_S = 0.3  # after the first few rounds, whatever they take
MIN_ROUNDS = 4


def check_trace(function: Function, graph: Graph, bound: Mapping[str, Any]) -> None:
    """Raises TraceError at the first line where graph and interpreter differ."""
    texts = (*NASTY, *_own_texts(function))[:MAX_ROUNDS]
    deadline_s = time.monotonic() + BUDGET_S
    for number in range(len(texts)):
        arguments = {
            param.value.name: _argument(param.value.type, index + number, texts)
            for index, param in enumerate(graph.params)
        }
        backend = _backend(number, texts)
        compiled = _run_compiled(graph, backend, arguments, number)
        interpreted = _run_interpreted(function, backend, bound, arguments, number)
        _compare(function, compiled, interpreted)
        if number + 1 >= MIN_ROUNDS and time.monotonic() > deadline_s:
            return


def _own_texts(function: Function) -> list[str]:
    """The program's own texts and their words: what its tests would compare with."""
    found: dict[str, None] = {}
    for text in own_texts(function.python):
        found.update(dict.fromkeys([text, *re.findall(r"\w+", text)]))
    return sorted(found, key=len)


def _argument(type_: Type, number: int, texts: tuple[str, ...]) -> Any:
    if type_.kind is Kind.INT:
        return (3, 1, 17)[number % 3]
    if type_.kind is Kind.FLOAT:
        return (0.5, 0.0, 1.0)[number % 3]
    if type_.kind is Kind.BOOL:
        return number % 2 == 0
    if type_.kind is Kind.LIST:
        assert type_.item is not None
        return [_argument(type_.item, number + i, texts) for i in range(number % 4)]
    return texts[number % len(texts)]


def _backend(number: int, texts: tuple[str, ...]) -> ScriptedBackend:
    def reply(prompt: Prompt, sampling: Sampling) -> str:
        return texts[_index(f"{number}/{prompt!r}", len(texts))]

    def prefer(prompt: Prompt, choices: tuple[str, ...]) -> int:
        return _index(f"{number}/{prompt!r}/{choices!r}", len(choices))

    return ScriptedBackend(reply, prefer)


def _index(key: str, n: int) -> int:
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % n


def _run_compiled(
    graph: Graph, backend: ScriptedBackend, arguments: Mapping[str, Any], number: int
) -> RunResult:
    return shared.run(run_graph(graph, backend, arguments, RunOptions(seed=number)))


def _run_interpreted(
    function: Function,
    backend: ScriptedBackend,
    bound: Mapping[str, Any],
    arguments: Mapping[str, Any],
    number: int,
) -> RunResult:
    given = function.signature.bind((), {**bound, **arguments})
    try:
        options = RunOptions(seed=number)
        state = start_eager(function, given, backend, options, shared.loop)
        return finished(state)
    except SgcError:
        raise
    except Exception as error:
        raise TraceError(
            f"interpreted, {function.name} raised {type(error).__name__}: {error}; "
            "its trace does not",
            hint="the program looks into a value that tracing cannot see",
        ) from error


def _compare(function: Function, compiled: RunResult, interpreted: RunResult) -> None:
    left, right = _asked(compiled), _asked(interpreted)
    for key in sorted(left.keys() | right.keys()):
        ours, theirs = left.get(key), right.get(key)
        if ours is None or theirs is None or ours.identity() != theirs.identity():
            found = ours or theirs
            assert found is not None
            raise _mismatch(function, found, ours, theirs)
    for a, b in zip(compiled.streams, interpreted.streams, strict=False):
        if (a.text, dict(a.variables)) != (b.text, dict(b.variables)):
            raise _differs(function, f"stream {a.path}", _first_difference(a, b))
    if len(compiled.streams) != len(interpreted.streams):
        raise _differs(function, "the number of streams", "")
    if _plain(compiled.ret_value) != _plain(interpreted.ret_value):
        raise _differs(
            function, "the value returned", f"{compiled.ret_value!r}, {interpreted.ret_value!r}"
        )


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
        "`x in text`, text.replace(x, …) or f-string == text; run with --interpret",
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
