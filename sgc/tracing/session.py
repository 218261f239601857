"""The tracer's session: collects a program's nodes, and what is known of their values.

Values that the program reads are abstract. At each decision the run takes one path, and it ends
when it reaches a place that another run has reached in an equal state.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from sgc.core.markers import Style, make_marker
from sgc.core.places import own_texts, user_loc
from sgc.core.session import Stream
from sgc.core.symbols import Symbol
from sgc.core.watching import unhooked, unwatched
from sgc.errors import TraceError
from sgc.ir import types
from sgc.ir.functions import FUNCTIONS
from sgc.ir.graph import Lit, Loc, Node, Operand, Ref, operand_refs
from sgc.ir.op_specs import TEXTUAL, Flag
from sgc.ir.ops import OPS
from sgc.lang.definition import Definition
from sgc.lang.joins import refuse_test, tested
from sgc.runtime.executor.interface.media import Media
from sgc.tracing.callees import Callee, Callees, Gathers, Unmet, Wanted
from sgc.tracing.code.calling import Calls
from sgc.tracing.code.handlers import ends_program, is_caught
from sgc.tracing.convert.in_place import InPlace, Unconverted
from sgc.tracing.failing import fail_aside
from sgc.tracing.kinds.held import Holdings
from sgc.tracing.kinds.row_types import OBJECT, holds_objects, outer, plain
from sgc.tracing.kinds.text_types import Known, domain, known_text
from sgc.tracing.late_names import LateNames
from sgc.tracing.maps import map_traced
from sgc.tracing.overlays.namespace import Overlays
from sgc.tracing.paths.blame import blamed, made_from
from sgc.tracing.paths.events import Events, raise_at_next_line
from sgc.tracing.paths.exploration import HasDecisions, NamesAsked, PathEnd
from sgc.tracing.paths.explore import Path
from sgc.tracing.paths.facts import Fact, Facts, fact_of
from sgc.tracing.paths.loops import Loops
from sgc.tracing.paths.naming import Made, name_of
from sgc.tracing.paths.segments import Segment
from sgc.tracing.pieces.choose import Places, now_at
from sgc.tracing.pieces.made import Sites
from sgc.tracing.snapshots.leaves import n_collections
from sgc.tracing.values.abstract import (
    INTERPRET,
    AbstractFlag,
    AbstractList,
    AbstractNumber,
    TraceStop,
    abstract,
    is_abstract,
    pieces_of,
    stop,
)
from sgc.tracing.values.abstract_json import seen
from sgc.tracing.values.abstract_record import refuse_leaving, refuse_object
from sgc.tracing.values.abstract_turns import counted
from sgc.tracing.values.computing import attempted, computed, whole
from sgc.tracing.values.open_fork import OpenFork, open_fork
from sgc.tracing.values.tool_failures import raise_failed
from sgc.tracing.watch.hook import meet_read, refuse_act, watch_now
from sgc.tracing.watch.outside import OutsideTexts

if TYPE_CHECKING:
    from sgc.lang.maps import MapCall, MappedStates
    from sgc.lang.state import ProgramState


AFTER_THE_RUN = f"read it from the state when the run is over, or {INTERPRET}"
_NUMBERS = (types.INT, types.FLOAT, types.BOOL)
MAX_NODES = 50_000  # of one run, which may be in a loop that never ends
MAX_SYMBOLS = 10**7  # of one trace; a marker's number is made of a nonce and the symbol's number


class TraceSession(LateNames):
    """Collects nodes; values that the program reads are abstract."""

    def __init__(
        self,
        program: str,
        parameters: Iterable[str] = (),
        is_strict: bool = False,
        is_silent: bool = False,
        sites: Sites | None = None,
    ) -> None:
        super().__init__(program)
        self.n_collections = n_collections()
        self.sites = sites or Sites()
        self.is_strict = is_strict  # stops at what a compiled run would not do, such as printing
        self._outside = OutsideTexts()
        self.nodes: list[Node] = []
        self.retyped: dict[str, types.Type] = {}  # parameters whose use gave their type
        self.images: set[str] = set()  # values used as images
        self._symbols: list[Symbol] = []
        self._parameters = frozenset(parameters)
        self._numbers: dict[str, int] = {}
        self._overlays = Overlays(is_silent, sites=self.sites)
        self.style = Style.SHORT  # of the markers
        self._nonce = random.SystemRandom().randrange(10**11, 10**12)
        self._stopped: TraceStop | None = None
        self._stopped_at: tuple[Segment, int] | None = None  # with the number of its nodes
        self.stopped_places: Places = ()  # the frames that ran then, which a handler may leave
        self.path: Path | None = None  # None for a program without decisions
        self.loops: Loops | None = None
        self.facts = Facts()
        self.retired: set[int] = set()  # streams that are published already
        self.callers: dict[str, str] = {}  # the caller's stream for each stream that a call begins
        self.events = Events()
        self.calls = Calls()
        self.is_testing = False  # whether a join's predicate is being traced
        self.ended: BaseException | None = None  # what ended the run, in case it is swallowed
        self.known: dict[str, Known] = {}  # what is known of texts beyond their types
        self.in_place: InPlace | None = None  # the functions converted in place
        self.callees: Callees | None = None  # the functions that the program maps
        self.gathers = Gathers()
        self.max_turns: int | None = None
        self.held = Holdings()
        self.copies: set[str] = set()
        self.numbers: set[str] = set()
        self.defaulting: set[str] = set()
        self.views: dict[str, str] = {}
        self.stale: set[str] = set()
        self.handed: set[str] = set()
        self.met: list[Symbol] = []  # the first result of each tool call and map
        self.sizes: set[str] = set()  # arguments that decide how many streams and texts there are
        self.n_taken = 0  # nodes
        self.cached: dict[Any, Any] = {}  # what cached helpers have given
        self._types: dict[str, types.Type] = {}
        self.made: dict[str, Made] = {}
        self._tests: dict[str, Fact] = {}

    def take(self, node: Node) -> None:
        self.n_taken += 1
        if self.n_taken > MAX_NODES:
            stop(
                f"one path of the program builds more than {MAX_NODES} nodes",
                hint="end its loop by a bound, or by a test of what was generated; or " + INTERPRET,
            )
        self._know(node)
        if self.path is None:
            self.nodes.append(node)
        else:
            self.path.add(node)

    def refuse_other_runs(self) -> None:
        stop(
            "another run is started while tracing",
            hint="call the @sgc.function itself, which becomes part of this program",
        )

    def is_abstract(self, value: Any) -> bool:
        return is_abstract(value)

    def note_type(self, symbol: Symbol) -> None:
        self._types[symbol.name] = symbol.type
        self.note_states([symbol])

    @property
    def stopped(self) -> TraceStop | None:
        """The first stop, in case the program swallows it."""
        return self._stopped

    @stopped.setter
    def stopped(self, stopped: TraceStop) -> None:
        self._stopped = stopped
        self.stopped_places = [*now_at(self.events.root)]
        if self.path is not None and self.path.is_fresh:
            self._stopped_at = self.path.current, len(self.path.current.nodes)

    def forget_frames(self) -> None:
        """Drops the frames of a run that is over: they hold its values, which hold this session.
        What generators do as they are freed is no part of the run, and ends without a word."""
        kept, self.ended = (self.ended, self._stopped), GeneratorExit()
        self.loops = self.events.root = None
        for error in kept:
            if error is not None:
                error.__traceback__ = None
        self.states, self.calling, self.scopes = [], [], []
        self.held, self.cached = Holdings(), {}

    def leave(self, error: TraceError, loc: Loc) -> bool:
        """Lets the interpreter go on where the trace stopped, if all before is right; whether it
        is."""
        stopped, path = self._stopped, self.path
        if stopped is None or path is None or self._stopped_at is None:
            return False
        segment, n_nodes = self._stopped_at
        is_right = error is stopped.error and not stopped.is_late
        if not is_right or self.is_over or segment is not path.current:
            return False
        del segment.nodes[n_nodes:]  # what was computed to name values, or after a handler
        path.leave(error.message, stopped.loc or loc)
        return True

    @unhooked
    def refuse_changes(self) -> None:
        """Stops the trace if the program has changed data outside itself."""
        self._overlays.refuse_changes()

    @unhooked
    def refuse_changed_objects(self) -> None:
        self._overlays.refuse_changed_objects()

    def watch(self, name: str, value: Any) -> None:
        """Notes a value as one that the program must not change. name: whose it is."""
        self._overlays.watch(name, value, is_copied=False)

    def watch_code(self, code: CodeType, names: dict[str, Any]) -> None:
        """Notes what code reads of the names it runs over, as of a function."""
        self._overlays.watch_code(code, names)

    def meet_surroundings(self, what: str, is_change: bool = False) -> None:
        """Refuses what the program's own code asks of its process, unless it may; or changes."""
        (refuse_act if is_change else meet_read)(what)

    def is_outside(self, value: Any) -> bool:
        return self._overlays.is_outside(value)

    @unhooked
    def put_back(self) -> None:
        """Undoes the run's changes to objects outside the program."""
        self._overlays.put_back()

    def note(self, bound: Mapping[str, Any], function: Definition) -> None:
        """Records the texts of bound arguments, which are values from outside too."""
        self._outside.note(bound, own_texts(function.python))
        for name, value in bound.items():
            self._overlays.watch(name, value)

    def note_outside(self, values: Any) -> None:
        """Records the texts in values from outside, such as a mapped call's arguments."""
        self._outside.add(values)

    @unhooked
    def body(self, python: FunctionType) -> Callable[..., Any]:
        return self._overlays.rebuild(python)

    def entered(self, function: FunctionType) -> Callable[..., Any]:
        return self._overlays.entered(function)

    def originals(self, names: dict[str, Any]) -> Mapping[str, Any]:
        return self._overlays.originals(names)

    def is_outside_changed(self) -> bool:
        return self._overlays.is_changed()

    def meet(self, frame: FrameType) -> None:
        if self.in_place is None:
            return
        if self.in_place.needs(frame):
            self.end(Unconverted(frame.f_globals))
        elif self.in_place.has(frame.f_globals):
            self._overlays.watch_code(frame.f_code, frame.f_globals)

    def read(self, symbol: Symbol) -> Any:
        return abstract(symbol, self)

    def text_of(self, state: Symbol) -> Any:
        (symbol,) = self.emit("text_of", [("text", types.TEXT)], stream=Ref(state.name))
        return abstract(symbol, self)

    def messages_of(self, state: Symbol) -> list[dict[str, Any]]:
        stop("messages() is known only at run time", AFTER_THE_RUN)

    def meta_info(self, value: Symbol) -> Any:
        stop("get_meta_info() is known only at run time", AFTER_THE_RUN)

    def settled(self, state: Symbol) -> None:
        """Does nothing: a trace runs no generations."""

    def pieces_of(self, state: Symbol) -> list[tuple[str, str]]:
        stop("what makes up a stream is known only at run time")

    def text_iter(self, state: Stream, names: Any) -> Iterator[Any]:
        stop("text_iter() shows a run; a program that is compiled has none yet")

    def text_async_iter(self, state: Stream, names: Any, with_meta: bool) -> AsyncIterator[Any]:
        stop("text_async_iter() shows a run; a program that is compiled has none yet")

    def cancel(self) -> None:
        stop("a program that is being compiled cannot be cancelled")

    def media(self, load: Callable[[Any], Media], value: Any) -> Operand:
        """Makes the image itself part of the program, so that a run does not read it."""
        if self.is_strict and not isinstance(value, (Media, bytes)):
            stop(
                "the program names an image's file; compiled, it would keep its content of now",
                hint="pass the image as an argument of the program",
            )
        with unwatched():
            found = load(value)
        fields = {"sha256": Lit(found.digest), "mime": Lit(found.mime), "data": Lit(found.base64())}
        if found.n_frames:
            fields["frames"] = Lit(found.n_frames)
        (symbol,) = self.emit("media", [("image", types.MEDIA)], **fields)
        return Ref(symbol.name)

    @property
    def is_certain(self) -> bool:
        return self.path is None or not self.path.answers

    def is_caught(self) -> bool:
        return is_caught()

    def raise_failed(self, value: Symbol) -> None:
        raise_failed(self, value)

    # -- maps and forks -----------------------------------------------------------------

    def open_fork(self, stream: ProgramState, size: Any) -> OpenFork:
        return open_fork(self, stream, size)

    def large_fork(self, stream: ProgramState, size: int) -> OpenFork | None:
        if self.path is None or not self.sites.forks.is_open(size):
            return None
        return OpenFork(self, stream, self.compute("int", size))

    def note_size(self, size: Any) -> frozenset[str]:
        if not isinstance(size, AbstractNumber):
            whole(size)  # stops the trace, or raises Python's own error
            return frozenset()
        found = self._numbers_among(made_from([size.symbol.name], self.made))
        self.sizes |= found
        return found

    def map(self, call: MapCall) -> MappedStates:
        return map_traced(self, call)

    def as_value(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.as_value, value))
        if isinstance(value, dict):
            return {key: self.as_value(item) for key, item in value.items()}
        if not self.is_abstract(value):
            self.note_outside(value)
            return value
        if not isinstance(value, str) or len(pieces_of(value)) == 1:
            return value
        operand = self._text(value)
        assert isinstance(operand, Ref)
        # As the result of `str`, no part of it counts as the program's own text.
        return self.compute("str", Symbol(operand.name, types.TEXT))

    def callee(
        self, function: Definition, types_of: Mapping[str, types.Type], bound: Mapping[str, Any]
    ) -> Callee:
        """The callee for a mapped function; ends the trace if the function is not traced yet."""
        assert self.callees is not None
        turns = function.max_turns or self.max_turns
        wanted = Wanted(function, types_of, bound, self.stack.heal, turns)
        found = self.callees.find(wanted)
        if found is None:
            self.end(Unmet(wanted))
        return found

    def note_unknown(self, number: int, name: str) -> None:
        """Ends the trace if a called program may set a name that tracing does not know of."""
        assert self.callees is not None
        callee = self.callees.number(number)
        if callee.others is not None:
            self.end(Unmet(callee.wanted, name))

    def refuse_handled(self, name: str) -> None:
        """Stops the trace if the program handles errors that a mapped call may raise."""
        if self.path is None:
            self.end(HasDecisions())  # handlers are known only when exploring
        if self.loops is not None and self.loops.is_caught():
            stop(
                f"an error that {name} may raise in sgc.map is handled by the program",
                hint=f"handle it in {name} itself, and return what tells of it; or " + INTERPRET,
            )

    def _tell_caller(self, op: str, fields: Mapping[str, Operand]) -> None:
        """Records the types of variables and return values for a program that maps this one."""
        if op == "return":
            self.gathers.returns.add(self.outer_type(fields["value"]))
        elif op == "publish" and fields["stream"] == Ref(self.states[0].symbol.name):
            keys, items = fields["keys"], fields["items"]
            assert isinstance(keys, tuple)
            assert isinstance(items, tuple)
            for key, item in zip(keys, items, strict=True):
                assert isinstance(key, Lit)
                self.gathers.names.setdefault(str(key.value), set()).add(self.outer_type(item))

    # -- markers ------------------------------------------------------------------------

    def marker(self, symbol: Symbol) -> str:
        """The marker of a symbol; always the same, so that equal texts stay equal."""
        if symbol.name not in self._numbers:
            self._numbers[symbol.name] = len(self._symbols)
            self._symbols.append(symbol)
        return make_marker(self._nonce * MAX_SYMBOLS + self._numbers[symbol.name], self.style)

    def blamed(self, traceback: TracebackType | None) -> set[str]:
        """The symbols that were inputs of the operation that stopped the trace."""
        return blamed(self, self.made, traceback)

    def needed(self, traceback: TracebackType | None) -> frozenset[str]:
        """The numeric arguments from which the values that stopped the trace were computed; empty
        if they also depend on anything but arguments."""
        return self._numbers_among(self.blamed(traceback))

    def numbers_tested(self, tests: Iterable[str]) -> frozenset[str]:
        """The numeric arguments that some of these tests depend on alone."""
        return frozenset().union(
            *(self._numbers_among(made_from([test], self.made)) for test in tests)
        )

    def _numbers_among(self, found: Set[str]) -> frozenset[str]:
        begin = {name for name in found if not self._is_computed(name)}
        if not all(map(self.is_parameter, begin)):
            return frozenset()
        return frozenset(name for name in begin if self._types[name] in _NUMBERS)

    def _is_computed(self, name: str) -> bool:
        op = self.made.get(name, ("", {}))[0]
        return op in OPS and Flag.PURE in OPS[op].flags

    def seen(self, value: Any) -> Any:
        return seen(value)

    def is_parameter(self, name: str) -> bool:
        return name in self._parameters

    def symbol_of(self, number: int) -> Symbol:
        nonce, index = divmod(number, MAX_SYMBOLS)
        if nonce != self._nonce:
            stop("a value of another trace is used here; values do not outlive their trace")
        return self._symbols[index]

    def formatted(self, value: Any, spec: str) -> str:
        """The marker of `format(value, spec)`, computed at run time."""
        (symbol,) = self.emit(
            "format", [("text", types.TEXT)], value=self.scalar(value), spec=Lit(spec)
        )
        return self.marker(symbol)

    def shown(self, text: str) -> str:
        """A text for error messages, with the names of values in braces."""
        parts = [
            part if isinstance(part, str) else "{" + self.name_of(self.symbol_of(part)) + "}"
            for part in pieces_of(text)
        ]
        return "".join(parts) if len(parts) != 1 else parts[0].strip("{}")

    def name_of(self, symbol: Symbol) -> str:
        """A value's name in the user's terms, for messages."""
        return symbol.name if self.is_parameter(symbol.name) else name_of(symbol.name, self.made)

    # -- functions and decisions --------------------------------------------------------

    @unhooked
    def compute(self, fn: str, *args: Any, type_: types.Type | None = None) -> Any:
        """The abstract value of a function of `ir/functions.py`, which cannot fail here."""
        gives = FUNCTIONS[fn].gives
        assert type_ is not None or gives is not None, fn
        known = type_ or types.Type(gives)  # type: ignore[arg-type]
        return abstract(self._emit_compute(fn, args, known), self)

    def _emit_compute(self, fn: str, args: tuple[Any, ...], type_: types.Type) -> Symbol:
        operands = tuple(self.operand(arg) for arg in args)
        (symbol,) = self.emit("compute", [("v", type_)], fn=Lit(fn), args=operands)
        return symbol

    @unhooked
    def attempt(self, fn: str, *args: Any, raising: Callable[[Any], NoReturn] | None = None) -> Any:
        operands = tuple(self.operand(arg) for arg in args)
        ok, why = self.emit(
            "attempt", [("ok", types.BOOL), ("why", types.TEXT)], fn=Lit(fn), args=operands
        )
        said = abstract(why, self)
        fails = None if raising is None else partial(raising, said)
        return None if self.decide(ok, fails) else said

    def join_tests(self, states: Sequence[Stream], when: Callable[[Any], Any]) -> list[Operand]:
        self.is_testing = True
        try:
            return [self._join_test(tested(state, when)) for state in states]
        finally:
            self.is_testing = False

    def _join_test(self, value: Any) -> Operand:
        if type(value) is not bool and not isinstance(value, AbstractFlag):
            refuse_test()
        return self.scalar(value)

    def type_of(self, operand: Operand) -> types.Type:
        if isinstance(operand, Ref):
            return plain(self._types.get(operand.name, types.JSON))
        return super().type_of(operand)

    def outer_type(self, operand: Operand) -> types.Type:
        """The type of an operand's value in another program, called or calling."""
        if isinstance(operand, Ref):
            return outer(self._types.get(operand.name, types.JSON))
        return super().type_of(operand)

    def decide(self, test: Symbol, raising: Callable[[], NoReturn] | None = None) -> bool:
        if self.is_testing:
            stop(
                "the predicate of a join decides something itself",
                hint="give one comparison, or several joined by & and | in place of `and` and "
                "`or`; what can fail, such as int(x), is no predicate; or " + INTERPRET,
            )
        if self.path is None:
            self.end(HasDecisions())
        self._refuse_ended()
        fact = self._tests.get(test.name, ("is", (("ref", test.name),)))
        known: bool | None = self.facts.outcome(fact, self._options)
        if known is not None:
            self.note_pruned(self.name_of(test))
            return known
        was_fresh = self.path.is_fresh
        if was_fresh and self.is_looking:
            self.look_for_pieces()
        answer = self.path.answer(test, user_loc() if was_fresh else None)
        if answer is None:
            self.end(PathEnd())
        if was_fresh and raising is not None and ends_program():
            fail_aside(self, fact, raising)
        self.facts[fact] = answer
        if self.path.is_fresh and not was_fresh:
            self.retired = self.path.retired()
            watch_now()
        return answer

    def counted(self, n: Any) -> Iterator[Any]:
        return self.looped(counted(self, n))

    def joined(self, sep: str, items: Any) -> Any:
        """`sep.join(items)` for an abstract list."""
        is_of_text = items.symbol.type == types.list_of(types.TEXT)
        return (computed if is_of_text else attempted)(self, "join", sep, items)

    def looped(self, loop: Iterator[Any]) -> Iterator[Any]:
        """Notes that one of the language's loops begins; returns it."""
        if self.loops is not None:
            self.loops.note(loop)
        return loop

    def note_pruned(self, test: str) -> None:
        """Records a test whose outcome was known, for `sgc explain`."""
        if self.path is not None:
            self.path.exploration.pruned[f"{user_loc()}: {test}"] = None

    def _options(self, name: str) -> tuple[str, ...] | None:
        type_ = self._types.get(name)
        return domain(Symbol(name, type_), self) if type_ is not None else None

    def end(self, error: BaseException) -> NoReturn:
        """Ends this run of the program, even if a handler of the program swallows the error."""
        self.ended = error
        raise error

    def _refuse_ended(self) -> None:
        if self.ended is not None:
            if self.events.root is not None:  # the run goes on
                raise_at_next_line(self.ended, self.events.root)
            raise self.ended

    @unhooked
    def note_read(self, name: str | None) -> None:
        if self.path is not None and self.loops is not None and self.loops.is_caught():
            self.note_asked((name,))

    def note_asked(self, names: Iterable[str | None]) -> None:
        if self.path is None or self.ended is not None:
            return
        try:
            self.path.exploration.ask(names)
        except NamesAsked as asked:
            self.end(asked)

    def finish(self, ret_value: Any) -> None:
        refuse_leaving(ret_value)
        if self.path is not None:
            self._refuse_ended()
            if self.path.is_fresh and self.path.exploration.is_merging:
                unhooked(self.reach)([], self.returned(ret_value), None)
            self.states = [s for n, s in enumerate(self.states) if n not in self.retired]
        super().finish(ret_value)

    # -- operands -----------------------------------------------------------------------

    def text_parts(self, text: str) -> list[tuple[bool, Operand]]:
        parts: list[tuple[bool, Operand]] = []
        for piece in pieces_of(text):
            if isinstance(piece, str):
                parts += [(own, Lit(part)) for own, part in self._outside.split(piece)]
            else:
                parts.append((False, self._ref(piece)))
        return parts

    def _gather(self, op: str, keys: list[str], items: Any) -> Operand:
        operand = super()._gather(op, keys, items)
        assert isinstance(operand, Ref)
        parts = self.made[operand.name][1]["items"]
        assert isinstance(parts, tuple)
        if op == "record" and not keys:  # a tuple
            self._types[operand.name] = OBJECT
        elif any(map(holds_objects, map(self.outer_type, parts))):
            self._types[operand.name] = types.list_of(OBJECT) if op == "list" else OBJECT
        return operand

    def _ref(self, number: int) -> Ref:
        return Ref(self.symbol_of(number).name)

    def scalar(self, value: Any) -> Operand:
        if issubclass(type(value), str):
            return self._text(value)
        if issubclass(type(value), (AbstractNumber, AbstractList)):
            return Ref(value.symbol.name)
        if value is None or isinstance(value, (bool, int, float)):
            return Lit(value)
        stop(
            f"a {type(value).__name__} cannot be part of a compiled program",
            hint="use text, numbers, lists and dicts of them; or " + INTERPRET,
        )

    def _as_text(self, operand: Operand) -> Operand:
        """The operand as a text: a number is converted by `str`."""
        type_ = self._types.get(operand.name) if isinstance(operand, Ref) else None
        if type_ is None or type_.kind in TEXTUAL:
            return operand
        assert isinstance(operand, Ref)
        number = Symbol(operand.name, type_)
        return Ref(self._emit_compute("str", (number,), types.TEXT).name)

    def _text(self, text: str) -> Operand:
        parts = self.text_parts(text)
        if not parts:
            return Lit("")
        if len(parts) == 1:
            return self._as_text(parts[0][1])
        operands = tuple(operand for _, operand in parts)
        (symbol,) = self.emit("concat", [("text", types.TEXT)], parts=operands)
        return Ref(symbol.name)

    @unhooked
    def emit(
        self, op: str, results: list[tuple[str, types.Type]], **fields: Operand
    ) -> list[Symbol]:
        self._refuse_ended()
        self.refuse_code(op)
        self._retype(op, fields)
        used = [name for operand in fields.values() for name in operand_refs(operand)]
        self.held.refuse_old(used)  # the copy that the graph has is another now
        holds = self.check_states(op, fields, used)
        if Flag.HOST in OPS[op].flags:
            self._refuse_objects(used)
        stored = [(hint, plain(type_)) for hint, type_ in results]
        if self.path is None or self.path.is_fresh:
            made = super().emit(op, stored, **fields)
        else:
            made = self._repeat(self.path, op, stored, fields)
        symbols = [Symbol(each.name, type_) for each, (_, type_) in zip(made, results, strict=True)]
        self._types.update((symbol.name, symbol.type) for symbol in symbols)
        self.held.derive(symbols, used)
        self.note_states(symbols, holds)
        self._learn(op, symbols, fields)
        return symbols

    def _refuse_objects(self, names: Iterable[str]) -> None:
        """Stops the trace if a tool is given an object, which would be of another class."""
        for name in names:
            refuse_object(self._types.get(name, types.JSON))

    def _repeat(
        self, path: Path, op: str, results: list[tuple[str, types.Type]], fields: dict[str, Operand]
    ) -> list[Symbol]:
        """The results of the node that an earlier run built here; checks that it is the same."""
        node = path.repeat()
        is_same = op == node.op and fields == dict(node.fields)
        if not is_same or [type_ for _, type_ in results] != [v.type for v in node.results]:
            raise TraceError(
                "the program does something else when it is traced again",
                where=str(user_loc() or ""),
                hint="it depends on time, randomness or state outside; pass such values as "
                "arguments",
            )
        self._know(node)
        return [Symbol(value.name, value.type) for value in node.results]

    def _know(self, node: Node) -> None:
        known = known_text(node)
        if known is not None:
            self.known[node.results[-1].name] = known

    def _learn(self, op: str, symbols: list[Symbol], fields: dict[str, Operand]) -> None:
        """Records what a node says about later ones, such as its test or its caller."""
        for symbol in symbols:
            self.made[symbol.name] = (op, fields)
        self._tell_caller(op, fields)
        if op in ("tool", "map"):
            self.met += symbols[:1]
        if op == "stream" and self.calling:
            self.callers[symbols[0].name] = self.calling[-1].start.name
        if op in ("compute", "attempt") and symbols[0].type == types.BOOL:
            fn, args = fields["fn"], fields["args"]
            assert isinstance(fn, Lit)
            assert isinstance(args, tuple)
            fact = fact_of(f"{op} {fn.value}".removeprefix("compute "), args)
            if fact is not None:
                self._tests[symbols[0].name] = fact
        if Flag.APPENDS in OPS[op].flags or Flag.HOST in OPS[op].flags:
            self.facts.clear()

    def _retype(self, op: str, fields: Mapping[str, Operand]) -> None:
        """Records parameters used as numbers or images. If such a parameter has no annotation, the
        use decides its type; an image may also be annotated as the text of its path.
        """
        if op in ("image", "video") and isinstance(fields["value"], Ref):
            self.images.add(fields["value"].name)
        for name, type_ in _NUMERIC_FIELDS.get(op, {}).items():
            operand = fields.get(name)
            if isinstance(operand, Ref):
                if plain(self._types.get(operand.name, type_)) == types.JSON:
                    whole(self.read(Symbol(operand.name, types.JSON)))  # says what to write
                self.retyped.setdefault(operand.name, type_)


def _numeric_fields() -> dict[str, dict[str, types.Type]]:
    from sgc.ir.op_specs import NUMERIC
    from sgc.ir.ops import OPS, ops_with

    found: dict[str, dict[str, types.Type]] = {}
    for op in ops_with(Flag.ASKS):
        for row in OPS[op].fields:
            if row.kinds <= NUMERIC and not row.is_list:
                is_int = types.Kind.FLOAT not in row.kinds
                found.setdefault(op, {})[row.name] = types.INT if is_int else types.FLOAT
    return found


_NUMERIC_FIELDS = _numeric_fields()
