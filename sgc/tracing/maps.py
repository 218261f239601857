"""Traces maps.

If the list is known and the program has no decisions, the calls are traced in place, like direct
calls; each call waits for the end of the call `width` before it. Otherwise the function is traced
by itself, and a `map` node runs its graph: calls with decisions, traced in place, would make 2^n
paths.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sgc.core.markers import has_marker
from sgc.core.places import here
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.errors import ArgumentError, UnknownVariable
from sgc.interpreter.bodies import call as call_in_place
from sgc.ir import types
from sgc.ir.graph import Lit, Operand, Ref
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Kind, Type
from sgc.lang.definition import Definition
from sgc.lang.maps import KnownStates, MapCall, MappedState, MappedStates, plain_items
from sgc.runtime.executor.ops.maps import no_list
from sgc.runtime.executor.run.map_places import call_path
from sgc.tracing.callees import Callee, joined_type
from sgc.tracing.code.operations import function_has
from sgc.tracing.kinds.row_types import outer
from sgc.tracing.values.abstract import AbstractList, abstract
from sgc.tracing.values.computing import computed
from sgc.tracing.values.recorder import Recorder
from sgc.tracing.watch.guards import plain

if TYPE_CHECKING:
    from sgc.lang.signature import Parameter


class MapRecorder(Recorder):
    """A tracer's session for programs that map functions."""

    @abstractmethod
    def outer_type(self, operand: Operand) -> Type:
        """The type of an operand's value in another program, called or calling."""

    @abstractmethod
    def callee(
        self, function: Definition, types_of: Mapping[str, types.Type], bound: Mapping[str, Any]
    ) -> Callee:
        """The callee for a mapped function; ends the trace if the function is not traced yet."""

    @abstractmethod
    def refuse_handled(self, name: str) -> None:
        """Stops the trace if the program handles errors that a mapped call may raise."""

    @abstractmethod
    def note_unknown(self, number: int, name: str) -> None:
        """Ends the trace if an untraced path of a called program may set a name."""


def map_traced(session: MapRecorder, call: MapCall) -> MappedStates:
    """Traces a map; returns the states of its calls."""
    is_known = not isinstance(call.items, AbstractList)
    if is_known and session.is_abstract(call.items):
        raise no_list(str(session.type_of(session.operand(call.items))), call.where)
    if is_known and session.path is None:
        return _in_place(session, call)
    return _as_node(session, call)


# -- in place -------------------------------------------------------------------------------


def _in_place(session: MapRecorder, call: MapCall) -> KnownStates:
    function, items = call.function, plain_items(call.items)
    caller, ordinal = session.stack.next_map()
    ends: list[tuple[Ref, ...]] = []
    states = []
    for index, item in enumerate(items):
        arguments = call.arguments(item)
        call.check(_checkable(session, arguments))
        session.note_outside(arguments)
        path = call_path(caller, function.name, ordinal, index)
        after = ends[index - call.width] if index >= call.width else ()
        n_states, n_met = len(session.states), len(session.met)
        with _mapped_path(session, path):
            states.append(call_in_place(function, session, arguments, path=path, after=after))
        symbols = [*session.met[n_met:], *(each.symbol for each in session.states[n_states:])]
        ends.append(tuple(Ref(symbol.name) for symbol in symbols))
    return KnownStates(session, states)


def _checkable(session: MapRecorder, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments whose types can be checked now; a plain text replaces each abstract text."""
    known = {n: v for n, v in arguments.items() if not session.is_abstract(v)}
    return known | {n: "" for n, v in arguments.items() if n not in known and isinstance(v, str)}


@contextmanager
def _mapped_path(session: MapRecorder, path: str) -> Iterator[None]:
    before, session.mapped_path = session.mapped_path, path
    try:
        yield
    finally:
        session.mapped_path = before


# -- as a node ------------------------------------------------------------------------------


def _as_node(session: MapRecorder, call: MapCall) -> AbstractStates:
    items, item_type, n = _items(session, call)
    arguments = call.arguments(None)
    element = _parameter(call.function, call.element)
    types_of = {call.element: _element_type(element, item_type)}
    bound: dict[str, Any] = {}
    given: dict[str, Operand] = {}
    for name, value in arguments.items():
        if name == call.element:
            continue
        if _is_known(value):
            bound[name] = value
        else:
            given[name] = session.operand(value)
            types_of[name] = session.outer_type(given[name])
    _check_types(call, types_of)
    _refuse_patterns(session, call.function, types_of)
    callee = session.callee(call.function, types_of, bound)
    _note_media(session, callee, given)
    if callee.can_fail:
        session.refuse_handled(call.function.name)
    fields: dict[str, Operand] = {"program": Lit(callee.number), "items": items}
    fields["caller"] = Ref(session.calling[-1].start.name)
    if given:
        fields["keys"] = tuple(map(Lit, given))
        fields["args"] = tuple(given.values())
    fields["width"] = Lit(call.width)
    _, ordinal = session.stack.next_map()
    if session.path is None:
        fields["ordinal"] = Lit(ordinal)  # with blocks, calls are counted at run time
    if callee.names:
        fields["names"] = tuple(map(Lit, callee.names))
    fields |= {"returns": Lit(True), "texts": Lit(True)}  # unread results are removed at the end
    results = [(name, types.list_of(type_)) for name, type_ in callee.names.items()]
    results += [("returns", types.list_of(callee.returns)), ("texts", types.list_of(types.TEXT))]
    symbols = session.emit("map", results, **fields)
    return AbstractStates(session, callee, symbols, n)


def _items(session: MapRecorder, call: MapCall) -> tuple[Operand, Type, int | None]:
    """The list as an operand, its items' type, and their number if it is known."""
    items = call.items
    if isinstance(items, AbstractList):
        return Ref(items.symbol.name), outer(items.item_type), None
    items = plain_items(items)
    operands = tuple(session.operand(item) for item in items)
    item_type = joined_type({session.outer_type(operand) for operand in operands} or {types.TEXT})
    (symbol,) = session.emit("list", [("items", types.list_of(item_type))], items=operands)
    return Ref(symbol.name), item_type, len(items)


def _parameter(function: Definition, name: str) -> Parameter:
    return next(each for each in function.signature.parameters if each.name == name)


def _element_type(parameter: Parameter, item_type: Type) -> Type:
    """The item's type; for JSON items, the annotated type, which each call checks as it begins."""
    is_told = parameter.is_annotated and item_type.kind is Kind.JSON
    return parameter.type if is_told else item_type


def _check_types(call: MapCall, types_of: Mapping[str, Type]) -> None:
    """Raises ArgumentError if a value of the given type cannot fit an annotated parameter."""
    for name, given in types_of.items():
        parameter = _parameter(call.function, name)
        if parameter.is_annotated and not _may_be(given, parameter.type):
            raise ArgumentError(
                f"cannot run {call.function.name}: argument {name!r} must be {parameter.type}, "
                f"found {given}",
                where=call.where,
            )


def _may_be(given: Type, wanted: Type) -> bool:
    if given.item is not None and wanted.item is not None:
        return _may_be(given.item, wanted.item)
    told_later = {Kind.JSON, Kind.MEDIA}
    is_same = given.kind is wanted.kind or {given.kind, wanted.kind} <= TEXTUAL
    is_number = given.kind is Kind.INT and wanted.kind is Kind.FLOAT
    return is_same or is_number or bool(told_later & {given.kind, wanted.kind})


def _is_known(value: Any) -> bool:
    text = plain(value)
    return text is not None and not has_marker(text)


_PATTERNS = frozenset({"MATCH_MAPPING", "MATCH_SEQUENCE", "MATCH_CLASS"})


def _refuse_patterns(
    session: MapRecorder, function: Definition, types_of: Mapping[str, Type]
) -> None:
    is_json = any(type_.kind is Kind.JSON for type_ in types_of.values())
    body: Any = session.body(function.python)
    if is_json and function_has(body.__code__, _PATTERNS):
        stop(
            f"{function.name} is given a value out of JSON, and looks into something by `match`",
            hint="compare with ==, or read the value in it: v[key]; or " + INTERPRET,
        )


def _note_media(session: MapRecorder, callee: Callee, given: Mapping[str, Operand]) -> None:
    """Makes the program's parameters images if the function takes them as images."""
    for name in callee.media:
        operand = given.get(name)
        if isinstance(operand, Ref) and session.is_parameter(operand.name):
            session.images.add(operand.name)
        elif callee.wanted.types[name].kind is not Kind.MEDIA:
            stop(
                f"{callee.wanted.function.name} takes {name} for an image, and is given a text",
                hint="a text known only at run time may be a model's, and must name no "
                "file; choose among images of your own; or " + INTERPRET,
            )


class AbstractStates(MappedStates):
    """The states of calls that are made at run time. n: the number of calls, if it is known."""

    def __init__(
        self, session: MapRecorder, callee: Callee, symbols: list[Symbol], n: int | None
    ) -> None:
        self._session, self._n = session, n
        self._number, self._function = callee.number, callee.wanted.function.name
        self._symbols = dict(zip(callee.names, symbols, strict=False))
        self._returns, self._texts = symbols[-2:]

    def values(self, name: str) -> Any:
        if name not in self._symbols and self._n is None and not self._list(self._texts):
            return []  # there is no call, so no call has left the name unset
        return self._list(self._symbol(name))

    @property
    def returns(self) -> Any:
        return self._list(self._returns)

    def _symbol(self, name: str) -> Symbol:
        if name not in self._symbols:
            self._session.note_unknown(self._number, name)
            known = ", ".join(self._symbols) or "none"
            raise UnknownVariable(
                f"{self._function} has set no variable {name!r}; it sets: {known}", where=here()
            )
        return self._symbols[name]

    def _list(self, symbol: Symbol) -> Any:
        if self._n is None:
            return abstract(symbol, self._session)
        return [self._item(symbol, index) for index in range(self._n)]

    def _item(self, symbol: Symbol, index: int) -> Any:
        items = abstract(symbol, self._session)
        return computed(self._session, "item", items, index, type_=symbol.type.item)

    def call(self, index: int) -> MappedState:
        return MappedState(self, range(len(self))[index])

    def value(self, index: int, name: str) -> Any:
        return self._item(self._symbol(name), index)

    def returned(self, index: int) -> Any:
        return self._item(self._returns, index)

    def text(self, index: int) -> Any:
        return self._item(self._texts, index)

    def __len__(self) -> int:
        if self._n is None:
            stop(
                "how many calls a map makes is known only at run time",
                hint='read the lists that they give, states["name"] and states.returns, and '
                "len(xs) of what is mapped; or " + INTERPRET,
            )
        return self._n
