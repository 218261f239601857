"""The definition of a program: its Python function, its parameters and its settings."""

from __future__ import annotations

import functools
import inspect
import os
import types as python_types
from collections.abc import Callable, Mapping
from typing import Any

from sgc.core.places import here
from sgc.errors import ArgumentError, UsageError
from sgc.ir.graph import Loc
from sgc.lang.signature import read_signature
from sgc.runtime.executor.run.options import check_parameter

_NOT_PROGRAMS = {
    "an async function": inspect.iscoroutinefunction,
    "an async generator": inspect.isasyncgenfunction,
    "a generator": inspect.isgeneratorfunction,
}


def _place(python: python_types.FunctionType) -> Loc:
    code = python.__code__
    return Loc(os.path.basename(code.co_filename), code.co_firstlineno, python.__name__)


MAX_COUNT = 1_000_000


def _checked_heal(heal: Any) -> bool | None:
    if heal is not None:
        check_parameter("heal", heal)
    return None if heal is None else bool(heal)


def _checked_count(name: str, value: Any, least: int = 1) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (is_count and least <= value <= MAX_COUNT):
        raise UsageError(
            f"{name} takes a whole number from {least} to {MAX_COUNT}, found {value!r}",
            where=here(),
        )
    return None if value is None else int(value)


Bind = Callable[[tuple[Any, ...], Mapping[str, Any]], dict[str, Any]]


def bound_row(index: int, row: Any, bind: Bind) -> dict[str, Any]:
    """The arguments of a row, which is a dict or a tuple; an error names the row's index."""
    try:
        if isinstance(row, Mapping):
            return bind((), row)
        if isinstance(row, (list, tuple)):
            return bind(tuple(row), {})
        raise ArgumentError(f"a row is a dict or a tuple of arguments, found {type(row).__name__}")
    except ArgumentError as error:
        raise ArgumentError(f"row {index}: {error.message}", hint=error.hint) from error


class Definition:
    """The function and settings given to `@sgc.function`."""

    def __init__(
        self,
        python: Callable[..., Any],
        num_api_spec_tokens: int | None = None,
        *,
        full_graph: bool = False,
        heal: bool | None = None,
        max_turns: int | None = None,
        allow_ambient: bool = False,
        bind_arguments: Mapping[str, Any] | None = None,
    ) -> None:
        # A decorator below this one is part of the program: `python` is called as it is given.
        if not isinstance(python, python_types.FunctionType):
            raise UsageError(f"@sgc.function takes a Python function, found {python!r}")
        unwrapped = inspect.unwrap(python)
        assert isinstance(unwrapped, python_types.FunctionType)
        for kind, is_kind in _NOT_PROGRAMS.items():
            if is_kind(unwrapped):
                raise UsageError(
                    f"{unwrapped.__name__} is {kind}, which cannot be a program",
                    where=str(_place(unwrapped)),
                    hint="write a plain `def`; generations run in parallel without await",
                )
        self.python = python
        self.func = python  # SGLang's name for it
        self.name = unwrapped.__name__
        self.signature = read_signature(unwrapped)
        self.loc = _place(unwrapped)
        self.num_api_spec_tokens = _checked_count(
            "num_api_spec_tokens", num_api_spec_tokens, least=0
        )
        self.full_graph = full_graph
        self.heal = _checked_heal(heal)
        self.max_turns = _checked_count("max_turns", max_turns)
        self.allow_ambient = allow_ambient
        self.bind_arguments: dict[str, Any] = dict(bind_arguments or {})
        functools.update_wrapper(self, unwrapped)  # type: ignore[arg-type]

    @property
    def arg_names(self) -> list[str]:
        """Names of the program's parameters."""
        return list(self.signature.names)

    @property
    def arg_defaults(self) -> list[Any]:
        """Defaults of the last parameters."""
        return [p.default for p in self.signature.parameters if p.has_default]

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name; bound arguments apply unless the call gives others."""
        positional = self.signature.names[: len(args)]
        bound = {n: v for n, v in self.bind_arguments.items() if n not in positional}
        return self.signature.bind(args, {**bound, **kwargs})

    def row_arguments(self, index: int, row: Any) -> dict[str, Any]:
        """The arguments of a row, checked before any row starts."""

        def bind(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
            arguments = self.bound(args, kwargs)
            self.signature.check_types(arguments)
            return arguments

        return bound_row(index, row, bind)

    def __repr__(self) -> str:
        return f"<sgc.function {self.name}({', '.join(map(self._shown, self.signature.names))})>"

    def _shown(self, name: str) -> str:
        """A parameter as `repr` shows it: with its stars, or with the argument bound to it."""
        stars = {self.signature.rest: "*", self.signature.options: "**"}.get(name, "")
        return f"{stars}{name}" + ("=…" if name in self.bind_arguments else "")
