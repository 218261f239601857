"""Writes the module text of a piece of a program: its function, and everything that it uses."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import _lru_cache_wrapper, lru_cache
from inspect import isabstract
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from sgc.ir.code_names import ADDED, BUILTINS, LIBRARY
from sgc.runtime.executor.code.mutation import may_mutate
from sgc.runtime.executor.patterns.linear_regex import shape_of
from sgc.runtime.executor.patterns.regex_classes import UnsupportedPattern
from sgc.tracing.code.set_displays import written_alike
from sgc.tracing.code.trees import Function, source_of
from sgc.tracing.kinds.members import is_enumeration
from sgc.tracing.kinds.records import is_record
from sgc.tracing.pieces.effects.changes import (
    CHANGERS,
    DECIDING,
    changed_roots,
    changes_outside,
    made_inside,
)
from sgc.tracing.pieces.effects.holds import taken_names
from sgc.tracing.pieces.names import free_names, names_of
from sgc.tracing.pieces.text.caches import caches_in, is_cache
from sgc.tracing.pieces.text.classes import NoClass, UserClass, is_users, user_class, values_of
from sgc.tracing.pieces.text.constants import (
    NotData,
    Writer,
    holds_changeable,
    holds_defaulting,
    holds_made,
    is_fixed,
    is_value,
    literal,
)
from sgc.tracing.pieces.text.function_checks import (
    Changer,
    Originals,
    refuse_attributes,
    refuse_defaults,
    refuse_hidden,
    refuse_made,
    refuse_methods,
    with_callers,
)
from sgc.tracing.pieces.text.functions import in_defaults, named
from sgc.tracing.pieces.text.library import known_library, pythons
from sgc.tracing.pieces.text.plain import Plainer

MAX_FUNCTIONS = 50
MAX_CONSTANT = 4000  # characters
MISSING = object()


@lru_cache(maxsize=1024)  # repeated runs of a trace call it again
def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _copied(node: ast.ClassDef) -> ast.ClassDef:
    """Reading the text again takes a fraction of what `copy.deepcopy` does."""
    made = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(made, ast.ClassDef)
    return made


class ModuleText:
    """Collects what a piece uses. originals: returns the user's own globals for a trace's."""

    def __init__(self, originals: Originals, is_live: bool = False) -> None:
        self._originals, self._is_live = originals, is_live
        self._bound: dict[str, Any] = {}
        self._imports: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._functions: dict[str, str] = {}
        self._made: dict[str, str] = {}  # constants that hold objects of classes, or functions
        self._nodes: list[ast.FunctionDef] = []
        self._classes: dict[str, str] = {}
        self._has_changers = False
        self.lost: dict[str, bool] = {}  # sets of another order; whether theirs was fixed
        self._in_class = 0  # only methods may use `hash`: a text's differs by process
        self.classes: dict[str, UserClass] = {}
        self.asking = frozenset[str]()  # methods that objects of other classes may have

    def text(self, entry: ast.FunctionDef) -> str:
        """The module's text, which ends with the entry function."""
        nodes, classes = [entry, *self.nodes], self.classes
        refuse_methods(nodes, self.asking.union(*(each.asking for each in classes.values())))
        refuse_made(nodes, {name for name, each in classes.items() if isabstract(each.kind)})
        refuse_attributes(nodes, self._bound)
        is_changing = self._has_changers or may_mutate(nodes)
        constants, made = (
            [self._line(name, text, is_changing) for name, text in each.items()]
            for each in (self._constants, self._made)
        )
        parts = [
            *self._imports.values(), *constants, *self._classes.values(),
            *self._functions.values(), *made,
        ]  # fmt: skip
        return "\n".join([*parts, ast.unparse(entry)])

    def _line(self, name: str, text: str, is_changing: bool) -> str:
        """The line of a constant. A constant that code may change is marked, since the change may
        not be seen here; so is a `defaultdict`, to which reading a key may add the key."""
        value = self._bound[name]
        may_change = is_changing or self._is_live  # a live object may be passed to other code
        is_kept = holds_defaulting(value) or (may_change and not is_fixed(value))
        return f"{name} = {f'unchanged({text})' if is_kept else text}"

    def has(self, name: str) -> bool:
        return name in self._bound

    def free_name(self, name: str) -> str:
        """A unique name for the entry."""
        while name in self._bound or hasattr(builtins, name):
            name += "_"
        return name

    def rewritten(self, node: ast.AST) -> Any:
        """A copy of a part of the program, rewritten for code."""
        return self._plainer().of(ast.parse(_text(node)))

    def _plainer(self) -> Plainer:
        found = {n: v for n, v in self._bound.items() if is_enumeration(v)}
        enumerations = {n: tuple(v.__members__) for n, v in found.items()}
        caches = caches_in(self._bound) if self._is_live else ()
        patterns = {n: v for n, v in self._bound.items() if type(v) is re.Pattern}
        return Plainer(patterns, enumerations, self._is_live, caches)

    def need(self, name: str, names: Mapping[str, Any]) -> None:
        """Adds the value of a name in a function's globals, or a builtin."""
        value = names.get(name, MISSING)
        if value is MISSING:
            if name not in BUILTINS or (name == "hash" and not self._in_class):
                raise NotData(f"{name} is not a builtin of code")
            value = getattr(builtins, name)
        self.bind(name, value, names)

    def bind(self, name: str, value: Any, names: Mapping[str, Any] | None = None) -> None:
        """Adds a value under a name. names: the globals that it belongs to."""
        value = pythons(value)
        if name in self._bound:
            if self._bound[name] is not value:
                raise NotData(f"{name} stands for two things")
            return
        if name in ADDED:
            raise NotData(f"{name} is a reserved name of code")
        is_pythons = value is getattr(builtins, name, MISSING) or id(value) in known_library()
        if name in DECIDING and callable(value) and not is_pythons:
            raise NotData(f"{name} is not Python's {name}")
        self._bound[name] = value
        try:
            self._bind(name, value, names)
        except NotData:
            del self._bound[name]  # so that it is refused again if another method needs it
            raise

    def _bind(self, name: str, value: Any, names: Mapping[str, Any] | None) -> None:
        if self._is_live and is_cache(value):
            return  # a decorator of inner functions, the only functions that code may decorate
        if isinstance(value, ModuleType):
            self._module(name, value)
        elif isinstance(value, FunctionType):
            self._function(name, value)
        elif isinstance(value, _lru_cache_wrapper) and self._is_live:
            self._cached(name, value)
        elif is_users(value) and id(value) not in known_library():
            self._class(name, value)
        elif isinstance(value, (type, BuiltinFunctionType)) or value is NotImplemented:
            self._known(name, value)
        elif type(value) is re.Pattern:
            try:
                shape_of(value.pattern, value.flags)
            except UnsupportedPattern as error:
                raise NotData(error.message) from error
            self._need_import("re", re)
        else:
            self._constant(name, value, names or {})

    def _module(self, name: str, module: ModuleType) -> None:
        if module.__name__ not in LIBRARY:
            raise NotData(f"{module.__name__} is not a module of code")
        as_name = "" if name == module.__name__ else f" as {name}"
        self._imports[name] = f"import {module.__name__}{as_name}"

    def _need_import(self, name: str, module: ModuleType) -> None:
        if name not in self._bound:
            self._bound[name] = module
            self._module(name, module)
        elif self._bound[name] is not module:
            raise NotData(f"{name} stands for two things")

    def _known(self, name: str, value: Any) -> None:
        if getattr(builtins, name, MISSING) is value and name in BUILTINS:
            return
        found = known_library().get(id(value))
        if found is None:
            raise NotData(f"{name} is not known to code")
        module, own = found
        if own != name and own in CHANGERS | DECIDING:
            raise NotData(f"{own} is called {name}")
        self._has_changers = self._has_changers or own in CHANGERS
        as_name = "" if own == name else f" as {name}"
        self._imports[name] = f"from {module} import {own}{as_name}"

    def _function(self, name: str, function: FunctionType) -> None:
        known = known_library().get(id(function))
        if known is not None:
            self._known(name, function)
            return
        if len(self._functions) >= MAX_FUNCTIONS:
            raise NotData("it calls too many functions")
        node = source_of(function)
        if node is None:
            raise NotData(f"the source of {name} is not known")
        self._functions[name] = ""  # it may call itself
        self.needs_of(node, function)
        self._functions.pop(name)
        made = named(name, self.rewritten(node))
        self._nodes.append(made)
        self._functions[name] = ast.unparse(made)

    def _cached(self, name: str, function: _lru_cache_wrapper[Any]) -> None:
        """Adds a function whose results a run caches."""
        if function.cache_parameters()["typed"]:
            raise NotData(f"{name} is cached by the types of its arguments")
        own = self._named(name, function.__wrapped__)
        self._made[name] = f"cached({own}, {self._functions[own]!r})"

    def _class(self, name: str, kind: type) -> None:
        """Adds a user's class, with what its bases, fields and methods use."""
        try:
            found = user_class(kind, self._is_live)
            values = values_of(found)
        except NoClass as error:
            raise NotData(str(error)) from None
        if name != kind.__name__:
            raise NotData(f"{name} is called {kind.__name__} in its module")
        self.classes[name] = found
        names = self._originals(found.names)
        for each in sorted(found.reads):
            if each in found.uses:
                self.bind(each, found.uses[each])
                continue
            if isinstance(names.get(each), FunctionType) and id(names[each]) not in known_library():
                raise NotData(f"{name} calls {each} while it is made")
            self.need(each, names)
            if each in self._made:
                raise NotData(f"{name} reads {each} while it is made")
        self._in_class += 1
        asks = {node.name for node, of in found.methods if self._asks(name, node, of)}
        asking = with_callers([node for node, _ in found.methods], found.asking | asks)
        self._in_class -= 1
        made = self._with_values(_copied(found.node), values)
        if asking:
            self.classes[name] = replace(found, asking=asking)
            made.body = [each for each in made.body if getattr(each, "name", "") not in asking]
            made.body = made.body or [ast.Pass()]
        self._classes[name] = ast.unparse(self._plainer().of(made))

    def _asks(self, name: str, node: ast.FunctionDef, function: FunctionType) -> bool:
        """Adds what a method uses; returns whether the method is left out, since it is not code."""
        try:
            if vars(function).keys() - {"__isabstractmethod__"}:
                raise NotData(f"{name}.{node.name} has attributes")
            self.needs_of(node, function)
        except NotData:
            if not self._is_live or node.name.startswith("__"):
                raise
            return True
        return False

    def changes_outside(self, changing: Collection[str], changers: Mapping[str, Changer]) -> bool:
        """Whether a function may change an object that it has not made, beside the arguments that
        `changers` says it may change."""
        may_be = {name: each.changed for name, each in changers.items()}
        return any(
            changes_outside(each, may_be.get(each.name, ()), changing, changers)
            for each in self._nodes
        )

    def needs_of(self, node: Function, function: FunctionType) -> None:
        """Adds everything that a function uses."""
        refuse_hidden(node)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for each in ast.walk(node):
            if isinstance(each, ast.Nonlocal) and not cells.keys().isdisjoint(each.names):
                raise NotData(f"{function.__name__} sets a variable of an enclosing function")
        names = self._originals(function.__globals__)
        own = {"super"} if "__class__" in cells else set()
        for name in sorted((free_names(node) | in_defaults(node)) - own):
            if name in cells:
                try:
                    self.bind(name, cells[name].cell_contents)
                except ValueError:
                    raise NotData(f"{name} is not set") from None
            else:
                self.need(name, names)
        refuse_defaults(node, function)

    def _constant(self, name: str, value: Any, names: Mapping[str, Any]) -> None:
        text = written_alike(name, value, names) or self.written(value, name)
        if len(text) > MAX_CONSTANT:
            raise NotData(f"{name} is too large")
        place = self._made if holds_made(value) else self._constants
        place[name] = text

    def written(self, value: Any, name: str) -> str:
        """A variable's value as an expression; adds what the expression uses to the module."""
        writer = Writer(self._named)
        text = writer.written(value)
        self.note_lost(name, writer)
        return text

    def note_lost(self, name: str, writer: Writer) -> None:
        """Notes the names of a variable's sets whose order differs from the program's."""
        for each in ({name} if writer.lost else set()) | writer.lost - {""}:
            self.lost[each] = writer.has_lost_numbers or self.lost.get(each, False)

    def _with_values(self, node: ast.ClassDef, values: Mapping[str, Any]) -> ast.ClassDef:
        """A class statement whose attributes get these values, by name."""
        own = names_of(node.body).writes
        for each in node.body:
            for name in names_of([each]).writes & values.keys():
                assert isinstance(each, (ast.Assign, ast.AnnAssign))
                text = self._value_of_class(values[name], name)
                each.value = ast.parse(text, mode="eval").body
                if hidden := names_of([each.value]).reads & own:
                    raise NotData(f"{min(hidden)} is an attribute of {node.name}, too")
        return node

    def _value_of_class(self, value: Any, name: str) -> str:
        if is_value(value):
            return self.written(value, name)
        text, writer = literal(value)
        self.note_lost(name, writer)
        # All runs of a program share it, and a run of the graph would have one of its own.
        return f"unchanged({text})" if self._is_live and not is_fixed(value) else text

    def _named(self, name: str, value: Any) -> str:
        """The module's name for a function or class; a function may need another than its own."""
        value = pythons(value)
        found = next((each for each, of in self._bound.items() if of is value), "")
        if found:
            return found
        if isinstance(value, FunctionType):
            of, own = known_library().get(id(value), ("", ""))
            if own not in CHANGERS | DECIDING:  # code is judged by these names
                name = f"{of.replace('.', '_')}_{own}" if of else f"function_{len(self._bound)}"
        self.bind(name, value)
        return name

    @property
    def may_change(self) -> bool:
        """Whether a function, or a method of a class, may change anything."""
        return may_mutate(self.nodes)

    @property
    def nodes(self) -> list[ast.FunctionDef | ast.ClassDef]:
        """The functions and classes."""
        return [*self._nodes, *(each.node for each in self.classes.values())]

    @property
    def has_defaulting(self) -> bool:
        """Whether a constant is or holds a `defaultdict`."""
        constants = (*self._constants, *self._made)
        return any(holds_defaulting(self._bound[name]) for name in constants)

    @property
    def changeable(self) -> set[str]:
        """The names of lists, dicts and objects from outside that a function might change."""
        constants = (*self._constants, *self._made)
        return {name for name in constants if not is_fixed(self._bound[name])}

    def may_be_changed(
        self, entry: ast.FunctionDef, changing: Collection[str], changers: Mapping[str, Changer]
    ) -> bool:
        """Whether code that changes something unknown may change such a list, dict or object. It
        cannot if the object holds nothing changeable and code only iterates it, or reads its parts,
        by its name."""
        functions = [entry, *self._nodes]
        changed = {
            root
            for each in functions
            for root in changed_roots(each, made_inside(each), changing, changers)
        }
        reached = taken_names([entry, *self.nodes]) | {root for root in changed if root}
        return any(
            name in reached or is_record(self._bound[name]) or holds_changeable(self._bound[name])
            for name in self.changeable
        )

    @property
    def has_objects(self) -> bool:
        """Whether a constant is an object, whose methods may return the object itself."""
        return any(is_record(self._bound[name]) for name in (*self._constants, *self._made))

    @property
    def has_nested(self) -> bool:
        """Whether a constant holds a value that can be changed."""
        constants = (*self._constants, *self._made)
        return any(holds_changeable(self._bound[name]) for name in constants)
