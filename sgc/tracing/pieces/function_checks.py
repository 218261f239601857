"""What the syntax of a function must say, so that code can be judged and made by it."""

from __future__ import annotations

import ast
from types import FunctionType

from sgc.tracing.pieces.changes import CHANGERS, DECIDING
from sgc.tracing.pieces.constants import NotData
from sgc.tracing.pieces.names import called_variables

# What would tell which fields of a model were given, or skip their validation.
_OF_MODELS = frozenset({"model_fields_set", "model_construct", "model_extra", "exclude_unset"})


def refuse_hidden(node: ast.AST) -> None:
    """Refuses a part of a program that calls a variable of its own by a name of Python's by which
    code is judged, or imports a function so judged by another name."""
    for name in called_variables(node) & DECIDING:
        raise NotData(f"{name} is not Python's {name}")
    for each in ast.walk(node):
        used = each.attr if isinstance(each, ast.Attribute) else getattr(each, "arg", None)
        if used in _OF_MODELS:
            raise NotData(f"{used} of a model is not known to code")
        if isinstance(each, ast.alias) and each.asname and each.name in CHANGERS | DECIDING:
            raise NotData(f"{each.name} is called {each.asname}")


def refuse_defaults(node: ast.FunctionDef | ast.Lambda, function: FunctionType) -> None:
    """Refuses a function whose defaults are no constants, or not those of its source."""
    defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
    if not all(isinstance(each, ast.Constant) for each in defaults):
        raise NotData("a default is no constant")
    if _defaults_of(function) != _constants(node.args):
        raise NotData(f"the defaults of {function.__name__} are not what its source says")


def _defaults_of(function: FunctionType) -> tuple[str, dict[str, str]]:
    named = function.__kwdefaults__ or {}
    return repr(function.__defaults__ or ()), {name: repr(each) for name, each in named.items()}


def _constants(args: ast.arguments) -> tuple[str, dict[str, str]]:
    """The defaults that a function's source says, which are constants."""
    pairs = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    named = {arg.arg: ast.literal_eval(each) for arg, each in pairs if each is not None}
    plain = tuple(ast.literal_eval(each) for each in args.defaults)
    return repr(plain), {name: repr(each) for name, each in named.items()}
