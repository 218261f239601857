"""The tracer's session: puts code into the graph, and knows what the code may change."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from random import Random
from types import FrameType
from typing import Any

from sgc.core.places import here
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.core.watching import unhooked
from sgc.ir import types
from sgc.ir.code import CodeError, parse_code
from sgc.ir.graph import Lit, Operand, Ref
from sgc.tracing.code.handlers import is_caught
from sgc.tracing.kinds.ended import EndedState
from sgc.tracing.kinds.members import is_member
from sgc.tracing.kinds.records import is_record, parts_of, restored
from sgc.tracing.kinds.row_types import OBJECT
from sgc.tracing.paths.events import Events
from sgc.tracing.pieces.choose import Places, chosen, growing, now_at
from sgc.tracing.pieces.displayed import displayed
from sgc.tracing.pieces.forms import is_operand, plain_key
from sgc.tracing.pieces.live import given_code
from sgc.tracing.pieces.made import (
    DISPLAYED,
    MAX_PIECES,
    Made,
    Pieced,
    Sites,
    made,
    made_again,
)
from sgc.tracing.pieces.owned import is_changeable
from sgc.tracing.pieces.piece import Piece
from sgc.tracing.pieces.text.constants import NotData
from sgc.tracing.recording.origins import Origins
from sgc.tracing.values.abstract import (
    AbstractBool,
    AbstractList,
    AbstractNumber,
    AbstractText,
    abstract,
    marked,
)
from sgc.tracing.values.abstract_loops import Items
from sgc.tracing.values.items import as_data, type_of
from sgc.tracing.values.live.abstract_live import AbstractLive

# After so many steps, the trace notes pieces that can become code, in case the budget is spent.
LOOKED = 50_000


class Coding(Origins):
    """A tracer's session that puts code into its graph.

    sites: the pieces of the program that are code. defaulting: results that are `defaultdict`s, to
    which reading a key may add the key. max_turns: the program's bound. given: objects that stand
    for the objects among a caller's arguments.
    """

    sites: Sites
    defaulting: set[str]
    events: Events
    max_turns: int | None
    given: tuple[Any, ...] = ()
    views: dict[str, str]  # views of dicts and lists, with the symbol of the dict or list
    view_parts: dict[str, str]  # which part of a dict each view is
    stale: set[str]  # views whose dict or list has changed since

    def coded(self, code: str, args: Sequence[Any], type_: types.Type) -> Any:
        operands = tuple([self.operand(as_data(self, arg)) for arg in args])
        (value,) = self.emit("evaluate", [("v", type_)], code=Lit(code), args=operands)
        self.raise_failed(value)
        if type_ not in _FIXED:
            self.held.hold(value, _changeable_in(args))
        return abstract(value, self)

    @unhooked
    @abstractmethod
    def as_live(self, value: Any) -> Any:
        """An argument of code; for an ended stream, a live object with its variables."""

    def performed(
        self,
        code: str,
        args: Sequence[Any],
        gives: Sequence[types.Type],
        is_sure: bool = False,
        is_whole: bool = False,
    ) -> list[Any]:
        if self.ended is not None and isinstance(sys.exc_info()[1], GeneratorExit):
            raise GeneratorExit  # a generator freed after the run ends silently
        if not is_whole:
            args = [*map(self.as_live, args)]
        if not is_whole and not all(map(_is_given, args)):
            try:
                found = given_code(self, code, args)
            except (NotData, CodeError) as error:
                stop(f"a value known only at run time is used beside another: {error}", INTERPRET)
            code, args = found.code, found.args
        fields: dict[str, Any] = {"args": tuple([self.operand(arg) for arg in args])}
        if len(gives) > 1:
            fields["n"] = Lit(len(gives))
        if self.sites.raises.note(code, self.sites.classes):
            self.end(Pieced("code may raise more than was known"))
        catches = not is_sure and is_caught(partial(self.sites.may_raise, code))
        if not catches and all(type(arg) in _PLAIN for arg in args) and is_lone(code):
            fields["is_apart"] = Lit(True)
        if catches:
            fields["catches"] = Lit(True)
        results = [("v", type_) for type_ in gives]
        symbols = self.emit("perform", results, code=Lit(code), **fields)
        if catches:
            self.raise_failed(symbols[0])
        return [abstract(each, self) for each in symbols]

    def refuse_code(self, op: str) -> None:
        """Stops the trace if code on the current line is known to end a run."""
        if op == "evaluate" and here() in self.sites.no_code_at:
            stop(
                "code of this line would end a run, since it changes a value that others hold",
                INTERPRET,
            )

    def piece_code(
        self,
        piece: Piece,
        values: Sequence[Any],
        names: dict[str, Any],
        away: frozenset[str] = frozenset(),
        fresh: frozenset[str] = frozenset(),
    ) -> Made:
        """The code of a piece for these input values. Raises NotData, CodeError."""
        if self.is_outside_changed():
            classes = self.sites.classes
            return self.sites.note(made(self.originals, piece, values, names, classes, away, fresh))
        return made_again(self.sites, self.originals, piece, values, names, away, fresh)

    def draw_late(self, generator: Random) -> None:
        """Traces the program anew with a generator's state as a value of the graph, if the program
        has made the generator."""
        place = self.events.seeded_at(generator)
        if place and place not in self.sites.drawn:
            self.sites.drawn.add(place)
            self.end(Pieced(f"{place} makes a generator that draws otherwise on each path"))

    def characters(self, text: str) -> Iterator[str]:
        return self.looped(Items(self.characters_of(text)))

    def characters_of(self, text: str) -> Any:
        self.sites.spells = True
        code = "def piece(text):\n    return list(text)"
        return self.coded(code, (text,), types.list_of(types.TEXT))

    def operand(self, value: Any) -> Operand:
        kind = type(value)
        if kind in _LONE:
            return super().operand(value)
        if kind is AbstractLive:
            return Ref(value.symbol.name)
        if issubclass(kind, AbstractList) and self.view_state(value.symbol) == "stale":
            stop(
                "keys(), values() or items() of a dict, or groups of a list, that has changed "
                "since are read",
                hint="make a list of them first, list(d.items()) or groupby(list(xs)); or "
                + INTERPRET,
            )
        if kind is EndedState:
            return self._ended_operand(value)
        is_json = kind is dict and all(map(_is_text, value))
        if is_json:
            value = {plain_key(key): item for key, item in value.items()}
        if not is_record(value) and (kind not in DISPLAYED or is_json):
            return super().operand(value)
        try:
            code = self._displayed(value)
        except (NotData, CodeError):
            return super().operand(value)
        operands = tuple(map(self.operand, code.args))
        type_ = type_of(value) if is_record(value) else types.JSON
        (symbol,) = self.emit("evaluate", [("v", type_)], code=Lit(code.code), args=operands)
        return Ref(symbol.name)

    def operands(self, value: Any) -> Operand:
        if isinstance(value, AbstractList):
            stop(
                f"{self.name_of(value.symbol)} is a list known only at run time, and each of its "
                "items is needed",
                hint="write a list of known length, such as [xs[0], xs[1]]; or " + INTERPRET,
            )
        return super().operands(value)

    def _ended_operand(self, value: EndedState) -> Operand:
        items = tuple(map(self.operand, value.parts.values()))
        fields: dict[str, Operand] = {"keys": tuple(map(Lit, value.parts)), "items": items}
        (symbol,) = self.emit("record", [("v", type_of(value))], **fields)
        return Ref(symbol.name)

    @unhooked
    def _displayed(self, value: Any) -> Made:
        """The code for a value that no op makes. Raises NotData, CodeError."""
        parts = parts_of(value).values() if is_record(value) else ()
        if not parts or not all(map(is_operand, parts)):
            return self.sites.note(displayed(self.originals, value))
        code = self.record_code(value)  # the same for all objects of its class
        if not code:
            raise NotData(f"a {type(value).__name__} is no data")
        return Made(code, tuple(parts))

    @unhooked
    def record_code(self, record: Any) -> str:
        is_one = is_member(record)
        parts = (record._name_,) if is_one else tuple(parts_of(record))
        key = (type(record), *parts)
        codes = self.sites.record_codes
        if key not in codes:
            stand_in = record if is_one else restored(type(record), dict.fromkeys(parts, ""))
            try:
                codes[key] = self.sites.note(displayed(self.originals, stand_in)).code
            except (NotData, CodeError):
                codes[key] = ""
        return codes[key]

    # -- views of dicts -------------------------------------------------------------------

    def viewed(self, view: Any, of: Any, part: str) -> Any:
        self.views[view.symbol.name] = of.symbol.name
        self.view_parts[view.symbol.name] = part
        return view

    def view_of(self, symbol: Symbol) -> tuple[Symbol, str] | None:
        part, of = self.view_parts.get(symbol.name), self.views.get(symbol.name, "")
        return (Symbol(of, self._types[of]), part) if part else None

    def view_state(self, symbol: Symbol) -> str:
        if symbol.name in self.stale:
            return "stale"
        return "view" if symbol.name in self.views else ""

    def note_changed(self, symbol: Symbol) -> None:
        """Marks the views of a dict or list that changes: Python's views would show the change."""
        self.stale |= {view for view, of in self.views.items() if of == symbol.name}

    def note_widened(self, symbol: Symbol, wide: Symbol) -> None:
        """Notes that a block parameter replaces a symbol, which may be a view or have views."""
        if symbol.name in self.defaulting:
            self.defaulting.add(wide.name)
        if symbol.name in self.numbers:
            self.numbers.add(wide.name)
        if symbol.name in self.views:
            self.views[wide.name] = self.views[symbol.name]
            self.view_parts[wide.name] = self.view_parts[symbol.name]
        self.views |= {view: wide.name for view, of in self.views.items() if of == symbol.name}

    # -- where exploring takes too long ---------------------------------------------------

    @property
    def is_looking(self) -> bool:
        if self.path is None or not self.sites.may_take or self.sites.is_live:
            return False
        return self.path.exploration.work > LOOKED

    def look_for_growing(self, frame: FrameType) -> None:
        key = (frame.f_code, frame.f_lineno)
        if self.is_looking and key not in self.sites.seen:
            self.sites.seen.add(key)
            self._wait(growing(self, frame))

    @unhooked
    def before_adding(self, symbol: Symbol) -> None:
        """Makes the statement code, if it can be code, so that the key is added as in Python."""
        if symbol.name in self.defaulting:
            self.before_changing()

    def valued(self, value: defaultdict[Any, Any]) -> Any:
        """A `defaultdict` as a value of the graph, if code can make it."""
        try:
            code = self._displayed(value)
        except (NotData, CodeError):
            return value
        made = self.coded(code.code, code.args, OBJECT)
        self.defaulting.add(made.symbol.name)
        return self.seen(made)

    def may_add(self, symbol: Symbol) -> bool:
        viewed = (of for view, of in self.views.items() if view not in self.stale)
        return symbol.name in self.defaulting and symbol.name not in viewed

    def added(self, whole: Any, key: Any) -> Any:
        (symbol,) = self.emit(
            "evaluate", [("v", types.list_of(OBJECT))], code=Lit(_ADDING),
            args=(Ref(whole.symbol.name), self.operand(key)), changed=(Lit(0),),
            is_several=Lit(True),
        )  # fmt: skip
        self.raise_failed(symbol)
        both = self.read(symbol)
        value, now = (self.compute("item", both, n, type_=OBJECT) for n in (0, 1))
        self.note_changed(whole.symbol)
        self.held.note_changed(whole)
        self.defaulting.add(now.symbol.name)
        whole.symbol = now.symbol  # so every reference to it has the new value
        return self.seen(value)

    @unhooked
    def prefer_code(self, why: str) -> None:
        """Makes the piece around the current place code, if it can be code."""
        piece = None if self.sites.is_live else chosen(self, now_at(self.events.root))
        if piece is not None and len(self.sites.pieces) < MAX_PIECES:
            self.sites.pieces[piece.key] = piece
            self.end(Pieced(why))

    @unhooked
    def before_changing(self) -> None:
        """Makes the statement code, if it can be code, so that values change as in Python."""
        piece = None if self.sites.is_live else chosen(self, now_at(self.events.root))
        if piece is not None and piece.changes and len(self.sites.pieces) < MAX_PIECES:
            self.sites.pieces[piece.key] = piece
            self.end(Pieced(f"{piece.key} may change its arguments"))

    def _wait(self, piece: Piece | None) -> None:
        if piece is not None:
            self.sites.waiting[piece.key] = piece

    def look_for_pieces(self) -> None:
        """Notes a piece around the current decision, in case exploring takes too long."""
        # One call of each recursive function: otherwise each call would search all calls around it.
        places = {
            (frame.f_code, offset): (frame, offset)
            for frame, offset in reversed([*now_at(self.events.root)])
        }
        key = tuple(places)
        if key not in self.sites.seen:
            self.sites.seen.add(key)
            self._look_at(reversed(places.values()))
        places.clear()  # breaks the cycle with this frame, which would keep the other frames

    @unhooked
    def _look_at(self, places: Places) -> None:
        self._wait(chosen(self, places))


# Types of values that are operands by themselves.
_PLAIN = frozenset({
    str, int, float, bool, type(None), AbstractText, AbstractNumber, AbstractBool,
})  # fmt: skip
_LONE = _PLAIN | {Symbol}
_FIXED = (types.TEXT, types.INT, types.FLOAT, types.BOOL)
_ADDING = "def piece(whole, key):\n    return [whole[key], whole]"


def _changeable_in(args: Iterable[Any]) -> Iterator[Any]:
    """The changeable parts of plain lists, tuples and dicts, which code's result may hold too."""
    for arg in args:
        if type(arg) in (list, tuple, dict):
            for part in arg.values() if type(arg) is dict else arg:
                if type(part) is tuple:
                    yield from _changeable_in([part])
                elif is_changeable(part):
                    yield part


@lru_cache(maxsize=4096)
def is_lone(code: str) -> bool:
    """Whether code is a single function, which uses nothing that other code may have changed."""
    return len(parse_code(code).body) == 1


def _is_given(arg: Any) -> bool:
    """Whether an argument of code on live objects is a live object, or cannot be changed."""
    return type(arg) in _LONE or type(arg) is AbstractLive


def _is_text(key: Any) -> bool:
    return isinstance(key, str) and not marked(key)
