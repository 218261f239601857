"""References: objects of the user's classes of which it is known only at run time which they are.

An object is its number. Its attributes are in lists of the graph, one for each attribute of its
class (`heap.py`), so all that refer to it see a change. Python's own rules for attributes, methods
and special methods hold: the class of a reference is a subclass of the user's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.ir.types import Type
from sgc.tracing.kinds.row_types import RefType
from sgc.tracing.values.references.holders import others_of

NUMBER, YOUNG = "__sgc_number__", "__sgc_young__"


class Reference:
    """What makes an object of a class a reference. Until its `__init__` has ended it is young, and
    has its attributes itself."""

    __slots__ = ()

    @property
    def symbol(self) -> Symbol:
        """The object's number."""
        return numbered(self)

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return class_of(self)
        if name in ("__dict__", "__weakref__", "__reduce_ex__", "__reduce__"):
            refuse(
                f"all attributes of an object of {class_of(self).__name__} are taken", ONE_BY_ONE
            )
        young = _own(self).get(YOUNG)
        if young is not None:
            if name in young:
                return young[name]
        elif name in heap_of(self).fields_of(class_of(self)):
            found = _special(class_of(self), name)
            return heap_of(self).read(self, name) if found is None else found.__get__(self)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        found = _special(class_of(self), name)
        if found is not None:
            found.__set__(self, value)
            return
        young = _own(self).get(YOUNG)
        if young is not None:
            young[name] = value
            return
        heap_of(self).forget_ended()
        n_more = others_of(value, "setattr")
        heap_of(self).write(self, name, value, n_more)

    def __delattr__(self, name: str) -> NoReturn:
        refuse(f"the attribute {name} of an object is deleted", INTERPRET)


ONE_BY_ONE = "read its attributes one by one; or " + INTERPRET


def _identical(self: Any, other: Any) -> Any:
    return heap_of(self).are_same(self, other)


def _unlike(self: Any, other: Any) -> Any:
    found = _identical(self, other)
    return found if found is NotImplemented else not found


def _hashed(self: Any) -> NoReturn:
    refuse("an object is a key of a dict or an item of a set", "use its name; or " + INTERPRET)


def _shown(self: Any) -> str:
    if current_session() is None:  # of an error that has ended the run: no address is the same
        return f"<{class_of(self).__qualname__} object>"
    refuse("an object without a __str__ of its own is shown", ONE_BY_ONE)


def refuse(message: str, hint: str = INTERPRET) -> NoReturn:
    """Stops a trace with references: no part of it becomes code instead."""
    session: Any = current_session()
    session.heap.before_refusing()
    stop(message, hint)


def _own(reference: Any) -> dict[str, Any]:
    found: dict[str, Any] = object.__getattribute__(reference, "__dict__")
    return found


def _special(of: type, name: str) -> Any:
    """What a class has under a name that decides what reading and setting it do: a property."""
    found = next((vars(base)[name] for base in of.__mro__ if name in vars(base)), None)
    return found if hasattr(type(found), "__set__") else None


def is_reference(value: Any) -> bool:
    return issubclass(type(value), Reference)


def is_young(reference: Any) -> bool:
    return YOUNG in _own(reference)


def young_of(reference: Any) -> dict[str, Any]:
    """The attributes that a young object has so far."""
    found: dict[str, Any] = _own(reference)[YOUNG]
    return found


def class_of(reference: Any) -> type:
    """The user's class of an object."""
    found: type = type(reference).__mro__[2]
    return found


def heap_of(reference: Any) -> Any:
    session: Any = current_session()
    return session.heap


def numbered(reference: Any) -> Symbol:
    """The number of an object, which is put into the columns of its class if it is young."""
    own = _own(reference)
    if NUMBER not in own:
        heap_of(reference).keep(reference)
    found: Symbol = own[NUMBER]
    return found


def settle(reference: Any, number: Symbol) -> None:
    """Ends an object's youth."""
    own = _own(reference)
    own[NUMBER] = number
    own.pop(YOUNG, None)


def _is_objects(of: type, name: str) -> bool:
    """Whether a class has Python's own method of a name."""
    return getattr(of, name) is getattr(object, name)


def shows_itself(reference: Any) -> bool:
    """Whether an object has a `__repr__` of its own."""
    return not _is_objects(class_of(reference), "__repr__")


def is_its_own(of: type) -> bool:
    """Whether objects of a class are equal to themselves alone."""
    return _is_objects(of, "__eq__") and _is_objects(of, "__hash__")


@lru_cache(maxsize=256)
def reference_class(of: type) -> type:
    """The class of references to a class's objects."""
    own: dict[str, Any] = {"__slots__": ()}
    if _is_objects(of, "__eq__"):
        own["__eq__"], own["__ne__"] = _identical, _unlike
    if _is_objects(of, "__hash__") or of.__hash__ is None:
        own["__hash__"] = _hashed
    if _is_objects(of, "__repr__"):
        own["__repr__"] = _shown
    own |= {"__qualname__": of.__qualname__, "__module__": of.__module__}
    return type.__new__(type, of.__name__, (Reference, of), own)


def begun(of: type) -> Any:
    """A young object of a class."""
    made: Any = object.__new__(reference_class(of))
    _own(made)[YOUNG] = {}
    return made


def reference_at(of: type, number: Symbol) -> Any:
    made: Any = object.__new__(reference_class(of))
    settle(made, number)
    return made


_FIXED = ("__getattribute__", "__setattr__", "__delattr__", "__new__")
RESERVED = frozenset({"symbol"})


def may_refer(of: type) -> bool:
    """Whether objects of a class may be kept in columns: it is the user's, and they are nothing but
    attributes that Python gets and sets."""
    if type(of) is not type or of.__module__.startswith("sgc.") or issubclass(of, BaseException):
        return False
    is_plain = all(_is_objects(of, name) for name in _FIXED)
    is_plain = is_plain and not hasattr(of, "__getattr__") and not hasattr(of, "__set_name__")
    bases = of.__mro__[:-1]
    if not is_plain or any("__slots__" in vars(base) for base in bases):
        return False
    if any("__init_subclass__" in vars(base) for base in bases) or not of.__dictoffset__:
        return False
    if of.__basicsize__ > object.__basicsize__ + 16 or hasattr(of, "__pydantic_fields__"):
        return False
    return not any(name in vars(base) for base in bases for name in RESERVED)


INSIDE = "[]"  # after the name of cells: the cells that they hold
OWN_KEYS = "own_keys"  # the attribute of a class of rows
IS_OPEN = "is_open"  # that of a class whose rows have other keys, too
OTHERS = "other keys"  # that of an open row which has a dict out of JSON
NO_KEYS = frozenset("[].")  # what names of cells are parted by


@dataclass
class Layout:
    """What traces have found of the classes whose objects are references: one that begins anew
    knows it from its start.

    is_used: whether there are references; wants_rows: whether a trace without has stopped at what
    they could do; has_rows: whether dicts may be, too; met: classes whose objects may be
    references; classes: those whose objects are, by name, and those of rows; fields: the types of
    their attributes, where the type of a list is that of what it holds; plain: places of dicts and
    sets that are no cells, and names of rows that are none; same: names of cells of which some are
    in the place of others, each with the name that stands for it; late: the types of what rows get
    by keys that they are not made with, by their class; united: the classes of rows that are one
    with another, by name; copied, changed: the names of cells of which some are copies of lists
    that others hold, and of which some are changed.
    """

    is_used: bool = False
    wants_rows: bool = False
    has_rows: bool = False
    met: dict[str, type] = field(default_factory=dict)
    classes: dict[str, type] = field(default_factory=dict)
    fields: dict[str, dict[str, Type]] = field(default_factory=dict)
    plain: set[str] = field(default_factory=set)
    same: dict[str, str] = field(default_factory=dict)
    late: dict[str, dict[str, Type]] = field(default_factory=dict)
    united: dict[str, str] = field(default_factory=dict)
    copied: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)

    def forget(self) -> None:
        """Forgets what attributes have: it may have to do with what is found out now."""
        for each in (self.fields, self.late, self.same):
            each.clear()

    def one(self, name: str) -> str:
        """The name that stands for a name of cells."""
        if name.endswith(INSIDE):
            name = self.one(name.removesuffix(INSIDE)) + INSIDE
        return self.one(self.same[name]) if name in self.same else name


def row_name(keys: tuple[str, ...], is_open: bool = False) -> str:
    """The name of the class of rows with these keys. is_open: and others."""
    return f"dict of {', '.join([*keys, 'any keys'] if is_open else keys)}"


def keys_of(of: type) -> tuple[str, ...]:
    """The keys that all rows of a class are made with; none for other classes."""
    found: tuple[str, ...] = vars(of).get(OWN_KEYS, ())
    return found


def is_of_rows(of: type) -> bool:
    """Whether the objects of a class are rows."""
    return OWN_KEYS in vars(of)


def is_open(of: type | None) -> bool:
    """Whether the rows of a class have other keys, too."""
    return of is not None and vars(of).get(IS_OPEN, False)


def field_of(key: str) -> str:
    """The name of the attribute that has the value of a row's key: no name of Python's."""
    return f"[{key!r}]"


def count_of(key: str) -> str:
    """The name of the attribute that says as which of the later keys one was set; 0 if not."""
    return f"set [{key!r}]"


def is_cell_name(name: str) -> bool:
    """Whether what a reference is to is a list or dict, not an object."""
    return "." in name


def type_to(of: type) -> RefType:
    return RefType.to(of.__name__)
