"""The tracer's session: collects a program's nodes, and what is known of their values. `recording/`
has a part for each kind of construct.

Values that the program reads are abstract. At each decision the run takes one path; the run ends
when it reaches a place that another run has reached in an equal state.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from types import CodeType
from typing import Any

from sgc.core.places import user_loc
from sgc.core.session import Stream
from sgc.core.symbols import Symbol
from sgc.core.watching import unhooked, unwatched
from sgc.errors import TraceError
from sgc.ir import types
from sgc.ir.graph import Lit, Loc, Node, Operand, Ref, operand_refs
from sgc.ir.op_specs import Flag
from sgc.ir.ops import OPS
from sgc.runtime.executor.interface.media import Media
from sgc.tracing.callees import Callees, Gathers
from sgc.tracing.code.calling import Calls
from sgc.tracing.code.handlers import is_caught
from sgc.tracing.convert.in_place import InPlace
from sgc.tracing.kinds.held import Holdings
from sgc.tracing.kinds.row_types import DictType, MemberType, plain
from sgc.tracing.kinds.text_types import Known, known_text
from sgc.tracing.paths.events import Events
from sgc.tracing.paths.exploration import Lines, MustExplore
from sgc.tracing.paths.explore import Path
from sgc.tracing.paths.facts import Facts, fact_of, fact_of_read
from sgc.tracing.paths.loops import Loops
from sgc.tracing.paths.naming import Made
from sgc.tracing.paths.segments import Segment
from sgc.tracing.pieces.choose import Places, now_at
from sgc.tracing.pieces.made import Sites
from sgc.tracing.recording.deciding import Deciding
from sgc.tracing.recording.dict_types import DictTypes
from sgc.tracing.snapshots.leaves import n_collections
from sgc.tracing.values.abstract import (
    INTERPRET,
    TraceStop,
    abstract,
    is_abstract,
    stop,
)
from sgc.tracing.values.abstract_record import refuse_object
from sgc.tracing.values.computing import whole
from sgc.tracing.values.json.abstract_json import seen
from sgc.tracing.values.leaving import leaving
from sgc.tracing.values.tool_failures import raise_failed

_SEEN = {"image": "an image", "video": "a video"}  # by their ops
AFTER_THE_RUN = f"read it from the state when the run is over, or {INTERPRET}"
# Generations in one stream of a program without decisions; if there are more, exploring finds the
# loops.
MAX_STRAIGHT = 32
MAX_NODES = 50_000  # of one run, which may be in a loop that never ends


class TraceSession(Deciding):
    """Collects nodes; values that the program reads are abstract."""

    def __init__(
        self,
        program: str,
        parameters: Iterable[str] = (),
        is_strict: bool = False,
        sites: Sites | None = None,
        lines: Lines | None = None,
    ) -> None:
        super().__init__(program, parameters, sites or Sites())
        self.n_collections = n_collections()
        self.is_strict = is_strict  # stops where a call reads what a file would keep
        self.nodes: list[Node] = []
        self.retyped: dict[str, types.Type] = {}  # parameters whose use gave their type
        self.images: set[str] = set()  # values used as images
        self._stopped: TraceStop | None = None
        self._stopped_at: tuple[Segment, int] | None = None  # with the segment's number of nodes
        self.stopped_places: Places = ()  # the frames at the stop, which a handler may leave
        self.path: Path | None = None  # None for a program without decisions
        self.loops: Loops | None = None
        self.facts = Facts()
        self.retired: set[int] = set()  # streams that are published already
        self._told: dict[Any, Made] = {}  # how values that may have several types were read
        self.callers: dict[str, str] = {}  # the caller's stream for each stream that a call begins
        self.events = Events(lines or Lines())
        self.calls = Calls()
        self.is_testing = False  # whether a join's predicate is being traced
        self.ended: BaseException | None = None  # ended the run, even if a handler swallows it
        self.known: dict[str, Known] = {}  # what is known of values beyond their types
        self.in_place: InPlace | None = None  # the functions converted in place
        self.callees: Callees | None = None  # the functions that the program maps
        self.gathers = Gathers()
        self.held = Holdings()
        self.copies: set[str] = set()
        self.new: set[str] = set()
        self.numbers: set[str] = set()
        self.defaulting: set[str] = set()
        self.views: dict[str, str] = {}
        self.view_parts: dict[str, str] = {}
        self.stale: set[str] = set()
        self.handed: set[str] = set()
        self.met: list[Symbol] = []  # the first result of each tool call and map
        self.sizes: set[str] = set()  # arguments that decide how many streams and texts there are
        self.n_taken = 0  # nodes
        self._n_asked: dict[str, int] = {}  # generations so far, by a stream's states
        self.cached: dict[Any, Any] = {}  # results of cached helpers
        self.written: Any = None  # a piece that was just found to be code, until it is performed
        self.made: dict[str, Made] = {}
        self.length_of: CodeType | None = None  # the `__len__` that an overlay has called

    def take(self, node: Node) -> None:
        self.n_taken += 1
        if self.n_taken > MAX_NODES:
            stop(
                f"one path of the program builds more than {MAX_NODES} nodes",
                hint="end its loop by a bound, or by a test of what was generated; or " + INTERPRET,
            )
        self._know(node)
        if self.path is not None:
            self.path.add(node)
        else:
            self._count(node)
            self.nodes.append(node)

    def _count(self, node: Node) -> None:
        """Counts the generations of a node's stream, whose first state is that of its fork."""
        stream = node.get("stream") if Flag.APPENDS in node.flags else None
        if isinstance(stream, Ref):
            n = self._n_asked.get(stream.name, 0) + (Flag.GENERATES in node.flags)
            self._n_asked[node.results[0].name] = n
            if n > MAX_STRAIGHT:
                self.end(MustExplore())

    def refuse_other_runs(self) -> None:
        stop(
            "another run is started while tracing",
            hint="call the @sgc.function itself, which becomes part of this program",
        )

    def is_abstract(self, value: Any) -> bool:
        return is_abstract(value)

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
        Code that generators run as they are freed is not a part of the run, and ends silently."""
        kept, self.ended = (self.ended, self._stopped), GeneratorExit()
        self.loops = self.events.root = None
        for error in kept:
            if error is not None:
                error.__traceback__ = None
        self.states, self.calling, self.scopes = [], [], []
        self.held, self.cached = Holdings(), {}

    def leave(self, error: TraceError, loc: Loc) -> bool:
        """Lets the interpreter continue where the trace stopped, if all nodes before the stop are
        right; returns whether they are."""
        stopped, path = self._stopped, self.path
        if stopped is None or path is None or self._stopped_at is None:
            return False
        segment, n_nodes = self._stopped_at
        is_right = error is stopped.error and not stopped.is_late
        if not is_right or self.is_over or segment is not path.current:
            return False
        del segment.nodes[n_nodes:]  # nodes made to name values, or after a handler
        path.leave(error.message, stopped.loc or loc)
        return True

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
        """Makes the image's content a part of the program, so that a run does not read the file."""
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

    def seen(self, value: Any) -> Any:
        return seen(value)

    def finish(self, ret_value: Any) -> None:
        ret_value = self.returned(leaving(ret_value))  # once: a widened value is put there
        if self.path is not None:
            self._refuse_ended()
            if self.path.is_fresh and self.path.exploration.is_merging:
                unhooked(self.reach)([], ret_value, None)
            self.states = [s for n, s in enumerate(self.states) if n not in self.retired]
        super().finish(ret_value)

    # -- nodes --------------------------------------------------------------------------

    def dict_type(self, symbol: Symbol) -> DictType | None:
        """The type of a dict that code has returned."""
        return DictTypes(self.made, self._types).of(symbol)

    @unhooked
    def emit(
        self, op: str, results: list[tuple[str, types.Type]], **fields: Operand
    ) -> list[Symbol]:
        self._refuse_ended()
        self.refuse_code(op)
        self._retype(op, fields)
        used = [name for operand in fields.values() for name in operand_refs(operand)]
        self.held.refuse_old(used)  # the graph's copy differs from the object by now
        holds = self.check_states(op, fields, used)
        if Flag.HOST in OPS[op].flags:
            self._refuse_objects(used)
        stored = [(hint, plain(type_)) for hint, type_ in results]
        if self.path is None or self.path.is_fresh:
            made = super().emit(op, stored, **fields)
        else:
            made = self._repeat(self.path, op, stored, fields)
        symbols = [
            each if each.type is type_ else Symbol(each.name, type_)
            for each, (_, type_) in zip(made, results, strict=True)
        ]
        self._types.update((symbol.name, symbol.type) for symbol in symbols)
        self.held.derive(symbols, used)
        self.note_states(symbols, holds)
        self._learn(op, symbols, fields)
        return symbols

    def _refuse_objects(self, names: Iterable[str]) -> None:
        """Stops the trace if a tool gets an object, which would be of another class."""
        for name in names:
            refuse_object(self._types.get(name, types.JSON))

    def _repeat(
        self, path: Path, op: str, results: list[tuple[str, types.Type]], fields: dict[str, Operand]
    ) -> list[Symbol]:
        """The results of the node that an earlier run built here; checks that it is the same."""
        node = path.repeat()
        is_same = op == node.op and len(fields) == len(node.fields)
        is_same = is_same and all(fields.get(name) == operand for name, operand in node.fields)
        if not is_same or [type_ for _, type_ in results] != [v.type for v in node.results]:
            raise TraceError(
                "the program does something else when it is traced again",
                where=str(user_loc() or ""),
                hint="it depends on time, randomness or state outside; pass such values as "
                "arguments",
            )
        self._know(node)
        return [
            Symbol(value.name, type_)
            for value, (_, type_) in zip(node.results, results, strict=True)
        ]

    def _know(self, node: Node) -> None:
        known = known_text(node)
        if known is not None:
            self.known[node.results[-1].name] = known

    def _learn(self, op: str, symbols: list[Symbol], fields: dict[str, Operand]) -> None:
        """Records what a node says about later nodes, such as its test or its caller."""
        for symbol in symbols:
            self.made[symbol.name] = (op, fields)
        self._tell_caller(op, fields)
        if op in ("tool", "map"):
            self.met += symbols[:1]
        if op == "stream" and self.calling:
            self.callers[symbols[0].name] = self.calling[-1].start.name
        if op in ("compute", "attempt", "evaluate"):
            self._note_test(op, symbols[0], fields)
        if Flag.APPENDS in OPS[op].flags or Flag.HOST in OPS[op].flags:
            self.facts.clear()

    def _note_test(self, op: str, symbol: Symbol, fields: dict[str, Operand]) -> None:
        """Records the fact of a test, and reads of values that may have several types."""
        args = fields["args"]
        assert isinstance(args, tuple)
        if symbol.type == types.BOOL:
            fact = fact_of_read(op, fields, self._told)
            if fact is None and op != "evaluate":
                name = f"{op} {fields['fn'].value}"  # type: ignore[union-attr]
                fact = fact_of(name.removeprefix("compute "), args)
            if fact is not None:
                self._tests[symbol.name] = fact
        is_told = bool(args) and isinstance(args[0], Ref) and args[0] in self._told
        is_read = fields.get("fn") == Lit("item") and isinstance(symbol.type, MemberType)
        if is_read or (op == "evaluate" and len(args) == 1 and is_told):
            self._told[Ref(symbol.name)] = (op, fields)
        elif fields.get("fn") == Lit("as") and is_told:  # the same value
            self._told[Ref(symbol.name)] = self._told[args[0]]

    def _retype(self, op: str, fields: Mapping[str, Operand]) -> None:
        """Records parameters used as numbers or images. If such a parameter has no annotation, the
        use decides its type; an image may also be annotated as the text of its path.
        """
        if op in _SEEN and isinstance(fields["value"], Ref):
            name = fields["value"].name
            if not self.is_parameter(name) and self._types[name].kind is not types.Kind.MEDIA:
                stop(
                    f"the file of {_SEEN[op]} is known only at run time",
                    hint="make it a parameter of the program; a text known only at run time may "
                    "be a model's, and must name no file; or " + INTERPRET,
                )
            self.images.add(name)
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
