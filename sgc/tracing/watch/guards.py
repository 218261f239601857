"""Guards: what a graph was made from, so that a change of it can be told."""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Iterator, Mapping
from typing import Any

from sgc.errors import GuardError
from sgc.ir.graph import Graph, Guard
from sgc.lang.definition import Definition
from sgc.tracing.watch.ambient import current_ambient


def is_program(value: Any) -> bool:

    return isinstance(value, Definition)


def is_tool(value: Any) -> bool:
    from sgc.lang.tools import Tool

    return isinstance(value, Tool)


def guards_of(function: Definition, bound: Mapping[str, Any]) -> tuple[Guard, ...]:
    """Hashes of the program's source and of all it can read, and of its bound arguments.

    And of what it has read of its surroundings, where that is allowed.
    """
    found = [Guard(kind, name, value) for kind, name, value in _sources(function)]
    found += [Guard("static", name, digest(plain(value))) for name, value in sorted(bound.items())]
    ambient = current_ambient()
    return (*found, *(ambient.guards() if ambient is not None else ()))


def check_source(function: Definition, graph: Graph, source: str) -> None:
    """Raises GuardError where a function is not what a program was compiled from, or where
    arguments of it that were bound are not known.
    """
    bound = [guard.name for guard in graph.guards if guard.kind == "static"]
    if bound:
        raise GuardError(
            f"--source {source}: {', '.join(map(repr, bound))} was bound when {graph.name} was "
            "compiled, to a value that its file does not keep",
            hint="compile it without --bind, or run the Python",
        )
    ours = {(guard.name, guard.value) for guard in guards_of(function, {}) if _is_code(guard)}
    theirs = {(guard.name, guard.value) for guard in graph.guards if _is_code(guard)}
    changed = sorted({name for name, _ in ours ^ theirs})
    if changed:
        raise GuardError(
            f"--source {source}: {', '.join(map(repr, changed))} changed since {graph.name} was "
            "compiled",
            hint="compile it again",
        )


def _is_code(guard: Guard) -> bool:
    return guard.kind in ("source", "tool")


def _sources(function: Definition) -> Iterator[tuple[str, str, str]]:
    """Every function reached by name from the program, and the plain values they read; tools of
    a kind of their own, since a program is the same whatever is inside of a tool.
    """
    seen: set[int] = set()
    queue: list[tuple[str, Any]] = [(function.name, function)]
    while queue:
        name, value = queue.pop(0)
        python = value.python if is_program(value) or is_tool(value) else value
        if id(python) in seen:
            continue
        seen.add(id(python))
        if is_tool(value):  # what a tool reads is its own: it is called anew by every run
            yield "tool", name, digest(f"{value.signature} {value.effect}\n{_source(python)}")
        elif isinstance(python, types.FunctionType):
            yield "source", name, digest(_source(python))
            queue.extend(_read_names(python))
        elif (text := plain(python)) is not None:
            yield "source", name, digest(text)


def _source(python: types.FunctionType) -> str:
    return _source_of_code(python.__code__)


@functools.lru_cache(maxsize=4096)
def _source_of_code(code: types.CodeType) -> str:
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        return code_text(code)


def code_text(code: types.CodeType) -> str:
    """What a function without source does: its instructions, names and constants."""
    constants = [
        code_text(constant) if isinstance(constant, types.CodeType) else repr(constant)
        for constant in code.co_consts
    ]
    return "\n".join([code.co_code.hex(), *code.co_names, *constants])


def _read_names(python: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name in sorted(names_of(python.__code__)):
        value = python.__globals__.get(name)
        if _is_guarded(value):
            yield name, value
    for name, cell in zip(python.__code__.co_freevars, python.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if _is_guarded(value):
            yield name, value


_DATA = (str, int, float, bool, list, tuple, dict, set, frozenset)


def _is_guarded(value: Any) -> bool:
    """Programs, tools, plain functions outside this package, and data; no more is probed."""
    if is_program(value) or is_tool(value):
        return True
    if isinstance(value, types.FunctionType):
        return not (value.__module__ or "").startswith("sgc.")
    return type(value) in _DATA or is_namespace(value)


def is_namespace(value: Any) -> bool:
    """Whether it is what `argparse` gives, or the like: data with names."""
    kind = type(value)
    return kind is types.SimpleNamespace or (
        kind.__module__ == "argparse" and kind.__qualname__ == "Namespace"
    )


def names_of(code: types.CodeType) -> set[str]:
    """Names that a function or anything nested in it may look up."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names_of(constant)
    return found


MAX_DEPTH = 100  # of data within data


def plain(value: Any) -> str | None:
    """Plain data as a text that is equal for equal values alone; None for what is no data.

    Types are told apart (a tuple from a list, `1` from `True`), and the order of a dict is kept.
    """
    try:
        return _plain(value, MAX_DEPTH)
    except TypeError:
        return None


def _plain(value: Any, depth: int) -> str:
    kind = type(value)
    if value is None or kind in (bool, int, float, str, bytes):
        return f"{kind.__name__}:{value!r}"
    if depth > 0 and is_namespace(value):
        return f"{kind.__name__}:{_plain(vars(value), depth - 1)}"
    if depth == 0 or kind not in (list, tuple, dict, set, frozenset):
        raise TypeError
    if kind is dict:
        pairs = (f"{_plain(k, depth - 1)}={_plain(v, depth - 1)}" for k, v in value.items())
        return "dict{" + ",".join(pairs) + "}"
    items = (_plain(item, depth - 1) for item in value)
    ordered = sorted(items) if kind in (set, frozenset) else items
    return f"{kind.__name__}[{','.join(ordered)}]"


def digest(text: str | None) -> str:
    """SHA-256 of a text, in hex."""
    return hashlib.sha256((text or "").encode("utf-8", "surrogatepass")).hexdigest()
