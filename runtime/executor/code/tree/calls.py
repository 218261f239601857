"""Calls as closures over a frame."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from sgc.ir.code_checks import is_super
from sgc.runtime.executor.code.iterators import drained, is_iterable
from sgc.runtime.executor.code.methods.attributes import GUARDED, GUARDS, METHODS, method
from sgc.runtime.executor.code.tree.compiling import (
    Context,
    Ev,
    compile_expression,
    on_expression,
)
from sgc.runtime.executor.code.tree.expressions import module_value
from sgc.runtime.executor.code.tree.scopes import Frame


@on_expression(ast.Call)
def _call(node: ast.Call, at: Context) -> Ev:
    if isinstance(node.func, ast.Attribute) and not _is_known(node.func, at):
        return _method_call(node, node.func, at)
    function = compile_expression(node.func, at)
    if _is_simple(node):
        return _simple_call(function, [compile_expression(arg, at) for arg in node.args])
    arguments = _arguments(node, at)

    def call(f: Frame) -> Any:
        called = function(f)
        args, kwargs = arguments(f, called)
        if type(called) in GUARDED:
            called = GUARDS.get(called, called)
        return called(*args, **kwargs)

    return call


def _is_known(func: ast.Attribute, at: Context) -> bool:
    """Whether the callee is not simply an attribute of a value."""
    return is_super(func.value) or module_value(func, at) is not None


def _is_simple(node: ast.Call) -> bool:
    return not node.keywords and not any(isinstance(arg, ast.Starred) for arg in node.args)


def _simple_call(function: Ev, args: list[Ev]) -> Ev:
    if len(args) == 1:
        (only,) = args

        def call_one(f: Frame) -> Any:
            called = function(f)
            arg = only(f)
            if type(called) in GUARDED:
                called = GUARDS.get(called, called)
            return called(arg)

        return call_one

    def call(f: Frame) -> Any:
        called = function(f)
        values = [arg(f) for arg in args]
        if type(called) in GUARDED:
            called = GUARDS.get(called, called)
        return called(*values)

    return call


def _method_call(node: ast.Call, func: ast.Attribute, at: Context) -> Ev:
    of, name = compile_expression(func.value, at), func.attr
    if _is_simple(node):
        return _simple_method(of, name, [compile_expression(arg, at) for arg in node.args])
    arguments = _arguments(node, at)

    def call(f: Frame) -> Any:
        value = of(f)
        called = method(value, name)
        args, kwargs = arguments(f, called)
        return called(value, *args, **kwargs)

    return call


def _simple_method(of: Ev, name: str, args: list[Ev]) -> Ev:
    if len(args) == 1:
        (only,) = args

        def call_one(f: Frame) -> Any:
            value = of(f)
            table = METHODS.get(type(value))
            called = table.get(name) if table is not None else None
            if called is None:
                called = method(value, name)
            return called(value, only(f))

        return call_one

    def call(f: Frame) -> Any:
        value = of(f)
        called = method(value, name)
        return called(value, *[arg(f) for arg in args])

    return call


Arguments = Callable[[Frame, Any], tuple[list[Any], dict[str, Any]]]


def _arguments(node: ast.Call, at: Context) -> Arguments:
    places = [
        (isinstance(arg, ast.Starred), compile_expression(_inner(arg), at)) for arg in node.args
    ]
    named = [(keyword.arg, compile_expression(keyword.value, at)) for keyword in node.keywords]

    def evaluate(f: Frame, called: Any) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        for is_star, ev in places:
            value = ev(f)
            if is_star:
                args.extend(_starred(value, called))
            else:
                args.append(value)
        kwargs: dict[str, Any] = {}
        for name, ev in named:
            if name is None:
                _add_all(kwargs, ev(f), called)
            else:
                _add(kwargs, name, ev(f), called)
        return args, kwargs

    return evaluate


def _inner(arg: ast.expr) -> ast.expr:
    return arg.value if isinstance(arg, ast.Starred) else arg


def _starred(value: Any, called: Any) -> Any:
    if not is_iterable(value):
        raise TypeError(
            f"{_shown(called)} argument after * must be an iterable, not {type(value).__name__}"
        )
    return drained(value)


def _shown(called: Any) -> str:
    return f"{getattr(called, '__qualname__', type(called).__name__)}()"


def _add_all(kwargs: dict[str, Any], more: Any, called: Any) -> None:
    if not hasattr(type(more), "keys"):
        raise TypeError(
            f"{_shown(called)} argument after ** must be a mapping, not {type(more).__name__}"
        )
    for name in drained(more):
        if type(name) is not str:
            raise TypeError("keywords must be strings")
        _add(kwargs, name, more[name], called)


def _add(kwargs: dict[str, Any], name: str, value: Any, called: Any) -> None:
    if name in kwargs:
        raise TypeError(f"{_shown(called)} got multiple values for keyword argument '{name}'")
    kwargs[name] = value
