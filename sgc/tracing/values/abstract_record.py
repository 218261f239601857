"""Abstract objects of the user's classes: their attributes are values of the graph, and their
methods and properties are traced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from sgc.core.places import is_ours
from sgc.core.shapes import is_model
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import has_symbol
from sgc.ir import types
from sgc.runtime.executor.code.classes.models import METHODS
from sgc.tracing.kinds.row_types import OBJECT, MemberType, OptionalType, RecordType
from sgc.tracing.values.json.abstract_object import AbstractObject


class AbstractRecord(AbstractObject):
    """An object of a class of the user's, whose attributes are known only at run time."""

    __slots__ = ()

    is_record = True

    @property
    def kind(self) -> type:
        """The object's class."""
        found: type = self.session.sites.classes[self._type.name].kind
        return found

    @property
    def _type(self) -> RecordType:
        type_ = self.symbol.type
        assert isinstance(type_, RecordType)
        return type_

    @property
    def _is_tuple(self) -> bool:
        return self._type.form == "tuple"

    def __getattribute__(self, name: str) -> Any:
        """The program's own attributes come before those of this class."""
        if name.startswith("__") or is_ours(1):
            return object.__getattribute__(self, name)
        return AbstractRecord.attribute(self, name)

    def attribute(self, name: str) -> Any:
        """The value of the program's `x.name`."""
        kind = self.kind
        found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
        if name not in self._type.keys and is_model(kind) and _is_pydantics(kind, name):
            return _of_pydantic(self, name)
        if isinstance(found, property) and found.fget is not None:
            self._refuse_super(found.fget)
            return found.fget(self)
        if name in self._type.keys:
            return self.part(name)
        if found is not None:
            self._refuse_super(found)
            return found.__get__(self, kind) if hasattr(found, "__get__") else found
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")

    def _refuse_super(self, function: Any) -> None:
        """Python's `super()` takes only an object of the class itself."""
        while function is not None:
            if "__class__" in getattr(getattr(function, "__code__", None), "co_freevars", ()):
                stop(
                    f"super() in a method of {self.session.name_of(self.symbol)}, an object known "
                    "only at run time",
                    INTERPRET,
                )
            function = getattr(function, "__wrapped__", None)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(name)

    def part(self, name: str) -> Any:
        """An attribute that is data; code may not change it, since others may share its parts."""
        type_ = self._type.row[self._type.keys.index(name)]
        code = f"def piece(a):\n    return a.{name}"
        value = self.session.coded(code, (self,), type_)
        if has_symbol(value):
            self.session.copies.add(value.symbol.name)
        return self.session.seen(value)

    def parts(self) -> list[Any]:
        return [self.part(name) for name in self._type.keys]

    def __setattr__(self, name: str, value: Any) -> None:
        if is_ours(1) and name in ("symbol", "session"):
            object.__setattr__(self, name, value)
            return
        stop(
            f"the attribute {name} of {self.session.name_of(self.symbol)}, an object known only at "
            "run time, is set",
            hint="make a new object, or keep the value in a list or dict of its own; or "
            + INTERPRET,
        )

    def is_a(self, *of: type) -> bool:
        return issubclass(self.kind, of)

    def _has(self, name: str) -> bool:
        return any(name in vars(base) for base in self.kind.__mro__[:-1])

    # -- Python's own operations -----------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        if not self._is_tuple:
            self.needs_type()
        return iter(self.parts())

    def __getitem__(self, key: Any) -> Any:
        if not self._is_tuple or type(key) is not int:
            return self._coded("a[b]", key)
        return self.part(self._type.keys[key])

    def length(self) -> Any:
        return self._coded("len(a)", type_=types.INT)

    def __bool__(self) -> bool:
        if self._is_tuple:
            return bool(self._type.keys)
        if not self._has("__bool__") and not self._has("__len__"):
            return True
        return bool(self._coded("bool(a)", type_=types.BOOL))

    def __eq__(self, other: object) -> Any:
        return self._coded("a == b", other, type_=types.BOOL)

    def __ne__(self, other: object) -> Any:
        return self._coded("a != b", other, type_=types.BOOL)

    def __contains__(self, item: Any) -> bool:
        return bool(self._coded("b in a", item, type_=types.BOOL))

    __hash__ = AbstractObject.__hash__

    def __str__(self) -> str:
        text: str = self._coded("str(a)", type_=types.TEXT)
        return text

    def __repr__(self) -> str:
        text: str = self._coded("repr(a)", type_=types.TEXT)
        return text

    def __format__(self, spec: str) -> str:
        text: str = self._coded("format(a, b)", spec, type_=types.TEXT)
        return text

    def as_appended(self) -> Any:
        return self.needs_type()

    def needs_type(self, *args: Any, **kwargs: Any) -> NoReturn:
        stop(
            f"{self.session.name_of(self.symbol)} is an object of {self._type.name} known only at "
            "run time",
            hint="read its attributes; or " + INTERPRET,
        )

    def _coded(self, expression: str, *others: Any, type_: types.Type = OBJECT) -> Any:
        names = ("a", "b")[: 1 + len(others)]
        code = f"def piece({', '.join(names)}):\n    return {expression}"
        return self.session.seen(self.session.coded(code, (self, *others), type_))


def _is_pydantics(kind: type, name: str) -> bool:
    """Whether an attribute of a model is defined by pydantic, not by the user's classes."""
    of = next((base for base in kind.__mro__ if name in vars(base)), None)
    return of is not None and of.__module__.startswith("pydantic.")


def _of_pydantic(of: AbstractRecord, name: str) -> Any:
    """A method that pydantic's models have, as code."""
    session, type_ = of.session, of.symbol.type
    assert isinstance(type_, RecordType)
    if name not in METHODS:
        stop(f"{name} of {session.name_of(of.symbol)}, an object known only at run time", INTERPRET)

    def call(*args: Any, **how: Any) -> Any:
        if args:
            stop(f"{name} with arguments that have no name", INTERPRET)
        names = [f"a{n}" for n in range(len(how))]
        given = ", ".join(f"{key}={each}" for key, each in zip(how, names, strict=True))
        code = f"def piece({', '.join(['a', *names])}):\n    return a.{name}({given})"
        made = {"model_dump_json": types.TEXT, "model_copy": type_}.get(name, OBJECT)
        if name == "model_copy" and "update" in how:  # pydantic does not validate the update
            made = type_.with_row([OBJECT] * len(type_.row))
        value = session.coded(code, (of, *how.values()), made)
        if has_symbol(value):
            session.copies.add(value.symbol.name)
        return session.seen(value)

    return call


def refuse_object(type_: types.Type) -> None:
    """Stops the trace at the type of a user's object or enumeration member, or a list of them."""
    of = type_.of if isinstance(type_, OptionalType) else type_.item or type_
    if isinstance(of, MemberType):
        stop(
            f"a member of {of.name} leaves the program; compiled, it would be of another class",
            hint="give its name or value; or " + INTERPRET,
        )
    if isinstance(of, RecordType):
        stop(
            f"an object of {of.name} leaves the program; compiled, it would be of another class",
            hint="give a dict or tuple of its attributes; or " + INTERPRET,
        )
