"""The types of attributes, and of results of methods, of objects of the user's classes."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sgc.tracing.inference.cells import RECORD, Cell
from sgc.tracing.inference.library_calls import LibraryCalls
from sgc.tracing.inference.members import MEMBER
from sgc.tracing.inference.models import VALIDATING, cell_of, described_fields, is_validated
from sgc.tracing.inference.places import Function, Known, Scope

_DISPLAYS = frozenset({"list", "set", "dict"})


@dataclass(frozen=True, slots=True)
class ClassCode:
    """A class of the code. keys: the attributes of its objects, in order; defaults: the defaults of
    its fields; is_made: whether its constructor sets the fields, as in a dataclass; model: the
    types of its fields, if it is a model of pydantic's; is_checked: whether its validators may
    return other types.
    """

    name: str
    methods: dict[str, ast.FunctionDef]
    keys: tuple[str, ...]
    fields: tuple[str, ...]
    defaults: dict[str, ast.expr]
    form: str
    is_made: bool
    model: dict[str, ast.expr] | None = None
    is_checked: bool = False


class Records(LibraryCalls):
    """The types of attributes and methods of objects of the user's classes."""

    classes: dict[str, ClassCode]
    module: Scope

    @abstractmethod
    def known(self, node: Function, outer: Scope) -> Known:
        """A function of the code."""

    def read_classes(self) -> None:
        self.classes = {}
        for node in self.code.body:
            if isinstance(node, ast.ClassDef) and node.name not in self.enumerations:
                self.classes[node.name] = _class_code(node, self.classes)

    def own_class(self, function: ast.expr, scope: Scope) -> ClassCode | None:
        """The class that an expression names."""
        is_name = isinstance(function, ast.Name) and scope.cell(function.id) is None
        return self.classes.get(function.id) if is_name else None  # type: ignore[attr-defined]

    def made(self, node: ast.Call, of: ClassCode, scope: Scope) -> Cell:
        """A new object of a class."""
        given = [self.of(each, scope) for each in node.args]
        named = [(each.arg, self.of(each.value, scope)) for each in node.keywords]
        is_plain = not any(isinstance(each, ast.Starred) for each in node.args)
        if of.model is not None:
            return self.validated(of, [*given, *(cell for _, cell in named)])
        made = self._object(of)
        if not is_plain or any(name is None for name, _ in named):
            for cell in (*given, *(cell for _, cell in named)):
                self.cells.spoil(cell)
            self.cells.spoil(made)
            return made
        init = of.methods.get("__post_init__" if of.is_made else "__init__")
        if of.is_made:
            for name, cell in (*zip(of.fields, given, strict=False), *named):
                self._put_attribute(of.name, name or "", cell)
            for name, default in of.defaults.items():
                self._put_attribute(of.name, name, self._default(default))
            given, named = [], []
        if init is not None:
            self._method_of(init, made, given, named)
        return made

    def validated(self, of: ClassCode, given: Sequence[Cell]) -> Cell:
        """A new model, whose values pydantic makes from the arguments."""
        for cell in given:
            self.cells.spoil(cell)
        return self._object(of)

    def called_class(
        self, function: ast.expr, scope: Scope, node: ast.Call, keywords: Sequence[Cell]
    ) -> Cell | None:
        """The result of a class method of a model or enumeration; None for another function."""
        if not isinstance(function, ast.Attribute):
            return None
        if self.enumeration(function.value, scope) is not None:
            return self._of_enumeration(function, scope, node, keywords)
        if function.attr not in VALIDATING:
            return None
        of = self.own_class(function.value, scope)
        if of is None or of.model is None:
            return None
        return self.validated(of, [*(self.of(each, scope) for each in node.args), *keywords])

    def _of_enumeration(
        self, function: ast.Attribute, scope: Scope, node: ast.Call, keywords: Sequence[Cell]
    ) -> Cell:
        """The result of a function of an enumeration; a class method gets the class."""
        of = self.enumeration(function.value, scope)
        assert of is not None
        method, given = of.methods.get(function.attr), [self.of(each, scope) for each in node.args]
        how = (
            [each.id for each in method.decorator_list if isinstance(each, ast.Name)]
            if method
            else []
        )
        if method is None or keywords or how not in (["classmethod"], ["staticmethod"]):
            for each in (*given, *keywords):
                self.cells.spoil(each)
            return self.cells.any()
        if how == ["classmethod"]:
            given.insert(0, self.cells.holding("list", self.cells.new(of.kind)))
        return self.applied(self.known(method, self.module), given)

    def _model_cell(self, name: str) -> Cell | None:
        of = self.classes.get(name)
        return None if of is None or of.model is None else self._object(of)

    def _object(self, of: ClassCode) -> Cell:
        known = self.cells.records.get(of.name)
        if known is None and of.model is not None:
            any_ = self.cells.any
            made = [
                any_() if of.is_checked else cell_of(form, self.cells, self._model_cell)
                for form in of.model.values()
            ]
            return self.cells.record(of.name, of.keys, of.form, made)
        cells = [self.cells.new() for _ in of.keys] if known is None else known.cells
        return self.cells.record(of.name, of.keys, of.form, cells)

    def restored(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        """An object of a class, made from a dict of its attributes."""
        of = self.own_class(node.args[0], scope)
        if of is None or not isinstance(node.args[1], ast.Dict):
            return self.cells.any()
        made = self._object(of)
        for key, value in zip(node.args[1].keys, node.args[1].values, strict=True):
            assert isinstance(key, ast.Constant)
            self._put_attribute(of.name, str(key.value), self.of(value, scope))
        return made

    def replaced(self, node: ast.Call, scope: Scope, given: list[Cell]) -> Cell:
        """`dataclasses.replace`."""
        if len(given) != 1 or any(each.arg is None for each in node.keywords):
            return self.cells.any()
        for name in self.cells.found(given[0]).names:
            for each in node.keywords:
                cell = self.of(each.value, scope)
                self._put_attribute(name.removeprefix(RECORD), each.arg or "", cell)
        return self.joined(given, self.at(node, "replaced"))

    def _default(self, node: ast.expr) -> Cell:
        if not isinstance(node, ast.Call):
            return self.of(node, self.module)
        for each in node.keywords:
            if each.arg == "default":
                return self.of(each.value, self.module)
            if each.arg == "default_factory" and isinstance(each.value, ast.Name):
                name, of = each.value.id, self.at(each, "item")
                if name in _DISPLAYS:
                    return self.cells.holding(name, of, *([of] if name == "dict" else []))
        return self.cells.any()

    def _put_attribute(self, name: str, key: str, value: Cell) -> None:
        known = self.cells.records.get(name)
        cell = None if known is None else known.cell(key)
        if cell is None:
            self.cells.spoil(value)
        else:
            self.cells.flow(value, cell)

    def set_attribute(self, target: ast.Attribute, value: Cell, scope: Scope) -> None:
        receiver = self.cells.found(self.of(target.value, scope))
        for name in receiver.names:
            if name.startswith(RECORD):
                self._put_attribute(name.removeprefix(RECORD), target.attr, value)
        if receiver.is_any:
            self.cells.spoil(value)

    def attribute(self, node: ast.Attribute, of: Cell) -> Cell:
        """The value of an attribute that is not a function."""
        receiver, found = self.cells.found(of), self.at(node, "attribute")
        is_known = not receiver.is_any
        for name in sorted(receiver.names - {"None"}):
            is_known = is_known and self._attribute_of(name, node.attr, of, found)
        if not is_known:
            self.cells.spoil(of)
            self.cells.make_any(found)
        return found

    def _attribute_of(self, name: str, key: str, of: Cell, found: Cell) -> bool:
        if name.startswith(MEMBER):
            return self._attribute_of_member(name.removeprefix(MEMBER), key, of, found)
        if not name.startswith(RECORD):
            return False
        known = self.cells.records[name.removeprefix(RECORD)]
        cell = known.cell(key)
        method = self._own_method(known.name, key)
        if cell is not None:
            self.cells.flow(cell, found)
        elif method is not None and _is_property(method):
            self.cells.flow(self._method_of(method, of, [], []), found)
        else:
            return False
        return True

    def _attribute_of_member(self, name: str, key: str, of: Cell, found: Cell) -> bool:
        known = self.enumerations.get(name)
        method = known.methods.get(key) if known is not None else None
        if key == "name":
            self.add(found, "str")
        elif known is not None and key == "value" and known.values:
            for kind in known.values:
                self.add(found, kind)
        elif method is not None and _is_property(method):
            self.cells.flow(self._method_of(method, of, [], []), found)
        else:
            return False
        return True

    def _own_method(self, name: str, key: str) -> ast.FunctionDef | None:
        of = self.classes.get(name)
        return None if of is None else of.methods.get(key)

    def called_method(
        self,
        name: str,
        key: str,
        receiver: Cell,
        given: Sequence[Cell],
        named: Sequence[tuple[str | None, Cell]],
    ) -> Cell | None:
        """The result of a method of an object; None if the method's code is not known."""
        method = None
        if name.startswith(RECORD):
            method = self._own_method(name.removeprefix(RECORD), key)
        elif name.startswith(MEMBER) and name.removeprefix(MEMBER) in self.enumerations:
            method = self.enumerations[name.removeprefix(MEMBER)].methods.get(key)
        if method is None or any(arg is None for arg, _ in named):
            return None
        if method.decorator_list:  # a static or class method
            return None
        return self._method_of(method, receiver, given, named)

    def _method_of(
        self,
        method: ast.FunctionDef,
        receiver: Cell,
        given: Sequence[Cell],
        named: Sequence[tuple[str | None, Cell]],
    ) -> Cell:
        known = self.known(method, self.module)
        for name, cell in named:
            if name in known.scope.cells:
                self.cells.flow(cell, known.scope.cells[name])
            else:
                self.cells.spoil(cell)
        if method.args.vararg or method.args.kwarg:
            self.called_by_others(known)
        return self.applied(known, [receiver, *given])


def _is_property(method: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "property" for d in method.decorator_list)


def _class_code(node: ast.ClassDef, classes: dict[str, ClassCode]) -> ClassCode:
    bases = [each.id for each in node.bases if isinstance(each, ast.Name)]
    known = [classes[name] for name in bases if name in classes]
    model = described_fields(node)
    if model is not None:
        return _model_code(node, model, known)
    own = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    methods = {name: each for of in reversed(known) for name, each in of.methods.items()} | own
    annotated = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    names = [each.target.id for each in annotated if isinstance(each.target, ast.Name)]
    defaults = {
        each.target.id: each.value
        for each in annotated
        if each.value is not None and isinstance(each.target, ast.Name)
    }
    forms = ["tuple"] * ("NamedTuple" in bases) + [of.form for of in known if of.form]
    forms += ["frozen"] * any(map(_is_frozen, node.decorator_list))
    form = forms[0] if forms else ""
    is_made = form == "tuple" or bool(node.decorator_list) or any(of.is_made for of in known)
    fields = [name for of in known for name in of.fields]
    fields += [name for name in names if name not in fields] if is_made else []
    is_made = is_made and "__init__" not in own
    stored = [name for each in methods.values() for name in _stored(each)]
    inherited = [name for of in known for name in of.keys]
    keys = tuple(dict.fromkeys([*fields, *inherited, *([] if form == "tuple" else stored)]))
    every = {name: each for of in known for name, each in of.defaults.items()} | defaults
    return ClassCode(node.name, methods, keys, tuple(fields), every, form, is_made)


def _model_code(
    node: ast.ClassDef, model: dict[str, ast.expr], known: list[ClassCode]
) -> ClassCode:
    methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    is_checked = is_validated(node) or any(of.is_checked for of in known)
    for of in known:
        methods, model = of.methods | methods, (of.model or {}) | model
    keys = tuple(model)
    return ClassCode(node.name, methods, keys, keys, {}, "", True, model, is_checked)


def has_values(node: ast.ClassDef) -> bool:
    """Whether a class has changeable attributes that all its objects share."""
    values = [
        each.value
        for each in node.body
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None
    ]
    return not all(isinstance(each, ast.Constant) or _is_field(each) for each in values)


def _is_field(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "field"
    )


def _is_frozen(decorator: ast.expr) -> bool:
    named = decorator.keywords if isinstance(decorator, ast.Call) else []
    return any(
        each.arg == "frozen" and isinstance(each.value, ast.Constant) and each.value.value is True
        for each in named
    )


def _stored(method: ast.FunctionDef) -> Iterator[str]:
    """The attributes that a method sets on its object, in order."""
    args = [*method.args.posonlyargs, *method.args.args]
    own = args[0].arg if args else ""
    found = [
        each
        for each in ast.walk(method)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
        and isinstance(each.value, ast.Name) and each.value.id == own
    ]  # fmt: skip
    yield from (
        each.attr for each in sorted(found, key=lambda each: (each.lineno, each.col_offset))
    )
