"""Takes snapshots of a run, value by value; see `snapshot.py`."""

from __future__ import annotations

import contextlib
import sys
import types as pytypes
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import replace
from enum import Enum
from functools import partial
from itertools import takewhile
from random import Random
from types import FrameType
from typing import TYPE_CHECKING, Any

from sgc.core.markers import has_marker
from sgc.core.places import innermost_user_loc, is_users
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.graph import Lit
from sgc.lang.definition import Definition
from sgc.tracing.code.bytecode import Slot, info_of
from sgc.tracing.code.frames import (
    Opaque,
    called,
    function_of,
    is_generator,
    stack_of,
    waits_clean,
)
from sgc.tracing.kinds.records import form_of, is_record, parts_of
from sgc.tracing.kinds.row_types import NOTHING, RecordType
from sgc.tracing.kinds.text_types import Known
from sgc.tracing.paths.leaves import (
    TYPES,
    Data,
    Items,
    Leaf,
    Parts,
    Place,
    Text,
    item_type,
    type_of,
)
from sgc.tracing.paths.loops import Loops
from sgc.tracing.paths.objects import (
    CONSTANTS,
    contents_of,
    is_constant,
    is_decided,
    is_programs,
    is_pythons,
    names_of,
    order,
)
from sgc.tracing.paths.snapshot import Part, Snapshot
from sgc.tracing.paths.tool_failures import TOLD, TracedTold
from sgc.tracing.values.abstract_json import AbstractJson, AbstractObject
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_number import AbstractBool, AbstractNumber
from sgc.tracing.values.abstract_record import AbstractRecord
from sgc.tracing.values.abstract_text import AbstractText
from sgc.tracing.values.computing import pieces_of
from sgc.tracing.values.recorder import Recorder

if TYPE_CHECKING:
    from sgc.lang.state import ProgramState

MAX_VALUES = 20_000
_ABSTRACT = frozenset({
    AbstractBool, AbstractJson, AbstractList, AbstractNumber, AbstractObject, AbstractRecord,
})  # fmt: skip
MAX_NESTED = 20
_DICTS = frozenset({dict, Counter, OrderedDict, defaultdict})
_RESERVED = Leaf(None, (), "", (0, 0), (0, 0))
_LEAVES = frozenset({
    str, int, float, bool, type(None), AbstractText, AbstractNumber, AbstractBool,
})  # fmt: skip
_SAME_EVERYWHERE = (
    type, pytypes.ModuleType, pytypes.MethodDescriptorType, pytypes.WrapperDescriptorType,
)  # fmt: skip
_JSONS = frozenset({AbstractJson, AbstractObject})


class Reader:
    """Reads one snapshot."""

    def __init__(self, session: Recorder) -> None:
        self._session = session
        self._tokens: list[object] = []
        self._slots: list[Symbol] = []
        self._seen: dict[int, tuple[int, ...]] = {}
        self._n_seen: dict[int, int] = {}  # number of objects, by the outermost list around them
        self._around: list[int] = []  # ids of the objects around the one that is read as data
        self._n_leaves: dict[int, int] = {}  # of leaves beside each other, likewise
        self._keep: list[Any] = []
        self._known: list[Any] = []
        self.states: list[ProgramState] = []
        self._names: list[dict[str | None, Part]] = []
        self._starts: set[str] = set()
        self._leaves: list[Leaf] = []
        self.places: list[list[Place]] = []  # for each leaf, all its places
        self._lists: dict[int, int] = {}  # the numbers of lists that are leaves, by id
        self._n_inside = 0  # how many lists are being read, each inside another
        self._outermost: list[int] = []  # the leaves of lists that are inside no other
        self._shared: set[int] = set()  # lists whose items are elsewhere too

    # -- the whole ------------------------------------------------------------------------

    def read(self, frames: list[FrameType], loops: Loops, last: Any = None) -> Snapshot:
        """Reads a snapshot. frames: the user's, innermost first; last: the program's return value,
        at its end."""
        session = self._session
        self._loops, self._frames = loops, frames
        for state in session.calling:
            self._value(state)
        for held in session.scopes:
            for item in held:
                self._start(item) if isinstance(item, Symbol) else self._value(item)
        for index in range(len(frames) - 1, -1, -1):
            if index + 1 < len(frames):
                self._closure(frames[index], frames[index + 1])
            self._frame(frames[index], loops)
        self._check_exits(frames)
        self._handled(frames)
        self._value(last)
        first = loops.n_states if frames else len(session.states)
        dead = []
        for number, state in enumerate(session.states):
            if id(state) in self._seen or number in session.retired:
                continue
            if frames and number < first:
                self._tokens.append(("kept", number))
                self._value(state)
            elif frames:
                dead.append(number)
            else:
                self._value(state)  # at the end, all streams are results
        self._held()
        own = tuple(tuple(state._own) for state in self.states)
        whole = Part(tuple(self._tokens), tuple(self._slots))
        facts, kept = dict(session.facts), tuple(self._known)
        return Snapshot(
            whole, tuple(self._names), own, facts, tuple(dead), kept,
            starts=frozenset(self._starts), known=self._known_of(whole),
            leaves=tuple(map(self._placed, range(len(self._leaves)))),
        )  # fmt: skip

    def _placed(self, number: int) -> Leaf:
        """A leaf, after everything is read."""
        leaf = self._leaves[number]
        are_known = all(place.holder is not None for place in self.places[number])
        is_movable = are_known and number not in self._shared
        return leaf if is_movable else replace(leaf, is_movable=False)

    def _held(self) -> None:
        """Reads which of the objects that the program still reaches are in abstract lists too."""
        held = {id(value) for value, _ in self._session.held}  # once, however often it was held
        for number in sorted(self._seen[key] for key in held if key in self._seen):
            self._tokens.append(("held", number))

    def _known_of(self, whole: Part) -> dict[str, Known]:
        known = self._session.known
        if not known:
            return {}
        parts = (whole, *(part for names in self._names for part in names.values()))
        found = {slot.name for part in parts for slot in part.slots}
        return {name: known[name] for name in found if name in known}

    def _check_exits(self, frames: list[FrameType]) -> None:
        """Raises Opaque if other context managers than the language's are open."""
        n_exits = 0
        for index, frame in enumerate(frames):
            stack = stack_of(frame, is_innermost=index == 0)
            n_exits += sum(slot is Slot.EXIT for slot, _ in stack or ())
        if n_exits != len(self._session.scopes):
            raise Opaque

    def _handled(self, frames: list[FrameType]) -> None:
        """Reads the error that an `except` block handles; raises Opaque for nested blocks."""
        n_handling = 0
        for index, frame in enumerate(frames):
            stack = stack_of(frame, is_innermost=index == 0)
            n_handling += sum(slot is Slot.HANDLING for slot, _ in stack or ())
        if n_handling > 1:
            raise Opaque
        if n_handling:
            self._tokens.append("handled")
            self._value(sys.exc_info()[1])

    def _closure(self, frame: FrameType, caller: FrameType) -> None:
        """Reads the cells of a called function, which other functions may share."""
        generator = self._loops.generator_at(caller) if is_generator(frame) else None
        code = frame.f_code
        self._cells(code, called(caller, code) if generator is None else function_of(generator))

    def _cells(self, code: pytypes.CodeType, function: object) -> None:
        if set(code.co_freevars) <= {"__class__"}:
            return
        if not isinstance(function, pytypes.FunctionType):
            raise Opaque
        for cell in function.__closure__ or ():
            self._value(cell)

    def _frame(self, frame: FrameType, loops: Loops) -> None:
        code = frame.f_code
        info = info_of(code)
        is_innermost = frame is loops.frame
        place = info.before(frame.f_lasti) if is_innermost else info.after(frame.f_lasti)
        self._tokens.append((code, info.canonical(frame.f_lasti)))
        local = frame.f_locals
        cells = code.co_cellvars + code.co_freevars
        stack = stack_of(frame, is_innermost)
        loaded = info.loaded(stack)  # the stack has them too, so they are never widened
        for name in sorted(place.live | loaded | set(cells)):
            if name in local:
                self._tokens.append(name)
                self._value(local[name], *(() if name in loaded else (frame, name)))
        for slot, offset in stack or ():
            if slot is Slot.ITERATOR:
                self._value(loops.describe(frame, info.loops.get(offset, -1)))

    # -- values ---------------------------------------------------------------------------

    def _value(self, value: Any, holder: Any = None, key: Any = None) -> None:
        """Reads a value. holder, key: its place, if another value can be put there."""
        if len(self._tokens) > MAX_VALUES:
            raise Opaque
        kind = type(value)
        if holder is not None and kind in _LEAVES and not _is_unset(value, holder):
            self._leaf(value, Place(holder, key))
        elif kind is str or kind is AbstractText:
            self._text(value)
        elif isinstance(value, Symbol):
            self._tokens.append("%")
            self._slots.append(value)
        elif isinstance(value, str) and not isinstance(value, Enum):
            self._text(value)
        elif kind in CONSTANTS or isinstance(value, Enum):
            self._tokens.append((kind, value, repr(value) if kind is float else ""))
        elif kind is AbstractNumber or kind is AbstractBool:
            self._tokens.append(kind)
            self._value(value.symbol)
        elif isinstance(value, _SAME_EVERYWHERE):
            self._identity(value)
            if isinstance(value, type) and id(value) not in self._seen:
                self._class(value)
        elif value is self._session:
            self._tokens.append("session")
        elif id(value) in self._seen:
            self._again(value, Place(holder, key))
        elif holder is not None and kind in _JSONS:
            self._json(value, Place(holder, key))
        else:
            self._seen[id(value)] = self._number()
            self._keep.append(value)
            is_own = kind is not AbstractList or self._session.is_made(value.symbol)
            self._view(value)
            if not is_own:  # lists that the program may change merge only with such lists
                self._tokens.append("of others")
            if holder is not None and (kind is list or kind is AbstractList):
                self._list(value, Place(holder, key), is_own)
            else:
                self._object(value)

    @property
    def _inside(self) -> int:
        """The outermost list that is being read, by its place among such lists: what earlier ones
        hold does not count."""
        return len(self._outermost) - 1 if self._n_inside else -1

    def _number(self) -> tuple[int, ...]:
        """A number for an object; objects inside a list do not affect those after the list."""
        inside = self._inside
        self._n_seen[inside] = self._n_seen.get(inside, -1) + 1
        return (inside, self._n_seen[inside])

    def _leaf_number(self) -> tuple[int, ...]:
        """A number for a leaf among those beside it; those inside a list do not count behind it."""
        inside = self._inside
        self._n_leaves[inside] = self._n_leaves.get(inside, -1) + 1
        return (inside, self._n_leaves[inside], -1)

    def _again(self, value: Any, place: Place) -> None:
        """Reads an object again that has another place too."""
        number = self._seen[id(value)]
        self._tokens.append(("again", number))
        if id(value) in self._lists:
            self.places[self._lists[id(value)]].append(place)
        inside = self._inside
        if number[0] != inside:  # a list that shares items with others is not widened
            self._shared |= {self._outermost[n] for n in (number[0], inside) if n >= 0}

    def _leaf(self, value: Any, place: Place) -> None:
        """Reads a value that may be widened, as part of the whole and as a leaf."""
        n_tokens, n_slots = len(self._tokens), len(self._slots)
        self._leaf_number()
        self._value(value)
        parts: Parts
        if isinstance(value, str):
            type_, parts = TYPES[str], self._pieces(value)
        elif isinstance(value, AbstractNumber):
            type_, parts = value.symbol.type, (value.symbol,)
        elif value is None:
            type_, parts = NOTHING, (None,)
        else:
            type_, parts = TYPES[type(value)], (value,)
        tokens, slots = (n_tokens, len(self._tokens)), (n_slots, len(self._slots))
        self._leaves.append(Leaf(type_, parts, place.label, tokens, slots))
        self.places.append([place])

    def _json(self, value: Any, place: Place) -> None:
        """Reads a value out of JSON that may be widened. Its number is that of its place, so that
        None in its place changes no other's.
        """
        self._seen[id(value)] = self._leaf_number()
        self._keep.append(value)
        self._lists[id(value)] = len(self._leaves)
        self._view(value)
        n_tokens, n_slots = len(self._tokens), len(self._slots)
        self._tokens.append(type(value))
        self._value(value.symbol)
        tokens, slots = (n_tokens, len(self._tokens)), (n_slots, len(self._slots))
        is_own = self._session.is_given(value.symbol)
        leaf = Leaf(value.symbol.type, (value.symbol,), place.label, tokens, slots, is_own=is_own)
        self._leaves.append(leaf)
        self.places.append([place])

    def _view(self, value: Any) -> None:
        if isinstance(value, AbstractList) and self._session.view_state(value.symbol):
            self._tokens.append(self._session.view_state(value.symbol))

    def _pieces(self, text: str) -> Parts:
        return tuple(
            self._session.symbol_of(piece) if isinstance(piece, int) else piece
            for piece in pieces_of(str.__str__(text))
        )

    def _list(self, value: Any, place: Place, is_own: bool) -> None:
        """Reads a list that may be widened: a Python list with its items, or an abstract one."""
        number, n_tokens, n_slots = len(self._leaves), len(self._tokens), len(self._slots)
        self._lists[id(value)] = number
        self._leaves.append(_RESERVED)
        self.places.append([place])
        data: Items | None = None
        if type(value) is list:
            if not self._n_inside:
                self._outermost.append(number)
            self._n_inside += 1
            self._object(value)
            self._n_inside -= 1
            found = self._data(value)
            data = found if isinstance(found, Items) else None
            type_ = types.list_of(data.type) if data is not None and data.type is not None else None
        else:
            self._tokens.append(AbstractList)
            self._value(value.symbol)
            type_ = value.symbol.type
        tokens, slots = (n_tokens, len(self._tokens)), (n_slots, len(self._slots))
        shape, symbols = tuple(self._tokens[n_tokens:]), tuple(self._slots[n_slots:])
        if type(value) is list and data is None:
            symbols = ()  # its items may be widened, but never the list
        self._leaves[number] = Leaf(
            type_, symbols, place.label, tokens, slots, is_list=True, shape=shape, data=data,
            is_own=is_own,
        )  # fmt: skip

    def _data(self, value: Any, n_left: int = MAX_NESTED) -> Data | None:
        """A value as an item of a list in the graph; None if it cannot be one."""
        kind = type(value)
        if isinstance(value, str):
            if kind is not str and not isinstance(value, AbstractText):
                return None
            return Text(self._pieces(value)) if has_marker(str.__str__(value)) else Lit(value)
        if value is None or kind in TYPES:
            return Lit(value)
        if kind in _ABSTRACT:
            found: Symbol = value.symbol
            return found
        if is_record(value):
            return self._record(value, n_left - 1) if n_left else None
        if kind not in (list, dict, tuple) or not n_left or (kind is not list and not value):
            return None
        keys = None if kind is list else tuple(value) if kind is dict else ()
        if keys is not None and not all(type(key) is str and not has_marker(key) for key in keys):
            return None
        items = [self._data(item, n_left - 1) for item in (value.values() if keys else value)]
        made = tuple(item for item in items if item is not None)
        return Items(made, keys, item_type(made)) if len(made) == len(items) else None

    def _record(self, value: Any, n_left: int) -> Data | None:
        """An object of a class of the user's, if code can make one."""
        parts = parts_of(value)
        if id(value) in self._around:  # objects that hold each other are no data
            return None
        self._around.append(id(value))
        found = takewhile(_is_data, (self._data(item, n_left) for item in parts.values()))
        made = tuple(item for item in found if item is not None)
        self._around.pop()
        code = self._session.record_code(value) if len(made) == len(parts) else ""
        if not code:
            return None
        row = tuple(map(type_of, made))
        type_ = RecordType.of(type(value).__name__, tuple(parts), row, form_of(value))
        return Items(made, tuple(parts), type_, code)

    def _start(self, symbol: Symbol) -> None:
        """Reads the symbol where something open began, which cannot become a parameter."""
        self._tokens.append(("start", symbol.name))
        self._starts.add(symbol.name)

    def _identity(self, value: Any) -> None:
        self._tokens.append(("is", id(value)))
        self._known.append(value)

    def _text(self, text: str) -> None:
        if type(text) is not str and not self._session.is_abstract(text):
            raise Opaque  # a user's class, whose attributes are not read
        plain = str.__str__(text)
        if not has_marker(plain):
            self._tokens.append((str, plain))
            return
        self._tokens.append((type(text), "pieces"))
        for piece in pieces_of(plain):
            if isinstance(piece, str):
                self._tokens.append(piece)
            else:
                self._value(self._session.symbol_of(piece))
        self._tokens.append("end")

    def _object(self, value: Any) -> None:
        from sgc.lang.state import ProgramState

        kind = type(value)
        if kind in (list, tuple):
            self._tokens.append((kind, len(value)))
            holder = value if kind is list else None
            for n, item in enumerate(value):
                self._value(item, holder, n)
        elif kind in _DICTS:
            self._tokens.append((kind, len(value)))
            self._value(getattr(value, "default_factory", None))
            for key, item in value.items():
                self._key(key)
                self._value(item, value if is_constant(key) else None, key)
        elif kind in (set, frozenset):
            self._tokens.append((kind, len(value)))
            for item in sorted(value, key=order) if len(value) > 1 else value:
                self._key(item)
        elif isinstance(value, ProgramState):
            self._state(value)
        elif isinstance(value, Definition):
            self._tokens.append("program")
            self._value(value.python)
            self._value(tuple(value.bind_arguments.items()))
        elif isinstance(value, pytypes.FunctionType):
            self._function(value)
        elif isinstance(value, pytypes.CellType):
            self._cell(value)
        elif isinstance(value, pytypes.BuiltinFunctionType):
            self._builtin(value)
        elif isinstance(value, BaseException):
            self._error(value)
        elif kind is pytypes.GeneratorType:
            self._generator(value)
        elif isinstance(value, pytypes.MethodType):
            self._tokens.append("method")
            self._value(value.__func__)
            self._value(value.__self__)
        elif not self._librarys(value):
            self._instance(value)

    def _key(self, key: Any) -> None:
        """Reads a key. An abstract one was decided to be one of its options, which another path may
        have decided otherwise; there the key has another hash."""
        if is_decided(key):
            raise Opaque
        self._value(key)

    def _librarys(self, value: Any) -> bool:
        """Reads an object of a class of the standard library, or a named tuple; returns whether it
        is one.
        """
        kind = type(value)
        if kind is deque:
            self._tokens.append((kind, len(value), value.maxlen))
            for n, item in enumerate(value):
                self._value(item, value, n)
        elif kind is partial:
            self._tokens.append(kind)
            self._value((value.func, value.args, value.keywords))
        elif kind is Random:
            self._tokens.append((kind, value.getstate()))
        elif isinstance(value, tuple):
            self._value(kind)
            self._value(tuple(value))
        else:
            return False
        self._own_attributes(value)
        return True

    def _function(self, value: pytypes.FunctionType) -> None:
        self._tokens.append(("function", value.__code__))
        self._value(value.__defaults__)
        self._value(value.__kwdefaults__)
        self._value(value.__dict__)
        for cell in value.__closure__ or ():
            self._value(cell)

    def _cell(self, cell: pytypes.CellType) -> None:
        self._tokens.append("cell")
        try:
            self._value(cell.cell_contents, cell)
        except ValueError:
            self._tokens.append("empty")

    def _generator(self, value: pytypes.GeneratorType[Any, Any, Any]) -> None:
        """Reads one of the user's generators by the frame that waits in it."""
        self._tokens.append("generator")
        frame = value.gi_frame
        if frame is None:
            self._tokens.append("ended")
        elif frame in self._frames:
            self._tokens.append(self._frames.index(frame))
        elif is_users(frame) and waits_clean(value):
            self._cells(frame.f_code, function_of(value))
            self._frame(frame, self._loops)
        else:
            raise Opaque

    def _builtin(self, value: pytypes.BuiltinFunctionType) -> None:
        """Reads a function written in C; for a method, its object."""
        owner = value.__self__
        if owner is None or isinstance(owner, (type, pytypes.ModuleType)):
            self._identity(value)
        else:
            self._tokens.append(("method", value.__name__))
            self._value(owner)

    def _error(self, error: BaseException) -> None:
        """Reads an error: its message, and the line that raised it."""
        self._tokens.append(("error", str(innermost_user_loc(error))))
        if isinstance(error, TracedTold):
            self._tokens.append(type(error).__bases__)
            self._value(tuple(error.__dict__[name] for name in TOLD))
            return
        self._identity(type(error))
        self._value(error.args)
        self._value(error.__cause__)
        self._value(tuple(error.__dict__.items()))

    def _instance(self, value: Any) -> None:
        """Reads an object of a class written in Python, by its attributes."""
        kind = type(value)
        if not is_pythons(kind):
            raise Opaque
        self._tokens.append("object")
        self._value(kind)
        holder = value if is_programs(kind) else None
        for name in names_of(kind):
            self._attribute(value, name, holder)
        self._own_attributes(value, holder)

    def _own_attributes(self, value: Any, holder: Any = None) -> None:
        # `object`'s own method, because an abstract value refuses unknown attributes.
        with contextlib.suppress(AttributeError):
            for name, item in object.__getattribute__(value, "__dict__").items():
                self._tokens.append(name)
                self._value(item, holder, name)

    def _class(self, kind: type) -> None:
        """Reads a class that the program has made, by its attributes; it cannot change others."""
        self._seen[id(kind)] = self._number()
        for name, item in contents_of(kind):
            self._tokens.append(name)
            self._value(item, kind, name)

    def _attribute(self, value: Any, name: str, holder: Any) -> None:
        with contextlib.suppress(AttributeError):
            item = object.__getattribute__(value, name)
            self._tokens.append(name)
            self._value(item, holder, name)

    def _state(self, state: ProgramState) -> None:
        """Reads a stream: its state and properties; its abstract variables are kept apart."""
        self.states.append(state)
        self._tokens.append(("stream", state.function_name, tuple(state.roles), state._is_child))
        self._value(state.symbol)
        if state._is_child:
            self._value(state.start)
        elif state in self._session.calling:
            self._start(state.start)
        self._value(state._ret_value)
        lone = {}
        for name, value in state._names.items():
            if isinstance(value, Symbol):
                lone[name] = Part(("%",), (value,))
            else:  # it may share objects with other variables
                self._tokens.append(("name", name))
                self._value(value, state._names, name)
        self._names.append(lone)


def _is_data(found: Data | None) -> bool:
    return found is not None


def _is_unset(value: Any, holder: Any) -> bool:
    """Whether a value is the None of an attribute that one of the tracer's loops has not set: its
    code, unlike the program's, does not decide what is None."""
    return value is None and type(holder).__module__.startswith("sgc.")
