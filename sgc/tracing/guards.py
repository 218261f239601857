"""Guards: what a graph was made from, so that a change of it can be told."""

from __future__ import annotations

import hashlib
import inspect
import json
import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sgc.ir.graph import Guard

if TYPE_CHECKING:
    from sgc.functions import Function


def guards_of(function: Function, bound: Mapping[str, Any]) -> tuple[Guard, ...]:
    """Hashes of the program's source and of all it can read, and of its bound arguments."""
    found = [Guard("source", name, digest) for name, digest in _sources(function)]
    found += [
        Guard("static", name, _digest(_plain(value))) for name, value in sorted(bound.items())
    ]
    return tuple(found)


def _sources(function: Function) -> Iterator[tuple[str, str]]:
    """Every function reached by name from the program, and the plain values they read."""
    seen: set[int] = set()
    queue: list[tuple[str, Any]] = [(function.name, function)]
    while queue:
        name, value = queue.pop(0)
        python = getattr(value, "python", value)
        if id(python) in seen:
            continue
        seen.add(id(python))
        if isinstance(python, types.FunctionType):
            yield name, _digest(_source(python))
            queue.extend(sorted(_read_names(python), key=lambda pair: pair[0]))
        elif (plain := _plain(python)) is not None:
            yield name, _digest(plain)


def _source(python: types.FunctionType) -> str:
    try:
        return inspect.getsource(python)
    except (OSError, TypeError):
        return python.__code__.co_code.hex()


def _read_names(python: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name in _names(python.__code__):
        if name in python.__globals__:
            value = python.__globals__[name]
            module = getattr(value, "__module__", "") or ""
            if (
                not isinstance(value, types.ModuleType) and not module.startswith("sgc")
            ) or hasattr(value, "python"):
                yield name, value
    for name, cell in zip(python.__code__.co_freevars, python.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue


def _names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _plain(value: Any) -> str | None:
    """Plain data as canonical JSON; None for what is not data."""
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=True)
    except (TypeError, ValueError):
        return None


def _digest(text: str | None) -> str:
    return hashlib.sha256((text or "").encode("utf-8", "surrogatepass")).hexdigest()
