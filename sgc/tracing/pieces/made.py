"""Makes code that is data from a piece of a program and its input values."""

from __future__ import annotations

import ast
import itertools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sgc.core.failures import is_programs
from sgc.errors import TraceError
from sgc.ir.code import Code, CodeError, parse_code
from sgc.ir.code_names import ADDED
from sgc.ir.types import Type
from sgc.tracing.code.trees import Position
from sgc.tracing.kinds.generators import AbstractRandom
from sgc.tracing.kinds.name_patterns import NamePattern
from sgc.tracing.kinds.records import is_record
from sgc.tracing.kinds.row_types import OBJECT
from sgc.tracing.kinds.sets import order_of_display_seen, order_seen
from sgc.tracing.paths.large_forks import LargeForks
from sgc.tracing.pieces.effects.changes import (
    changed_roots,
    made_inside,
    read_by_key,
)
from sgc.tracing.pieces.effects.holds import (
    merged_names,
    row_taken,
    rows_taken,
    stored_names,
    taken_names,
)
from sgc.tracing.pieces.effects.of_tools import OfTools
from sgc.tracing.pieces.effects.raising import Raises
from sgc.tracing.pieces.forms import Form, NoForm, form_of
from sgc.tracing.pieces.in_python import PiecesInPython
from sgc.tracing.pieces.names import names_of
from sgc.tracing.pieces.owned import holds_rows, is_changeable, is_flat, is_row
from sgc.tracing.pieces.piece import Piece, Pieces
from sgc.tracing.pieces.text.classes import UserClass, changing_of
from sgc.tracing.pieces.text.constants import (
    LostOrder,
    NotData,
    holds_defaulting,
)
from sgc.tracing.pieces.text.entry import EntryWriter
from sgc.tracing.pieces.text.function_checks import FoundChangers, Originals, refuse_hidden
from sgc.tracing.pieces.text.module_text import ModuleText
from sgc.tracing.values.abstract import AbstractJson, AbstractList, AbstractObject, is_abstract

MAX_PIECES = 64
MAX_TAKEN = 3  # before each time, an exploration spends its budget
DISPLAYED = frozenset({dict, set, frozenset, deque, Counter, defaultdict, OrderedDict})


class Pieced(BaseException):
    """Ends a trace whose set of pieces has changed, so that it starts anew."""


class PieceFound(Pieced):
    """Ends a run that has found a piece. The runs before it may stand."""


class WrongGuess(Pieced):
    """Ends a trace that cannot continue, perhaps because of a guess (`Sites.is_guessed`)."""


@dataclass(frozen=True, slots=True)
class Made:
    """code: the code's text; args: its arguments; inputs: for each argument, the piece's input that
    the argument is or is a part of; has_outside: whether the result may be or hold a list, dict or
    set from outside the program; classes: the user's classes that the code defines, by name.
    """

    code: str
    args: tuple[Any, ...]
    inputs: tuple[str, ...] = ()
    has_outside: bool = False
    classes: Mapping[str, UserClass] = field(default_factory=dict)


# By piece, id of its globals, and forms. The globals are kept, so that the id is not reused.
Unmade = tuple[type[NotData], str]  # the error that says why a piece is no code
Written = dict[
    tuple[Piece, int, frozenset[str], frozenset[str], frozenset[str], tuple[Form, ...]],
    tuple[Made | Unmade, object],
]


@dataclass(slots=True)
class Sites:
    """The pieces of a program that become code in the graph, by key. waiting: pieces that become
    code if exploring takes too long; seen: places that were searched for such pieces; refused: keys
    of pieces whose inputs are not data or may not be changed; told: the reasons, by line;
    has_lost_order: whether the piece looked at last would see a set's items in another order;
    n_taken: how often waiting pieces have become code; classes: the user's classes whose objects
    may be in the graph, by name; record_codes: the code that makes such an object, by its class and
    the names of its attributes; written: the code of pieces, by the forms of their
    inputs; outside: what `watch/objects.py` has found in values from outside, by id; streams_told:
    why lists hold streams themselves, not their variables when they end; late_names: the variables
    whose names are known only at run time, by their function and whether a fork's child has them;
    may_name_late: whether there may be such variables; if not, a value in a name must be known;
    in_python: the pieces that run in Python, if any may; is_nearest_first: whether exploring takes
    the arm nearest to the entry next, else the latest; drawn: lines that make generators of random
    numbers whose state is known only at run time; forks: the forks into many streams; changers: the
    program's functions that may change their arguments; valued: variables that become values of the
    graph before statements, with the statements' files and places; no_code_at: lines of which
    nothing becomes code; is_guessed: whether a piece was found while the runs before it stood, or
    taken before exploring took too long: without that, there might be other pieces; is_live:
    whether data are live objects; asking: the methods of classes that are not code, as they may
    ask; looked_up: the methods of live objects that were looked up in the classes; raises: which
    errors of the program its code may raise; of_tools: what the program reads of its modules and
    tools change; live_codes: code of pieces, or why there is none.
    """

    pieces: dict[str, Piece] = field(default_factory=dict)
    waiting: dict[str, Piece] = field(default_factory=dict)
    seen: set[tuple[object, ...]] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    told: dict[str, TraceError] = field(default_factory=dict)
    has_lost_order: bool = False
    n_taken: int = 0
    classes: dict[str, UserClass] = field(default_factory=dict)
    record_codes: dict[tuple[Any, ...], str] = field(default_factory=dict)
    written: Written = field(default_factory=dict)
    outside: dict[int, Any] = field(default_factory=dict)
    streams_told: TraceError | None = None
    late_names: dict[tuple[str, bool], dict[NamePattern, Type | None]] = field(default_factory=dict)
    may_name_late: bool = True
    in_python: PiecesInPython | None = None
    is_nearest_first: bool = True
    drawn: set[str] = field(default_factory=set)
    forks: LargeForks = field(default_factory=LargeForks)
    changers: FoundChangers = field(default_factory=FoundChangers)
    valued: set[tuple[str, Position, str]] = field(default_factory=set)
    no_code_at: frozenset[str] = frozenset()
    is_guessed: bool = False
    spells: bool = False  # a loop of the graph goes over a text letter by letter
    is_live: bool = False
    asking: dict[type, frozenset[str]] = field(default_factory=dict)
    looked_up: set[str] = field(default_factory=set)
    raises: Raises = field(default_factory=Raises)
    of_tools: OfTools = field(default_factory=OfTools)
    live_codes: dict[tuple[Any, ...], tuple[Piece, Any]] = field(default_factory=dict)

    def copy(self) -> Sites:
        """A copy, to which later finds are not added; it shares the pieces that run in Python."""
        found = {each.name: copy(getattr(self, each.name)) for each in fields(self)}
        late_names = {where: dict(names) for where, names in self.late_names.items()}
        return Sites(**found | {"late_names": late_names, "in_python": self.in_python})

    def turn_round(self) -> bool:
        """Makes exploring take the latest arm first; returns whether it did not before. Loops are
        then left in their widest states first; nothing else refers to the items of lists there."""
        before, self.is_nearest_first = self.is_nearest_first, False
        return before

    @property
    def may_take(self) -> bool:
        """Whether pieces that wait may still become code."""
        return self.n_taken < MAX_TAKEN

    def take_waiting(self) -> bool:
        """Makes waiting pieces code; returns whether there were any, and the trace must restart."""
        if not self.waiting or not self.may_take:
            return False
        self.n_taken += 1
        self.seen.clear()  # there may be larger pieces now
        self.pieces |= self.waiting
        self.waiting.clear()
        return True

    def note(self, made: Made) -> Made:
        """Notes the classes of code; raises NotData if two classes have one name."""
        self.note_classes(made.classes)
        return made

    def note_classes(self, found: Mapping[str, UserClass]) -> None:
        """Notes the classes of code; raises NotData if two classes have one name, and Pieced if a
        new class has a method that was looked up in the earlier classes."""
        n_before, has_new = len(self.classes), False
        for name, each in found.items():
            self.asking[each.kind] = each.asking
            has_new |= name not in self.classes and not self.looked_up.isdisjoint(dir(each.kind))
            if self.classes.setdefault(name, each).kind is not each.kind:
                raise NotData(f"there are two classes {name}")
        is_grown = len(self.classes) > n_before
        if has_new or (is_grown and self.raises.is_outdated(self.classes)):
            raise Pieced

    def may_raise(self, code: str, error: type) -> bool:
        """Whether code on live objects may raise an error of a class."""
        return not is_programs(error) or self.raises.may_raise(code, error, self.classes)

    def places(self, filename: str, are_all: bool = False) -> Pieces:
        """The pieces in a file. are_all: whether nothing else in the file is converted."""
        as_code = (each for each in self.pieces.values() if each.filename == filename)
        in_python = frozenset() if self.in_python is None else self.in_python.places(filename)
        valued = frozenset((place, name) for file, place, name in self.valued if file == filename)
        live = filename if self.is_live else ""
        return Pieces(frozenset(as_code), in_python, are_all, valued, live)


def made_again(
    sites: Sites,
    originals: Originals,
    piece: Piece,
    values: Sequence[Any],
    names: dict[str, Any],
    away: frozenset[str] = frozenset(),
    fresh: frozenset[str] = frozenset(),
) -> Made:
    """`made`, computed once for values of the same forms; the reason for a NotData is kept too.

    It keeps no values, and no errors, whose tracebacks refer to values: a second reference to a
    value would count as another holder.
    """
    args: list[Any] = []
    own, classes = originals(names), sites.classes
    try:
        known = frozenset(classes)
        key = (
            piece,
            id(own),
            known,
            away,
            fresh,
            tuple([form_of(value, args) for value in values]),
        )
    except NoForm:
        return sites.note(made(originals, piece, values, names, classes, away, fresh))
    written = sites.written
    if key not in written:
        written[key] = _made_or_not(originals, piece, values, names, classes, away, fresh), own
    found = written[key][0]
    if not isinstance(found, Made):
        kind, why = found
        raise kind(why)
    return replace(sites.note(found), args=tuple(args))


def _made_or_not(
    originals: Originals,
    piece: Piece,
    values: Sequence[Any],
    names: dict[str, Any],
    classes: Mapping[str, UserClass],
    away: frozenset[str],
    fresh: frozenset[str],
) -> Made | Unmade:
    """A piece as code, or why it is none, not as an error, which would hold the piece's inputs."""
    try:
        return replace(made(originals, piece, values, names, classes, away, fresh), args=())
    except LostOrder as error:
        return LostOrder, str(error)
    except (NotData, CodeError) as error:
        return NotData, str(error)


def made(
    originals: Originals,
    piece: Piece,
    values: Sequence[Any],
    names: dict[str, Any],
    classes: Mapping[str, UserClass] | None = None,
    away: frozenset[str] = frozenset(),
    fresh: frozenset[str] = frozenset(),
) -> Made:
    """A piece as code. names: the globals of its function; classes: the user's classes whose
    objects may be in the graph; away: inputs that nothing refers to after the piece; fresh: lists
    that the code copies first. Raises NotData, CodeError.
    """
    classes = classes or {}
    found = names_of([piece.plain])
    refuse_hidden(piece.plain)
    for name in sorted({*ADDED} & {*piece.inputs, *found.reads, *found.writes}):
        raise NotData(f"{name} is a reserved name of code")
    maker = EntryWriter(ModuleText(originals), found.reads | found.writes)
    given = dict(zip(piece.inputs, values, strict=True))
    for name, value in given.items():
        if type(value) is AbstractRandom and name not in piece.changes:
            raise NotData("a random.Random is used for more than draws")
        maker.take(name, value)
    own = originals(names)
    if piece.grouping is not None and not _is_pythons(piece.grouping.func, own):
        raise NotData("its groups may differ from those of itertools")
    for name in sorted(found.reads - found.writes - set(piece.inputs)):
        maker.module.need(name, own)
    for each in _classes_met(piece, values, classes):
        maker.module.bind(each.kind.__name__, each.kind)
    others = {name for name in given.keys() - piece.changes - away if is_changeable(given[name])}
    flat = {name for name in others if is_flat(given[name]) and not is_record(given[name])}
    lists = {name for name in others - flat if holds_rows(given[name])}
    rows = {name for name in others - flat if is_row(given[name])}
    stored = others & stored_names(piece.plain) - flat - lists - rows
    stored |= flat & taken_names([piece.plain]) | rows & row_taken(piece.plain)
    stored |= rows_taken(piece.plain, lists & found.reads)
    merged = {name for name in merged_names(piece.plain) if _is_merged(given.get(name))}
    # A run itself guards a value out of JSON, which is seldom changeable.
    merged |= {name for name in stored if type(given[name]) in _OF_JSON}
    if piece.changes and stored - merged:
        raise NotData("the value that it changes may get parts that others hold")
    maker.changing = changing_of([*classes.values(), *maker.module.classes.values()])
    changers = dict(piece.changers)
    if maker.module.changes_outside(maker.changing, changers) and any(map(is_changeable, values)):
        raise NotData("a function changes its arguments")
    inside = made_inside(piece.plain)
    known = {*changed_roots(piece.plain, inside), *inside, *piece.changes}
    if not known.issuperset(changed_roots(piece.plain, inside, maker.changing)):
        raise NotData("a method changes an object that is known only at run time")
    _refuse_adding(maker.module, piece, given)
    code = maker.code(piece, fresh)
    parsed = parse_code(code)
    refuse_order(piece, parsed, maker.module)
    may_give = bool(maker.module.changeable & taken_names(parsed.functions))
    may_give = may_give or maker.module.has_objects
    has_outside = may_give or maker.module.has_nested
    return Made(code, tuple(maker.args), tuple(maker.inputs), has_outside, maker.module.classes)


def _is_pythons(function: ast.expr, names: Mapping[str, Any]) -> bool:
    """Whether an expression refers to `itertools.groupby`, by the names of a module."""
    if isinstance(function, ast.Attribute):
        of = names.get(function.value.id) if isinstance(function.value, ast.Name) else None
        return of is itertools
    return isinstance(function, ast.Name) and names.get(function.id) is itertools.groupby


def _classes_met(
    piece: Piece, values: Sequence[Any], classes: Mapping[str, UserClass]
) -> list[UserClass]:
    """The classes whose methods a piece may call on objects of unknown class."""
    if not any(map(_may_hold_objects, values)):
        return []
    asked = {each.attr for each in ast.walk(piece.plain) if isinstance(each, ast.Attribute)}
    return [
        each for _, each in sorted(classes.items())
        if not asked.isdisjoint(method.name for method, _ in each.methods)
    ]  # fmt: skip


def _may_hold_objects(value: Any) -> bool:
    if isinstance(value, AbstractList):
        return value.item_type == OBJECT
    return type(value) is AbstractObject


_OF_JSON = (AbstractJson, AbstractObject)


def _is_merged(value: Any) -> bool:
    """Whether the items of a value may become parts of another value: a run itself guards a value
    of the graph, and a plain value must hold nothing that can be changed."""
    if is_abstract(value):
        return isinstance(value, AbstractList)
    return not is_record(value) and is_flat(value)


def _refuse_adding(module: ModuleText, piece: Piece, given: Mapping[str, Any]) -> None:
    """Refuses code that may read, and so add, a key of a known `defaultdict`, unless the dict is
    one of the piece's changes."""
    read = read_by_key(piece.plain)
    is_read_inside = any(map(read_by_key, module.nodes))
    if (read or is_read_inside) and module.has_defaulting:
        raise NotData("reading a defaultdict changes it")
    for name in given.keys() - piece.changes:
        if (is_read_inside or name in read) and holds_defaulting(given[name]):
            raise NotData("reading a defaultdict changes it")


def refuse_order(piece: Piece, parsed: Code, module: ModuleText) -> None:
    """Raises LostOrder if code may see the order of a set, and its sets have another order."""
    lost = module.lost
    given = any(lost.get(name) for name in piece.targets)
    names = frozenset(lost)
    trees = (each for each in parsed.body if each is not parsed.entry)
    own = (piece.plain, *module.nodes)
    if (
        given
        or order_seen((piece.plain, *trees), names, {*piece.targets})
        or order_of_display_seen(own, {*piece.targets})
    ):
        raise LostOrder("the order of a set is seen: sorted(xs) has one")
