"""Functions of the code: making a function from its definition, and binding its arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sgc.ir.code import CodeError
from sgc.runtime.executor.code.fuel import MAX_CALLS, Run
from sgc.runtime.executor.code.tree.compiling import (
    Context,
    Do,
    Ev,
    compile_expression,
    on_expression,
    paid,
    weight_of,
)
from sgc.runtime.executor.code.tree.driving import driven
from sgc.runtime.executor.code.tree.scopes import (
    UNSET,
    Frame,
    Scope,
    bound_names,
    inner_names,
    nonlocal_names,
    qualified,
)
from sgc.runtime.executor.interface.value_limits import LimitExceeded


@dataclass(frozen=True, slots=True)
class Parameters:
    """A function's parameters: slots follow their order here."""

    name: str
    positional: tuple[str, ...]
    n_positional_only: int
    keyword_only: tuple[str, ...]
    star: str | None
    double_star: str | None

    @property
    def all(self) -> tuple[str, ...]:
        rest = [name for name in (self.star, self.double_star) if name is not None]
        return (*self.positional, *self.keyword_only, *rest)


def parameters_of(args: ast.arguments, name: str) -> Parameters:
    return Parameters(
        name,
        tuple(arg.arg for arg in [*args.posonlyargs, *args.args]),
        len(args.posonlyargs),
        tuple(arg.arg for arg in args.kwonlyargs),
        args.vararg.arg if args.vararg else None,
        args.kwarg.arg if args.kwarg else None,
    )


@dataclass(slots=True)
class Layout:
    """The slots of a function's frame."""

    parameters: Parameters
    scope: Scope
    parameter_cells: list[int]
    local_cells: list[int]


def open_scope(parameters: Parameters, body: list[ast.AST], at: Context) -> Layout:
    """Opens the scope of a function; its body is compiled in it."""
    scope = Scope(at.scope, qualified(at.scope, parameters.name))
    inner, outer = inner_names(body), nonlocal_names(body)
    for name in parameters.all:
        scope.add(name, name in inner)
    parameter_cells = list(scope.cells)
    for name in outer:
        found = at.scope.find(name)
        if found is None or found.is_global:
            raise CodeError(f"expected {name!r} in a function around, found nonlocal alone")
    for name in bound_names(body):
        if name not in scope.places and name not in outer:
            scope.add(name, name in inner)
    return Layout(parameters, scope, parameter_cells, scope.cells[len(parameter_cells) :])


Maker = Callable[[Frame], Callable[..., Any]]


def maker(layout: Layout, begin: Callable[[Frame], Any], args: ast.arguments, at: Context) -> Maker:
    """A closure that makes the function. begin: runs its body in a frame and returns the result."""
    defaults = [compile_expression(each, at) for each in args.defaults]
    named = [
        (arg.arg, compile_expression(default, at))
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if default is not None
    ]
    parameters, n_slots = layout.parameters, layout.scope.n_slots
    name = layout.scope.name
    captured = list(layout.scope.captured)
    first_free = 2 + len(parameters.all)
    has_defaults = bool(defaults or named)
    plain = Binding(parameters, name, (), {})

    def make(f: Frame) -> Callable[..., Any]:
        rest = [UNSET] * (n_slots - first_free)
        for slot, outer_slot in captured:
            rest[slot - first_free] = f[outer_slot]
        binding = plain
        if has_defaults:
            values = tuple([each(f) for each in defaults])
            binding = Binding(parameters, name, values, {key: ev(f) for key, ev in named})
        return _function(layout, begin, f, rest, binding)

    return make


def _function(
    layout: Layout, begin: Callable[[Frame], Any], around: Frame, rest: list[Any], binding: Binding
) -> Callable[..., Any]:
    run: Run = around[0]
    module: Frame = around[1]
    parameters = layout.parameters
    n_plain = len(parameters.positional)
    is_plain = n_plain == len(parameters.all)
    parameter_cells, local_cells = layout.parameter_cells, layout.local_cells
    has_cells = bool(parameter_cells or local_cells)

    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_plain or kwargs or len(args) != n_plain:
            args = binding.bind(args, kwargs)
        frame = [run, module, *args, *rest]
        if has_cells:
            for slot in parameter_cells:
                frame[slot] = [frame[slot]]
            for slot in local_cells:
                frame[slot] = [UNSET]
        run.depth = depth = run.depth + 1
        if depth > MAX_CALLS:
            run.depth -= 1
            raise LimitExceeded(f"calls are nested more than {MAX_CALLS} deep")
        try:
            return begin(frame)
        finally:
            run.depth = depth - 1

    call.__qualname__ = layout.scope.name
    return call


class Binding:
    """Binds arguments to parameters, with Python's errors."""

    __slots__ = ("_defaults", "_name", "_named", "_parameters")

    def __init__(
        self, parameters: Parameters, name: str, defaults: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        self._parameters, self._name = parameters, name
        self._defaults, self._named = defaults, named

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Returns a value for each parameter."""
        own = self._parameters
        n_positional = len(own.positional)
        values: dict[str, Any] = dict(zip(own.positional, args, strict=False))
        more = self._bind_named(values, kwargs)
        if len(args) > n_positional and own.star is None:
            raise self._too_many(len(args), values)
        self._fill(values)
        rest = [() if own.star is None else args[n_positional:], more]
        plain = [values[name] for name in (*own.positional, *own.keyword_only)]
        given = (own.star, own.double_star)
        return (*plain, *[each for name, each in zip(given, rest, strict=True) if name is not None])

    def _bind_named(self, values: dict[str, Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        own = self._parameters
        nameable = {*own.positional[own.n_positional_only :], *own.keyword_only}
        more: dict[str, Any] = {}
        for name, value in kwargs.items():
            if name not in nameable:
                if own.double_star is None:
                    raise self._unexpected(name, kwargs)
                more[name] = value
            elif name in values:
                raise TypeError(f"{self._name}() got multiple values for argument '{name}'")
            else:
                values[name] = value
        return more

    def _unexpected(self, name: str, kwargs: dict[str, Any]) -> TypeError:
        only = self._parameters.positional[: self._parameters.n_positional_only]
        wrong = [each for each in only if each in kwargs]
        if wrong:
            return TypeError(
                f"{self._name}() got some positional-only arguments passed as keyword arguments: "
                f"'{', '.join(wrong)}'"
            )
        return TypeError(f"{self._name}() got an unexpected keyword argument '{name}'")

    def _too_many(self, n_given: int, values: dict[str, Any]) -> TypeError:
        own = self._parameters
        most = len(own.positional)
        least = most - len(self._defaults)
        takes = f"from {least} to {most}" if self._defaults else f"{most}"
        plural = "s" if self._defaults or most != 1 else ""
        n_named = sum(name in values for name in own.keyword_only)
        verb = "was" if n_given == 1 and not n_named else "were"
        also = ""
        if n_named:
            also = f" positional argument{'s' if n_given != 1 else ''} (and {n_named} keyword-only "
            also += f"argument{'s' if n_named != 1 else ''})"
        return TypeError(
            f"{self._name}() takes {takes} positional argument{plural} but {n_given}{also} {verb} "
            "given"
        )

    def _fill(self, values: dict[str, Any]) -> None:
        own = self._parameters
        first = len(own.positional) - len(self._defaults)
        missing = [name for name in own.positional[:first] if name not in values]
        if missing:
            raise self._missing("positional", missing)
        for name, value in zip(own.positional[first:], self._defaults, strict=True):
            values.setdefault(name, value)
        missing = [
            name for name in own.keyword_only if name not in values and name not in self._named
        ]
        if missing:
            raise self._missing("keyword-only", missing)
        for name, value in self._named.items():
            values.setdefault(name, value)

    def _missing(self, kind: str, names: list[str]) -> TypeError:
        *first, last = [repr(name) for name in names]
        if len(first) > 1:
            shown = f"{', '.join(first)}, and {last}"
        else:
            shown = " and ".join([*first, last])
        plural = "s" if len(names) != 1 else ""
        return TypeError(
            f"{self._name}() missing {len(names)} required {kind} argument{plural}: {shown}"
        )


def returning(body: Do) -> Callable[[Frame], Any]:
    """A function that runs a body in a frame and returns the body's result."""

    def begin(f: Frame) -> Any:
        result = body(f)
        return result[0] if type(result) is tuple else None

    return begin


def generating(body: Callable[[Frame], Iterator[Any]]) -> Callable[[Frame], Iterator[Any]]:
    """A function that makes a generator from a body that yields."""

    def begin(f: Frame) -> Iterator[Any]:
        run: Run = f[0]
        run.charge(30)
        made: Iterator[Any] = driven(run, body, f)
        return made

    return begin


@on_expression(ast.Lambda)
def _lambda(node: ast.Lambda, at: Context) -> Ev:
    layout = open_scope(parameters_of(node.args, "<lambda>"), [node.body], at)
    body = compile_expression(node.body, Context(layout.scope, at.names))
    return maker(layout, paid(1 + weight_of(node.body), body), node.args, at)
