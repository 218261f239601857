"""The user's classes as code: their source, and which methods change their object."""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import sys
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType, MemberDescriptorType
from typing import Any

from sgc.tracing.code.trees import source_of, tree_of
from sgc.tracing.kinds.members import is_enumeration
from sgc.tracing.pieces.effects.changes import SUPER, changed_roots, made_inside
from sgc.tracing.pieces.models import NoModel, described, is_model, node_of
from sgc.tracing.pieces.names import names_of
from sgc.tracing.pieces.text.constants import is_value
from sgc.tracing.pieces.text.enumerations import NoMembers, statement_of
from sgc.tracing.pieces.text.named_tuples import USES, made_by_call

_HEAP_TYPE = 1 << 9
_PLAIN_METHODS = frozenset({"__init__", "__post_init__", "__setitem__", "__delitem__"})
# Names that decide how a class, its objects or their attributes are made; code has none of them.
_MAKING = frozenset({
    "__new__", "__init_subclass__", "__class_getitem__", "__getattr__", "__getattribute__",
    "__setattr__", "__delattr__", "__del__", "__set_name__", "__get__", "__set__", "__delete__",
    "__enter__", "__exit__", "__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__",
    "__getstate__", "__setstate__", "__instancecheck__", "__slots__", "__class__", "__missing__",
})  # fmt: skip
_CACHED = "cached_property"
_DECORATORS = frozenset({"property", "staticmethod", "classmethod", _CACHED})


@dataclass(frozen=True, eq=False, slots=True)
class UserClass:
    """A class whose source is known. methods: its functions, with their source; changing: the
    names of the methods that may change their object; uses: the objects that its statement names,
    if the statement was made for the class; asking: methods that are not code, and left out.
    """

    kind: type
    node: ast.ClassDef
    methods: tuple[tuple[ast.FunctionDef, FunctionType], ...]
    changing: frozenset[str]
    uses: Mapping[str, Any] = field(default_factory=dict)
    asking: frozenset[str] = frozenset()

    @property
    def reads(self) -> set[str]:
        """The names that are read when the class is made."""
        parts = [each for each in self.node.body if not isinstance(each, ast.FunctionDef)]
        found = names_of([*self.node.decorator_list, *self.node.bases, *parts])
        args = [each.args for each, _ in self.methods]
        given = [value for each in args for value in (*each.defaults, *each.kw_defaults)]
        defaults = names_of(value for value in given if value is not None)
        return (found.reads | defaults.reads) - found.writes

    @property
    def names(self) -> dict[str, Any]:
        """The globals of the class's module."""
        return vars(sys.modules[self.kind.__module__])


def is_users(kind: Any) -> bool:
    """Whether a class is written in Python, and not a part of this package."""
    return (
        (type(kind) in (type, ABCMeta) or is_model(kind) or is_enumeration(kind))
        and bool(kind.__flags__ & _HEAP_TYPE)
        and not kind.__module__.startswith("sgc.")
        and kind.__module__ != "enum"
    )


MISSING = object()


class NoClass(Exception):
    """A class cannot be code."""


def user_class(kind: type, is_live: bool = False) -> UserClass:
    """A user's class, by its source. is_live: whether its objects are live, so that its methods may
    change anything. Raises NoClass."""
    if issubclass(kind, BaseException) and not (is_live and issubclass(kind, Exception)):
        return _error(kind)
    called = None if _statements_of(kind) or not _is_of_module(kind) else made_by_call(kind)
    if called is not None:
        return UserClass(kind, called, (), frozenset(), USES)
    node = _source_of(kind)
    if is_model(kind):
        return _model(kind, node)
    if is_enumeration(kind):
        return _enumeration(kind, node)
    for name in _MAKING & names_of(node.body).writes:
        raise NoClass(f"{kind.__name__} has {name}")
    if "__slots__" in vars(kind) and "super" in names_of(node.body).reads:
        raise NoClass(f"super() in {kind.__name__}, which has slots, is Python's error")
    plain = _concrete(kind, node)
    cached = [name for name, each in vars(kind).items() if isinstance(each, cached_property)]
    if cached and not is_live:
        raise NoClass(f"{kind.__name__}.{cached[0]} changes its object when it is read")
    plain.body = [_with_cached(each, cached) for each in plain.body]
    own = dict(zip(*(_functions(each) for each in (plain, node)), strict=True))
    asking = frozenset(_decorated(kind, plain)) if is_live else frozenset[str]()
    methods = tuple(_methods(kind, plain, asking, own))
    nodes = [each for each, _ in methods]
    changing = frozenset[str]() if is_live else _changing(kind, nodes)
    return UserClass(kind, plain, methods, changing, {}, asking)


def _concrete(kind: type, node: ast.ClassDef) -> ast.ClassDef:
    """A class without what makes it abstract, since code makes no object of an abstract class;
    attributes are set one by one."""
    names = vars(sys.modules[kind.__module__])
    plain = copy.copy(node)
    plain.bases = [each for each in node.bases if names.get(getattr(each, "id", "")) is not ABC]
    parts = (part for each in node.body for part in _one_by_one(_as_attribute(each, kind)))
    plain.body = [_without(each, names, abstractmethod) for each in parts]
    return plain


def _functions(node: ast.ClassDef) -> list[ast.stmt]:
    return [each for each in node.body if isinstance(each, ast.FunctionDef)]


def _as_attribute(node: ast.stmt, kind: type) -> ast.stmt:
    """A `ClassVar` of a dataclass, which is not a field, as a plain class attribute; any other
    statement as it is."""
    target = node.target if isinstance(node, ast.AnnAssign) else None
    field_ = getattr(kind, "__dataclass_fields__", {}).get(getattr(target, "id", ""))
    of = getattr(field_, "_field_type", dataclasses._FIELD)  # type: ignore[attr-defined]
    if target is None or of is dataclasses._FIELD:  # type: ignore[attr-defined]
        return node
    if of is not dataclasses._FIELD_CLASSVAR:  # type: ignore[attr-defined]
        raise NoClass(f"{kind.__name__}.{target.id} is given to __init__ alone")  # type: ignore[union-attr]
    plain = ast.Assign([target], node.value) if node.value is not None else ast.Pass()  # type: ignore[attr-defined, list-item]
    return ast.copy_location(plain, node)


def _one_by_one(node: ast.stmt) -> list[ast.stmt]:
    """The assignments of `a, b = 1, 2`."""
    if not isinstance(node, ast.Assign) or len(node.targets) > 1:
        return [node]
    (target,), value = node.targets, node.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return [node]
    if len(target.elts) != len(value.elts):
        return [node]
    pairs = zip(target.elts, value.elts, strict=True)
    return [ast.copy_location(ast.Assign([target], each), node) for target, each in pairs]


def _without(node: ast.stmt, names: Mapping[str, Any], decorator: Any) -> ast.stmt:
    """A method without a decorator; any other statement as it is."""
    if not isinstance(node, ast.FunctionDef):
        return node
    kept = [d for d in node.decorator_list if names.get(getattr(d, "id", "")) is not decorator]
    if len(kept) == len(node.decorator_list):
        return node
    plain = copy.copy(node)
    plain.decorator_list = kept
    return plain


def _decorated(kind: type, node: ast.ClassDef) -> Iterator[str]:
    """The methods of a class that a decorator has replaced."""
    for each in node.body:
        is_method = isinstance(each, ast.FunctionDef) and not each.name.startswith("__")
        if is_method and not _is_plain(each) and type(vars(kind).get(each.name)) is FunctionType:  # type: ignore[attr-defined, arg-type]
            yield each.name  # type: ignore[attr-defined]


def _is_plain(node: ast.FunctionDef) -> bool:
    return all(isinstance(d, ast.Name) and d.id in _DECORATORS for d in node.decorator_list)


def _with_cached(node: ast.stmt, cached: Collection[str]) -> ast.stmt:
    """A method with the decorator `cached_property`, by the name that code has for it; any other
    statement as it is. cached: the names of such methods."""
    if not isinstance(node, ast.FunctionDef) or node.name not in cached:
        return node
    if len(node.decorator_list) != 1:
        return node
    plain = copy.copy(node)
    plain.decorator_list = [ast.copy_location(ast.Name(_CACHED, ast.Load()), node)]
    return plain


def _error(kind: type) -> UserClass:
    """A user's error class, of which handlers outside of the code know only name and message."""
    node = _source_of(kind)
    is_plain = all(isinstance(each, ast.Pass) or _is_text(each) for each in node.body)
    if not is_plain or node.decorator_list or not issubclass(kind, Exception):
        raise NoClass(f"{kind.__name__} is an error of the program's own, and more than a name")
    bare = copy.copy(node)
    bare.body = [ast.Pass()]
    return UserClass(kind, bare, (), frozenset())


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _enumeration(kind: type, node: ast.ClassDef) -> UserClass:
    try:
        made, uses = statement_of(kind, node)
    except NoMembers as error:
        raise NoClass(str(error)) from None
    methods = tuple(_methods(kind, made))
    if _changing(kind, [each for each, _ in methods]):
        raise NoClass(f"a method of {kind.__name__} changes a member")
    return UserClass(kind, made, methods, frozenset(), uses)


def _model(kind: type, node: ast.ClassDef) -> UserClass:
    """A model of pydantic's."""
    try:
        found = described(kind)
    except NoModel as error:
        raise NoClass(str(error)) from None
    for name in (_MAKING | {"__init__", "model_post_init"}) & names_of(node.body).writes:
        raise NoClass(f"{kind.__name__} has {name}")
    plain = copy.copy(node)
    plain.body = [_undecorated(each, found.validators) for each in node.body]
    own = dict(zip(plain.body, node.body, strict=True))
    methods = tuple(_methods(kind, plain, sources=own))
    if len(methods) < sum(isinstance(each, ast.FunctionDef) for each in node.body):
        raise NoClass(f"{kind.__name__} has a method twice")
    nodes = [each for each, _ in methods]
    changing = _changing(kind, nodes)
    return UserClass(kind, node_of(found, nodes), methods, changing, found.uses)


def _undecorated(node: ast.stmt, validators: Collection[str]) -> ast.stmt:
    """A method without the decorators that make it a validator."""
    if not isinstance(node, ast.FunctionDef) or node.name not in validators:
        return node
    plain = copy.copy(node)
    plain.decorator_list = []
    return plain


def changing_of(classes: Iterable[UserClass]) -> frozenset[str]:
    """The names of the methods of these classes that may change their object."""
    found = frozenset[str]().union(*(each.changing for each in classes))
    return found - {"__init__", "__post_init__"}


def values_of(found: UserClass) -> dict[str, Any]:
    """The current values of a class's attributes and of the defaults of its fields; `field(...)` is
    left out. Raises NoClass if the class has attributes or values that its source does not.
    """
    kind = found.kind
    if is_model(kind) or is_enumeration(kind):
        return {}
    set_here = {name: node for node in found.node.body for name in names_of([node]).writes}
    others = {name for name in vars(kind).keys() - set_here.keys() if not name.startswith("_")}
    if others:
        raise NoClass(f"{kind.__name__}.{min(others)} is not in its source")
    fields = getattr(kind, "__dataclass_fields__", {})
    defaults = getattr(kind, "_field_defaults", {})
    values = {}
    for name, node in set_here.items():
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if value is None or (name in fields and _is_made(value, fields[name].default, found.names)):
            continue
        now = defaults[name] if name in defaults else vars(kind).get(name, MISSING)
        if type(now) is MemberDescriptorType and name in fields:  # one of a dataclass's slots
            now = fields[name].default
        if now is MISSING or (name in fields and fields[name].default is not now):
            raise NoClass(f"{kind.__name__}.{name} is not what its source says")
        values[name] = now
    return values


def _is_made(node: ast.expr, default: Any, names: Mapping[str, Any]) -> bool:
    """Whether a field's default is what a call makes: `field(...)`, or no constant value."""
    if not isinstance(node, ast.Call):
        return False
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    is_field = called == "field" or names.get(called) is dataclasses.field
    return is_field or not is_value(default)


def _is_of_module(kind: type) -> bool:
    """Whether a class's module has the class under its name."""
    return getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind


def _statements_of(kind: type) -> list[ast.ClassDef]:
    """The class statements at the top of a class's module that have its name."""
    filename = getattr(sys.modules.get(kind.__module__), "__file__", None)
    tree = tree_of(filename) if isinstance(filename, str) else None
    body = [] if tree is None else tree.module.body
    return [each for each in body if isinstance(each, ast.ClassDef) and each.name == kind.__name__]


def _source_of(kind: type) -> ast.ClassDef:
    found = _statements_of(kind)
    if len(found) != 1 or kind.__qualname__ != kind.__name__:
        raise NoClass(f"the source of {kind.__name__} is not at the top of its module")
    if found[0].keywords or not _is_of_module(kind):
        raise NoClass(f"{kind.__name__} is not the class of its source")
    return found[0]


def _methods(
    kind: type,
    node: ast.ClassDef,
    left: Collection[str] = (),
    sources: Mapping[ast.stmt, ast.stmt] | None = None,
) -> Iterator[tuple[ast.FunctionDef, FunctionType]]:
    """The functions of a class's source, which must be those of the class. left: the functions that
    are left out; sources: the original nodes, if they were rewritten."""
    own = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    for name, each in own.items():
        if name in left:
            continue
        if not _is_plain(each):
            raise NoClass(f"{kind.__name__}.{name} is decorated")
        function = _function(vars(kind).get(name))
        written = each if sources is None else sources[each]
        if function is None or source_of(function) is not written:
            raise NoClass(f"{kind.__name__}.{name} is not the function of its source")
        yield each, function
    if is_enumeration(kind):
        return  # Python adds other functions; `statement_of` has checked the source
    names = vars(sys.modules[kind.__module__])
    is_made = hasattr(kind, "__dataclass_fields__") or issubclass(kind, tuple) or is_model(kind)
    for name, value in vars(kind).items():
        is_method = name not in own and _function(value) is not None
        if is_method and _is_ordering(node, name, value, names):
            continue
        if is_method and not (is_made and (name.startswith("__") or issubclass(kind, tuple))):
            raise NoClass(f"{kind.__name__}.{name} is not in its source")


def _is_ordering(node: ast.ClassDef, name: str, value: Any, names: Mapping[str, Any]) -> bool:
    """Whether `total_ordering`, the first decorator of a class, has made a method."""
    first = node.decorator_list[0] if node.decorator_list else None
    called = names.get(getattr(first, "id", "")) if isinstance(first, ast.Name) else None
    if isinstance(first, ast.Attribute) and names.get(getattr(first.value, "id", "")) is functools:
        called = getattr(functools, first.attr, None)
    made = (each for pairs in functools._convert.values() for each in pairs)  # type: ignore[attr-defined]
    return called is functools.total_ordering and any(
        name == key and value is function for key, function in made
    )


def _function(value: Any) -> FunctionType | None:
    if isinstance(value, property):
        value = value.fget if value.fset is None and value.fdel is None else None
    if isinstance(value, cached_property):
        value = value.func
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    return value if isinstance(value, FunctionType) else None


def _changing(kind: type, methods: list[ast.FunctionDef]) -> frozenset[str]:
    """The methods that may change their object, also by calling another method."""
    found = frozenset(
        name for base in kind.__mro__[1:-1] if _is_read(base) for name in user_class(base).changing
    )
    while True:
        more = frozenset(each.name for each in methods if _changes_self(kind, each, found))
        if more <= found:
            break
        found |= more
    for each in methods:
        is_quiet = each.name.startswith("__") or each.decorator_list
        if each.name in found and is_quiet and each.name not in _PLAIN_METHODS:
            raise NoClass(f"{kind.__name__}.{each.name} changes its object")
    return found


def _is_read(base: type) -> bool:
    return base.__module__ not in ("abc", "builtins", "enum", "typing", "pydantic.main")


def _changes_self(kind: type, method: ast.FunctionDef, changing: Collection[str]) -> bool:
    args = method.args.posonlyargs + method.args.args
    own = args[0].arg if args else ""
    made = made_inside(method)
    roots = set(changed_roots(method, made, changing))
    if not roots <= {own, SUPER, *made}:
        raise NoClass(f"{kind.__name__}.{method.name} may change an object that is not its own")
    return not roots.isdisjoint({own, SUPER})
