"""`@sgc.tool`: Python functions that programs may call while they run.

A tool called in a program becomes a node that names it: interpreted, the call waits for its value;
traced, nothing is called. Called anywhere else, it is the plain function. A compiled program calls
tools by name; the caller of the run says which functions they are (`resolve_tools`).
"""

from __future__ import annotations

import functools
import importlib
import inspect
import types as python_types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, overload

from sgc.core.places import here
from sgc.core.session import Session, current_session
from sgc.errors import ArgumentError, ToolError, TraceError, UsageError
from sgc.ir import types
from sgc.ir.graph import Lit, Operand
from sgc.ir.types import Type
from sgc.runtime.executor.interface.plain import canonical, checked
from sgc.runtime.executor.interface.tools import EFFECTS, AllowedTools, ToolImpl

_TYPES: Mapping[Any, Type] = {
    inspect.Signature.empty: types.TEXT, str: types.TEXT, int: types.INT, float: types.FLOAT,
    bool: types.BOOL, dict: types.JSON, Any: types.JSON, list: types.JSON,
}  # fmt: skip

_STARS: Mapping[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**",
}  # fmt: skip

# Tools that programs call while they are traced, by name, for the compiled program.
_met: ContextVar[dict[str, Tool] | None] = ContextVar("sgc_met_tools", default=None)


class Tool:
    """A function of the host that programs may call; see `tool`."""

    def __init__(
        self,
        python: Callable[..., Any],
        effect: str = "effect",
        timeout_s: float | None = None,
        on_error: Any = None,
    ) -> None:
        if not isinstance(python, python_types.FunctionType):
            raise UsageError(f"@sgc.tool takes a Python function, found {python!r}")
        code = python.__code__
        self.python = python
        self.where = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
        self.name = f"{_module_of(python)}:{python.__name__}"
        self.effect = self._checked_effect(effect)
        self.timeout_s = self._checked_timeout(timeout_s)
        self._parameters = inspect.signature(python)
        hints = _hints(python)
        self.signature = _signature_text(python, self._parameters, hints)
        self.type = self._checked_type(hints.get("return", self._parameters.return_annotation))
        self.on_error = None if on_error is None else self._checked_on_error(on_error)
        functools.update_wrapper(self, python)

    @property
    def impl(self) -> ToolImpl:
        """The tool as the executor needs it."""
        is_async = inspect.iscoroutinefunction(self.python)
        return ToolImpl(self.name, self.signature, self.python, is_async, self.effect)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Inside a program, calls the tool as part of the run; else calls the plain function."""
        session = current_session()
        if session is None:
            return self.python(*args, **kwargs)
        self._check_arguments(session, args, kwargs)
        session.allow_tool(self.impl)
        if session.is_tracing:
            _note(self)
        fields: dict[str, Operand] = {
            "name": Lit(self.name),
            "args": tuple(session.operand(arg) for arg in (*args, *kwargs.values())),
            **({"keys": tuple(map(Lit, kwargs))} if kwargs else {}),
            "effect": Lit(self.effect),
            "signature": Lit(self.signature),
        }
        if session.mapped_path:
            fields["path"] = Lit(session.mapped_path)
        for name in ("timeout_s", "on_error"):
            if (value := getattr(self, name)) is not None:
                fields[name] = Lit(value)
        catches = session.is_caught()
        if catches:
            fields["catches"] = Lit(True)
        (symbol,) = session.emit("tool", [(self.python.__name__, self.type)], **fields)
        if catches:
            session.raise_failed(symbol)
        return session.read(symbol)

    def unfit(self, why: str) -> str:
        """The error for arguments that the tool does not take."""
        return f"the tool {self.name!r} is {self.signature}: {why}"

    def _check_arguments(
        self, session: Session, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        try:
            self._parameters.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(self.unfit(str(error)), where=here()) from error
        for value in (*args, *kwargs.values()):
            if (found := _unfit(value, session)) is not None:
                raise ArgumentError(
                    f"the tool {self.name!r} is given a {type(found).__name__}",
                    where=here(),
                    hint="tools take text, numbers, bools, and lists and dicts of them",
                )

    def _checked_effect(self, effect: Any) -> str:
        if effect not in EFFECTS:
            raise UsageError(
                f"the effect of a tool is one of {', '.join(EFFECTS)}, found {effect!r}",
                where=self.where,
            )
        return str(effect)

    def _checked_timeout(self, timeout_s: Any) -> float | None:
        if timeout_s is None:
            return None
        is_number = isinstance(timeout_s, (int, float)) and not isinstance(timeout_s, bool)
        if not is_number or not 0 < timeout_s < float("inf"):
            raise UsageError(
                f"timeout_s must be a number of seconds above 0, found {timeout_s!r}",
                where=self.where,
            )
        return float(timeout_s)

    def _checked_type(self, annotation: Any) -> Type:
        found = _type_of(annotation)
        if found is None:
            raise UsageError(
                f"the tool {self.name!r} is annotated to give {_annotation_text(annotation)}",
                where=self.where,
                hint="annotate str, int, float, bool, list[str], dict or Any; without one, str",
            )
        return found

    def _checked_on_error(self, value: Any) -> str:
        try:
            return canonical(checked(value, self.type))
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"on_error of the tool {self.name!r} is no {self.type}, which it returns: {error}",
                where=self.where,
            ) from error

    def __repr__(self) -> str:
        return f"<sgc.tool {self.name}{self.signature} effect={self.effect}>"


def _module_of(python: python_types.FunctionType) -> str:
    """The module's name; for a file run by its path, the file's stem."""
    module = python.__module__ or "__main__"
    if module == "__main__" or module.startswith("_sgc_program_"):
        file = Path(python.__code__.co_filename)
        return file.stem if file.suffix == ".py" else "__main__"
    return module


def _hints(python: python_types.FunctionType) -> dict[str, Any]:
    try:
        return typing.get_type_hints(python)
    except (NameError, TypeError, AttributeError):  # names that only a type checker imports
        return dict(python.__annotations__)


def _signature_text(
    python: python_types.FunctionType, signature: inspect.Signature, hints: Mapping[str, Any]
) -> str:
    """The signature as text, which does not depend on how annotations are written."""
    parts = []
    for parameter in signature.parameters.values():
        text = _STARS.get(parameter.kind, "") + parameter.name
        if parameter.name in hints:
            text += f": {_annotation_text(hints[parameter.name])}"
        parts.append(text + (" = …" if parameter.default is not parameter.empty else ""))
    gives = f" -> {_annotation_text(hints['return'])}" if "return" in hints else ""
    return f"({', '.join(parts)}){gives}"


def _annotation_text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _type_of(annotation: Any) -> Type | None:
    """The type of a tool's result from its annotation; None if it is not plain data."""
    if isinstance(annotation, python_types.GenericAlias) or typing.get_origin(annotation):
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is list and args == (str,):
            return types.list_of(types.TEXT)
        return types.JSON if origin in (list, dict) else None
    try:
        return _TYPES.get(annotation)
    except TypeError:
        return None


def _unfit(value: Any, session: Session) -> Any:
    """The first part of an argument that no tool can take, else None."""
    if session.is_abstract(value) or isinstance(value, (str, int, float)):
        return None
    if isinstance(value, (list, tuple)):
        items: Iterable[Any] = value
    elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
        items = value.values()
    else:
        return value
    return next((found for item in items if (found := _unfit(item, session)) is not None), None)


# -- tools that a program is seen to call ---------------------------------------------------


@contextmanager
def met_tools() -> Iterator[dict[str, Tool]]:
    """Collects the tools that programs call while they are traced inside."""
    found: dict[str, Tool] = {}
    token = _met.set(found)
    try:
        yield found
    finally:
        _met.reset(token)


def _note(tool: Tool) -> None:
    found = _met.get()
    if found is not None and found.setdefault(tool.name, tool) is not tool:
        raise TraceError(
            f"the program calls two different tools that are both named {tool.name!r}",
            where=here(),
            hint="rename one of them; a compiled program knows a tool by its name",
        )


# -- tools that a caller allows ---------------------------------------------------------------


def resolve_tools(given: Iterable[Any]) -> AllowedTools:
    """The tools given as `allow_tools`: tools, functions, or `module:name`, which is imported.

    Raises ToolError for a name that is no tool or function.
    """
    if isinstance(given, (str, Tool)) or not isinstance(given, Iterable):
        raise UsageError(
            f"allow_tools takes a list of tools, found {given!r}", hint="allow_tools=[my_tool]"
        )
    impls = [_allowed(each) for each in given]
    return AllowedTools({impl.name: impl for impl in impls})


def _allowed(given: Any) -> ToolImpl:
    if isinstance(given, Tool):
        return given.impl
    if isinstance(given, ToolImpl):
        return given
    if isinstance(given, str):
        return _allowed(_named(given))
    if isinstance(given, python_types.FunctionType):
        wrapped = Tool(given).impl
        # A plain function declares no effect: the program's declaration holds.
        return ToolImpl(wrapped.name, wrapped.signature, wrapped.call, wrapped.is_async)
    raise UsageError(f"allow_tools takes functions and names of them, found {given!r}")


def _named(given: str) -> Any:
    module, colon, name = given.partition(":")
    if not colon or not module or not name:
        raise UsageError(f"a tool is named module:name, found {given!r}")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise ToolError(f"the tool {given!r} cannot be imported: {error}") from error
    if not isinstance(found, (Tool, python_types.FunctionType)):
        raise ToolError(f"{given!r} is no tool: {module} has no function {name!r}")
    return found


def tools_in(module: python_types.ModuleType) -> list[Tool]:
    """The tools in a module, including imported ones."""
    return [value for value in vars(module).values() if isinstance(value, Tool)]


@overload
def tool(func: Callable[..., Any]) -> Tool: ...
@overload
def tool(
    func: None = None, *, effect: str = "effect", timeout_s: float | None = None,
    on_error: Any = None,
) -> Callable[[Callable[..., Any]], Tool]: ...  # fmt: skip


def tool(
    func: Callable[..., Any] | None = None,
    *,
    effect: str = "effect",
    timeout_s: float | None = None,
    on_error: Any = None,
) -> Any:
    """Makes a Python function, sync or async, callable from programs.

    The result has the annotated type: str (also without annotation), int, float, bool, list[str];
    dict and Any are any JSON. A call that raises fails the run with a ToolError, unless the program
    handles it or `on_error` is given. A synchronous function runs on a thread, which cannot be
    stopped: after its timeout the function keeps running, and the run continues without it.

    Args:
        effect: `pure` (only its result matters), `idempotent` (repeating it does no harm) or
            `effect`; tools that are not pure run in the program's order.
        timeout_s: a call that takes longer has failed.
        on_error: the value that the program sees if a call fails.
    """

    def make(python: Callable[..., Any]) -> Tool:
        return Tool(python, effect, timeout_s, on_error)

    return make if func is None else make(func)
