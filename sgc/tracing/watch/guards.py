"""Guards: digests of what a graph was made from, by which changes are noticed."""

from __future__ import annotations

import functools
import hashlib
import inspect
import linecache
import types
from collections.abc import Iterator, Mapping
from typing import Any

from sgc.errors import GuardError
from sgc.ir.graph import Graph, Guard
from sgc.lang.definition import Definition
from sgc.tracing.watch.ambient import current_ambient

MAX_KEPT = 4096
_kept: dict[types.CodeType, str] = {}  # sources


def is_program(value: Any) -> bool:

    return isinstance(value, Definition)


def is_tool(value: Any) -> bool:
    from sgc.lang.tools import Tool

    return isinstance(value, Tool)


def guards_of(function: Definition, bound: Mapping[str, Any]) -> tuple[Guard, ...]:
    """Hashes of the program's source, of all functions and data that it can read, of its bound
    arguments, and of what it has read of its surroundings, if reading them is allowed.
    """
    found = [Guard(kind, name, value) for kind, name, value in _sources(function)]
    found += [Guard("static", name, digest(plain(value))) for name, value in sorted(bound.items())]
    ambient = current_ambient()
    return (*found, *(ambient.guards() if ambient is not None else ()))


def check_source(function: Definition, graph: Graph, source: str) -> None:
    """Raises GuardError if a program was not compiled from this function, or if it was compiled
    with bound arguments, whose values are not known.
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
    """The functions that the program reaches by name, and the plain values that they read. Tools
    have a kind of their own, since a program does not depend on the inside of a tool.
    """
    seen: set[int] = set()
    queue: list[tuple[str, Any]] = [(function.name, function)]
    while queue:
        name, value = queue.pop(0)
        python = value.python if is_program(value) or is_tool(value) else value
        is_new = id(python) not in seen
        seen.add(id(python))
        if (text := plain(python)) is not None:  # equal values may be one object
            yield "source", name, digest(text)
        elif not is_new:
            continue
        elif is_tool(value):  # its reads are not the program's: every run calls the tool
            yield "tool", name, digest(f"{value.signature} {value.effect}\n{_source(python)}")
        elif isinstance(python, types.FunctionType):
            yield "source", name, digest(_source(python))
            queue.extend(_read_names(python))


def _source(python: types.FunctionType) -> str:
    code = python.__code__
    if code not in _kept:
        if len(_kept) >= MAX_KEPT:
            _kept.clear()
        _kept[code] = _source_of_code(code, python.__globals__)
    return _kept[code]


def _source_of_code(code: types.CodeType, names: dict[str, Any]) -> str:
    """As `inspect.getsource`, which twice searches all imported modules for the code's module."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, names)[code.co_firstlineno - 1 :]
    return "".join(inspect.getblock(lines)) if lines else code_text(code)


@functools.lru_cache(maxsize=MAX_KEPT)
def code_text(code: types.CodeType) -> str:
    """The instructions, names, parameters and constants of a function, as a text."""
    constants = [
        code_text(constant) if isinstance(constant, types.CodeType) else repr(constant)
        for constant in code.co_consts
    ]
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    handlers = code.co_exceptiontable.hex()
    return "\n".join([code.co_code.hex(), handlers, f"{counts} {names}", *constants])


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
    """Whether a value is guarded: programs, tools, functions outside this package, and data."""
    if is_program(value) or is_tool(value):
        return True
    if isinstance(value, types.FunctionType):
        return not (value.__module__ or "").startswith("sgc.")
    return type(value) in _DATA or is_namespace(value)


def is_namespace(value: Any) -> bool:
    """Whether a value is data in named attributes, such as the result of `argparse`."""
    kind = type(value)
    return kind is types.SimpleNamespace or (
        kind.__module__ == "argparse" and kind.__qualname__ == "Namespace"
    )


def names_of(code: types.CodeType) -> set[str]:
    """Names that a function, or a function nested in it, may look up."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names_of(constant)
    return found


MAX_DEPTH = 100  # of nested data


def plain(value: Any, keeps_order: bool = False) -> str | None:
    """Plain data as a text, equal only for equal values; None if the value is not plain data.

    Types are distinguished (a tuple from a list, `1` from `True`), and the order of a dict is kept.
    keeps_order: whether that of a set is too, which two equal sets need not share.
    """
    try:
        return _plain(value, MAX_DEPTH, keeps_order)
    except TypeError:
        return None


def _plain(value: Any, depth: int, keeps_order: bool) -> str:
    kind = type(value)
    if value is None or kind in (bool, int, float, str, bytes):
        return f"{kind.__name__}:{value!r}"
    if depth > 0 and is_namespace(value):
        return f"{kind.__name__}:{_plain(vars(value), depth - 1, keeps_order)}"
    if depth == 0 or kind not in (list, tuple, dict, set, frozenset):
        raise TypeError
    if kind is dict:
        pairs = (
            f"{_plain(k, depth - 1, keeps_order)}={_plain(v, depth - 1, keeps_order)}"
            for k, v in value.items()
        )
        return "dict{" + ",".join(pairs) + "}"
    items = (_plain(item, depth - 1, keeps_order) for item in value)
    is_sorted = kind in (set, frozenset) and not keeps_order
    ordered = sorted(items) if is_sorted else items
    return f"{kind.__name__}[{','.join(ordered)}]"


def digest(text: str | None) -> str:
    """SHA-256 of a text, in hex."""
    return hashlib.sha256((text or "").encode("utf-8", "surrogatepass")).hexdigest()
