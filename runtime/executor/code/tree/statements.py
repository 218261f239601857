"""Statements as closures over a frame."""

from __future__ import annotations

import ast
from typing import Any

from sgc.runtime.executor.code.methods.attributes import attribute
from sgc.runtime.executor.code.methods.instances import set_attribute
from sgc.runtime.executor.code.methods.operators import AUGMENTED, put, subscript
from sgc.runtime.executor.code.tree.compiling import (
    BREAK,
    CONTINUE,
    Context,
    Do,
    Ev,
    compile_block,
    compile_expression,
    has_yield,
    on_statement,
    weight_of,
)
from sgc.runtime.executor.code.tree.functions import (
    generating,
    maker,
    open_scope,
    parameters_of,
    returning,
)
from sgc.runtime.executor.code.tree.generators import compile_lazy_block
from sgc.runtime.executor.code.tree.matching import compile_match
from sgc.runtime.executor.code.tree.scopes import Frame
from sgc.runtime.executor.code.tree.targets import (
    compile_deletes,
    compile_store,
    compile_stores,
    place_of,
    store_name,
)


@on_statement(ast.FunctionDef)
def _def(node: ast.FunctionDef, at: Context) -> Do:
    make = compile_function(node, at)
    store = store_name(place_of(node.name, at))
    return lambda f: store(f, make(f))


def compile_function(node: ast.FunctionDef, at: Context) -> Ev:
    """A closure that makes a function."""
    body: list[ast.AST] = list(node.body)
    layout = open_scope(parameters_of(node.args, node.name), body, at)
    within = Context(layout.scope, at.names)
    if any(has_yield(each) for each in body):
        return maker(layout, generating(compile_lazy_block(node.body, within)), node.args, at)
    return maker(layout, returning(compile_block(node.body, within)), node.args, at)


@on_statement(ast.Return)
def _return(node: ast.Return, at: Context) -> Do:
    if node.value is None:
        return lambda f: (None,)
    value = compile_expression(node.value, at)
    return lambda f: (value(f),)


@on_statement(ast.Pass, ast.Nonlocal)
def _pass(node: ast.stmt, at: Context) -> Do:
    return lambda f: None


@on_statement(ast.Break)
def _break(node: ast.Break, at: Context) -> Do:
    return lambda f: BREAK


@on_statement(ast.Continue)
def _continue(node: ast.Continue, at: Context) -> Do:
    return lambda f: CONTINUE


@on_statement(ast.Expr)
def _expression(node: ast.Expr, at: Context) -> Do:
    value = compile_expression(node.value, at)

    def do(f: Frame) -> None:
        value(f)

    return do


@on_statement(ast.Assign)
def _assign(node: ast.Assign, at: Context) -> Do:
    value, store = compile_expression(node.value, at), compile_stores(node.targets, at)
    return lambda f: store(f, value(f))


@on_statement(ast.AnnAssign)
def _annotated(node: ast.AnnAssign, at: Context) -> Do:
    if node.value is None:
        return lambda f: None
    value, store = compile_expression(node.value, at), compile_store(node.target, at)
    return lambda f: store(f, value(f))


@on_statement(ast.AugAssign)
def _augmented(node: ast.AugAssign, at: Context) -> Do:
    operation = AUGMENTED[type(node.op).__name__]
    value = compile_expression(node.value, at)
    if isinstance(node.target, ast.Name):
        read = compile_expression(ast.Name(node.target.id, ast.Load()), at)
        store = compile_store(node.target, at)
        return lambda f: store(f, operation(read(f), value(f)))
    if isinstance(node.target, ast.Attribute):
        owner, name = compile_expression(node.target.value, at), node.target.attr

        def do_attribute(f: Frame) -> None:
            of = owner(f)
            set_attribute(of, name, operation(attribute(of, name), value(f)))

        return do_attribute
    assert isinstance(node.target, ast.Subscript)
    items = compile_expression(node.target.value, at)
    key = compile_expression(node.target.slice, at)

    def do(f: Frame) -> None:
        of, at_key = items(f), key(f)
        put(of, at_key, operation(subscript(of, at_key), value(f)))

    return do


@on_statement(ast.Delete)
def _delete(node: ast.Delete, at: Context) -> Do:
    return compile_deletes(node.targets, at)


@on_statement(ast.If)
def _if(node: ast.If, at: Context) -> Do:
    test, body = compile_expression(node.test, at), compile_block(node.body, at)
    if not node.orelse:
        return lambda f: body(f) if test(f) else None
    orelse = compile_block(node.orelse, at)
    return lambda f: body(f) if test(f) else orelse(f)


@on_statement(ast.While)
def _while(node: ast.While, at: Context) -> Do:
    test, body = compile_expression(node.test, at), compile_block(node.body, at)
    orelse = compile_block(node.orelse, at)
    cost = 1 + weight_of(node.test)

    def do(f: Frame) -> Any:
        run = f[0]
        while test(f):
            run.left -= cost
            result = body(f)
            if result is not None and result is not CONTINUE:
                return None if result is BREAK else result
        return orelse(f)

    return do


@on_statement(ast.For)
def _for(node: ast.For, at: Context) -> Do:
    items, store = compile_expression(node.iter, at), compile_store(node.target, at)
    body, orelse = compile_block(node.body, at), compile_block(node.orelse, at)

    def do(f: Frame) -> Any:
        for item in items(f):
            store(f, item)
            result = body(f)
            if result is not None and result is not CONTINUE:
                return None if result is BREAK else result
        return orelse(f)

    return do


@on_statement(ast.Assert)
def _assert(node: ast.Assert, at: Context) -> Do:
    test = compile_expression(node.test, at)
    message = compile_expression(node.msg, at) if node.msg else None

    def do(f: Frame) -> None:
        if not test(f):
            raise AssertionError(message(f)) if message is not None else AssertionError

    return do


@on_statement(ast.Match)
def _match(node: ast.Match, at: Context) -> Do:
    return compile_match(node, compile_expression(node.subject, at), at, compile_block)
