"""A program as the bytes of its file, and the program that an actor makes of them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from sgc.errors import UsageError
from sgc.ir.file import sgir as ir_file
from sgc.lang.tools import Tool, resolve_tools, tools_in
from sgc.programs.function import Function
from sgc.programs.program import Program, load
from sgc.runtime.executor.interface.tools import ToolImpl

_AT_ONCE = 8  # programs that a process keeps


def bytes_of(program: Any) -> bytes:
    """The file of a program: a `.sgir` path, a compiled program, or a function, which is compiled.

    Raises UsageError for anything else, and TraceError for a function that does not compile.
    """
    if isinstance(program, Function):
        program = program.compile()
    if isinstance(program, str | os.PathLike):
        program = load(program)
    if not isinstance(program, Program):
        raise UsageError(
            f"expected a .sgir file, a program or an @sgc.function, found {program!r}",
            hint="sgc compile PROG.py -o PROG.sgir",
        )
    return ir_file.to_bytes(program.graph)


@lru_cache(maxsize=_AT_ONCE)
def program_of(data: bytes, tools: tuple[str, ...] = ()) -> Program:
    """The program in such bytes, with its tools."""
    return Program(ir_file.from_bytes(data), tuple(_impls(tools)))


def _impls(tools: Iterable[str]) -> Iterable[ToolImpl]:
    """The tools of modules, and those that `module:name` names; their code is imported."""
    for name in tools:
        if ":" in name:
            yield from resolve_tools([name]).by_name.values()
        else:
            yield from (each.impl for each in _tools_of(name))


def _tools_of(name: str) -> list[Tool]:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"tools={name!r} cannot be imported: {error}",
            hint="name a module that workers can import; Ray's runtime_env takes files along",
        ) from error
    found = tools_in(module)
    if not found:
        raise UsageError(f"tools={name!r}: there is no @sgc.tool in it")
    return found
