"""Writes the types of a file's programs for type checkers: a `.pyi` file beside it.

A program's calls take its arguments and a run's options, and give states whose variables have the
types that tracing finds. What else is in the file keeps its names and annotations.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from sgc.errors import SgcError
from sgc.ir.graph import Graph, Lit, Operand, Ref, operand_refs
from sgc.ir.types import Kind, Type
from sgc.passes.facts.kept_results import main_states
from sgc.programs.function import Function
from sgc.runs.options import HOW_DEFAULTS, OPTION_NAMES
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.convert.module_names import bound_in

WRITTEN_BY = "by `sgc stubs`"  # in the first line of all stubs
_HEAD = '''"""Types of {file} for type checkers, by `sgc stubs`; write them anew after changes."""

from collections.abc import Callable as _Callable
from typing import Any as _Any, Literal as _Literal, overload as _overload

from sgc import Function as _Function, ProgramState as _ProgramState, RunState as _RunState
'''
_KINDS = {
    Kind.TEXT: "str", Kind.INT: "int", Kind.FLOAT: "float", Kind.BOOL: "bool",
}  # fmt: skip
_OPTIONS = {
    "backend": "_Any", "on_text": "_Callable[..., _Any] | None", "stream": "bool",
    "use_thread": "bool", "stop": "str | list[str] | tuple[str, ...]",
    "stop_regex": "str | list[str] | tuple[str, ...]",
    "stop_token_ids": "list[int] | tuple[int, ...]", "max_new_tokens": "int",
    "allow_tools": "_Any", "log": "_Any",
}  # fmt: skip
_LITERALS = (str, int, float, bool, bytes)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is known of a program's states. why: why nothing more is, empty if something is."""

    variables: Mapping[str, str]
    why: str = ""


def stub_of(source: str, file: str, values: Mapping[str, Any]) -> str:
    """The text of a `.pyi` for a file's source. values: what its names stand for once imported."""
    programs = {name: value for name, value in values.items() if isinstance(value, Function)}
    lines = [_HEAD.format(file=file)]
    seen: set[str] = set()
    tree = ast.parse(source)
    for node in tree.body:
        program = programs.get(getattr(node, "name", ""))
        is_program = isinstance(node, ast.FunctionDef) and program is not None
        lines += _program(node, program) if is_program else _statement(node, values)  # type: ignore[arg-type]
        seen.update(_names(node))
    bound = set(bound_in(tree)) - seen  # inside `if`, `try` and loops
    rest = [name for name in values if name in bound and not name.startswith("_")]
    lines += [f"{name}: {_type_name(values[name])}" for name in rest]
    return "\n".join(lines).rstrip() + "\n"


# -- programs -----------------------------------------------------------------------------------


def _program(node: ast.FunctionDef, program: Function) -> Iterator[str]:
    shown = _shown(program)
    base = "".join(part.capitalize() for part in node.name.split("_"))
    returned = ast.unparse(node.returns) if node.returns is not None else "_Any"
    for name, of in ((f"_{base}Run", "_RunState"), (f"_{base}Stream", "_ProgramState")):
        yield from _state(name, of, shown, returned)
    given = _parameters(node)
    yield f"class _{base}(_Function):"
    yield f"    def __call__({given}) -> _{base}Run: ..."
    yield f"    def run({given}) -> _{base}Stream: ..."
    yield f"    async def arun({given}) -> _{base}Run: ..."
    yield ""
    yield f"{node.name}: _{base}"
    yield ""


def _state(name: str, of: str, shown: _Shown, returned: str) -> Iterator[str]:
    yield f"class {name}({of}):"
    if shown.why:
        yield f"    # The types of its variables are not known: {shown.why}"
    if of == "_RunState":
        yield "    @property"
        yield f"    def ret_value(self) -> {returned}: ..."
    else:
        yield f"    ret_value: {returned}"
    for variable, type_ in shown.variables.items():
        yield "    @_overload"
        yield f"    def __getitem__(self, name: _Literal[{variable!r}]) -> {type_}: ..."
    if shown.variables:
        yield "    @_overload"
        yield "    def __getitem__(self, name: str) -> _Any: ..."
    yield ""


def _parameters(node: ast.FunctionDef) -> str:
    """A program's parameters without its stream, then a run's options that it has no name for."""
    own = ast.parse(ast.unparse(ast.FunctionDef(
        "f", _without_stream(node.args), [ast.Expr(ast.Constant(...))], [], lineno=1
    ))).body[0]  # fmt: skip
    assert isinstance(own, ast.FunctionDef)
    args = own.args
    for each in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        each.annotation = each.annotation or ast.Name("_Any", ast.Load())
    args.defaults = [ast.Constant(...) for _ in args.defaults]
    args.kw_defaults = [each and ast.Constant(...) for each in args.kw_defaults]
    taken = {each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    for name, type_ in _option_types().items():
        if name not in taken:
            args.kwonlyargs.append(ast.arg(name, ast.parse(type_, mode="eval").body))
            args.kw_defaults.append(ast.Constant(...))
    return f"self, {ast.unparse(args)}"


def _without_stream(args: ast.arguments) -> ast.arguments:
    n_left = len(args.posonlyargs) + len(args.args) - 1
    return ast.arguments(
        args.posonlyargs[1:], args.args if args.posonlyargs else args.args[1:], args.vararg,
        args.kwonlyargs, args.kw_defaults, args.kwarg, args.defaults[-n_left:] if n_left else [],
    )  # fmt: skip


def _option_types() -> dict[str, str]:
    types = {field.name: str(field.type) for field in fields(RunOptions)}
    names = (*HOW_DEFAULTS, *sorted(OPTION_NAMES))
    return {name: _OPTIONS.get(name) or types[name] for name in names}


def _shown(program: Function) -> _Shown:
    try:
        graph = program.trace()
    except SgcError as error:
        return _Shown({}, str(error).splitlines()[0])
    return _Shown(_variables(graph))


def _variables(graph: Graph) -> dict[str, str]:
    """The variables of the main stream that every run has, with their types."""
    found: list[dict[str, str]] = []
    values = {each.value.name: each.value.type for each in graph.params}
    for block in graph.blocks:
        values |= {each.name: each.type for each in block.params}
        values |= {each.name: each.type for node in block.nodes for each in node.results}
    main = main_states(graph)
    for node in graph.nodes():
        if node.op == "publish" and not main.isdisjoint(operand_refs(node.get("stream"))):
            keys, items = node.get("keys"), node.get("items")
            assert isinstance(keys, tuple)
            assert isinstance(items, tuple)
            names = [str(key.value) for key in keys if isinstance(key, Lit)]
            pairs = zip(names, items, strict=True)
            found.append({name: _type_of(item, values) for name, item in pairs})
    if not found:
        return {}
    common = [name for name in found[0] if all(name in each for each in found)]
    return {name: " | ".join(dict.fromkeys(each[name] for each in found)) for name in common}


def _type_of(operand: Operand, values: Mapping[str, Type]) -> str:
    if isinstance(operand, Ref):
        return _shown_type(values[operand.name])
    if isinstance(operand, Lit):
        return _type_name(operand.value)
    return "list[_Any]"


def _shown_type(type_: Type) -> str:
    if type_.kind is Kind.CHOICE and type_.options:
        return f"_Literal[{', '.join(map(repr, type_.options))}]"
    if type_.item is not None:
        return f"list[{_shown_type(type_.item)}]"
    return _KINDS.get(type_.kind, "_Any")


# -- what else is in the file -----------------------------------------------------------------


def _statement(node: ast.stmt, values: Mapping[str, Any]) -> list[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        return [] if is_future else [ast.unparse(node)]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [*ast.unparse(_emptied(node)).split("\n"), ""]
    if isinstance(node, ast.AnnAssign):
        return [ast.unparse(ast.AnnAssign(node.target, node.annotation, None, node.simple))]
    if isinstance(node, ast.Assign):
        return [f"{name}: {_type_name(values.get(name))}" for name in _names(node)]
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        return [line for each in node.body for line in _statement(each, values)]
    return []


def _emptied(node: ast.stmt) -> ast.stmt:
    """A definition without the bodies of its functions."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        node.body = [ast.Expr(ast.Constant(...))]
    elif isinstance(node, ast.ClassDef):
        kept = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
        body = [_emptied(each) for each in node.body if isinstance(each, kept)]
        node.body = body or [ast.Expr(ast.Constant(...))]
    return node


def _names(node: ast.stmt) -> list[str]:
    """The names that a statement at the top of a file binds."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(each.asname or each.name).partition(".")[0] for each in node.names]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        inside = [each for target in targets for each in ast.walk(target)]
        return [each.id for each in inside if isinstance(each, ast.Name)]
    return []


def _type_name(value: Any) -> str:
    return type(value).__name__ if type(value) in _LITERALS else "_Any"
