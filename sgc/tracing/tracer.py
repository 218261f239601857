"""The tracer: runs a program's Python once with abstract arguments and keeps the nodes.

What cannot be traced is an error at the user's line, never a wrong graph. A second trace
must give the same graph; `check.py` then replays it against the interpreter.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sgc.calls import run_body
from sgc.errors import SgcError, TraceError
from sgc.ir import types
from sgc.ir.graph import Block, Graph, Lit, Node, Operand, Param, Ref, Value
from sgc.ir.verify import verify
from sgc.runtime.executor.media import Media
from sgc.session import Session, innermost_user_line, own_texts
from sgc.symbols import Symbol
from sgc.tracing.abstract import (
    INTERPRET,
    AbstractFlag,
    AbstractList,
    AbstractNumber,
    AbstractText,
    TraceStop,
    abstract,
    marked,
    pieces_of,
    stop,
)
from sgc.tracing.guards import guards_of, plain
from sgc.tracing.hook import unwatched, watch
from sgc.tracing.markers import make_marker
from sgc.tracing.outside import OutsideTexts
from sgc.tracing.overlay import Overlays

if TYPE_CHECKING:
    from sgc.functions import Function
    from sgc.signature import Parameter
    from sgc.state import ProgramState


MAX_SYMBOLS = 10**7  # of one trace; a marker is its trace's nonce and a symbol's number


class TraceSession(Session):
    """Collects nodes; what the program reads of them is abstract."""

    is_tracing = True

    def __init__(
        self,
        program: str,
        parameters: Iterable[str] = (),
        is_strict: bool = False,
        is_silent: bool = False,
    ) -> None:
        super().__init__(program)
        self.is_strict = is_strict  # what a compiled run would not do, such as printing, stops
        self._outside = OutsideTexts()
        self.nodes: list[Node] = []
        self.retyped: dict[str, types.Type] = {}  # parameters whose use gave their type
        self.images: set[str] = set()  # values used as images
        self._symbols: list[Symbol] = []
        self._parameters = frozenset(parameters)
        self._numbers: dict[str, int] = {}
        self._overlays = Overlays(is_silent)
        self._nonce = random.SystemRandom().randrange(10**11, 10**12)
        self.stopped: TraceStop | None = None  # the first stop, should the program swallow it

    def take(self, node: Node) -> None:
        self.nodes.append(node)

    def refuse_other_runs(self) -> None:
        stop(
            "another run is started while tracing",
            hint="call the @sgc.function itself, which becomes part of this program",
        )

    def is_abstract(self, value: Any) -> bool:
        is_text = isinstance(value, AbstractText) or marked(value)
        return is_text or isinstance(value, (AbstractNumber, AbstractFlag, AbstractList))

    def refuse_changes(self) -> None:
        """Stops the trace if the program has changed data outside itself."""
        self._overlays.refuse_changes()

    def note(self, bound: Mapping[str, Any], function: Function) -> None:
        """Texts of arguments that are fixed are values from outside all the same."""
        self._outside.note(bound, own_texts(function.python))

    def body(self, function: Function) -> Callable[..., Any]:
        return self._overlays.rebuild(function.python)

    def read(self, symbol: Symbol) -> Any:
        return abstract(symbol, self)

    def text_of(self, state: Symbol) -> Any:
        (symbol,) = self.emit("text_of", [("text", types.TEXT)], stream=Ref(state.name))
        return abstract(symbol, self)

    def messages_of(self, state: Symbol) -> list[dict[str, Any]]:
        stop("messages() is known only when the program runs")

    def meta_info(self, value: Symbol) -> Any:
        stop("get_meta_info() is known only when the program runs")

    def settled(self, state: Symbol) -> None:
        """Nothing runs: what comes after in the program comes after."""

    def pieces_of(self, state: Symbol) -> list[tuple[str, str]]:
        stop("what makes up a stream is known only when the program runs")

    def text_iter(self, state: ProgramState, names: Any) -> Iterator[Any]:
        stop("text_iter() shows a run; a program that is compiled has none yet")

    def text_async_iter(
        self, state: ProgramState, names: Any, with_meta: bool
    ) -> AsyncIterator[Any]:
        stop("text_async_iter() shows a run; a program that is compiled has none yet")

    def cancel(self) -> None:
        stop("a program that is being compiled cannot be cancelled")

    def media(self, load: Callable[[Any], Media], value: Any) -> Operand:
        """The image itself becomes part of the program: reading it is no read at run time."""
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

    # -- markers ------------------------------------------------------------------------

    def marker(self, symbol: Symbol) -> str:
        """The marker of a symbol: the same each time, so that equal texts stay equal."""
        if symbol.name not in self._numbers:
            self._numbers[symbol.name] = len(self._symbols)
            self._symbols.append(symbol)
        return make_marker(self._nonce * MAX_SYMBOLS + self._numbers[symbol.name])

    def is_parameter(self, name: str) -> bool:
        return name in self._parameters

    def symbol_of(self, number: int) -> Symbol:
        nonce, index = divmod(number, MAX_SYMBOLS)
        if nonce != self._nonce:
            stop("a value of another trace is used here; values do not outlive their trace")
        return self._symbols[index]

    def formatted(self, value: Any, spec: str) -> str:
        """The marker of `format(value, spec)`, done when the program runs."""
        if marked(spec) or isinstance(spec, AbstractText):
            stop("a format specification known only when the program runs")
        (symbol,) = self.emit(
            "format", [("text", types.TEXT)], value=self.scalar(value), spec=Lit(spec)
        )
        return self.marker(symbol)

    def shown(self, text: str) -> str:
        """A text for error messages: names in braces where values go."""
        parts = [
            part if isinstance(part, str) else "{" + self.symbol_of(part).name + "}"
            for part in pieces_of(text)
        ]
        return "".join(parts) if len(parts) != 1 else parts[0].strip("{}")

    # -- operands -----------------------------------------------------------------------

    def text_parts(self, text: str) -> list[tuple[bool, Operand]]:
        parts: list[tuple[bool, Operand]] = []
        for piece in pieces_of(text):
            if isinstance(piece, str):
                parts += [(own, Lit(part)) for own, part in self._outside.split(piece)]
            else:
                parts.append((False, self._ref(piece)))
        return parts

    def _ref(self, number: int) -> Ref:
        return Ref(self.symbol_of(number).name)

    def scalar(self, value: Any) -> Operand:
        if isinstance(value, (AbstractNumber, AbstractFlag, AbstractList)):
            return Ref(value.symbol.name)
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, (bool, int, float)):
            return Lit(value)
        stop(
            f"a {type(value).__name__} cannot be part of a compiled program",
            hint="use text, numbers, lists and dicts of them; or " + INTERPRET,
        )

    def _text(self, text: str) -> Operand:
        parts = self.text_parts(text)
        if not parts:
            return Lit("")
        if len(parts) == 1:
            return parts[0][1]
        operands = tuple(operand for _, operand in parts)
        (symbol,) = self.emit("concat", [("text", types.TEXT)], parts=operands)
        return Ref(symbol.name)

    def emit(
        self, op: str, results: list[tuple[str, types.Type]], **fields: Operand
    ) -> list[Symbol]:
        self._retype(op, fields)
        return super().emit(op, results, **fields)

    def _retype(self, op: str, fields: Mapping[str, Operand]) -> None:
        """A parameter without annotation that is used as a number is one; one used as an image
        is one, also where it is annotated as the text of its path.
        """
        if op in ("image", "video") and isinstance(fields["value"], Ref):
            self.images.add(fields["value"].name)
        for name, type_ in _NUMERIC_FIELDS.get(op, {}).items():
            operand = fields.get(name)
            if isinstance(operand, Ref):
                self.retyped.setdefault(operand.name, type_)


def _numeric_fields() -> dict[str, dict[str, types.Type]]:
    from sgc.ir.ops import NUMERIC, OPS

    found: dict[str, dict[str, types.Type]] = {}
    for op in ("gen", "gen_n", "select"):
        for row in OPS[op].fields:
            if row.kinds <= NUMERIC and not row.is_list:
                is_int = types.Kind.FLOAT not in row.kinds
                found.setdefault(op, {})[row.name] = types.INT if is_int else types.FLOAT
    return found


_NUMERIC_FIELDS = _numeric_fields()


def trace(
    function: Function,
    bound: Mapping[str, Any] | None = None,
    types_of: Mapping[str, types.Type] | None = None,
    is_strict: bool = False,
) -> Graph:
    """The graph of a program, with `bound` arguments fixed to Python values.

    types_of: of arguments, where they are known better than the signature does. is_strict: a
    program that prints is not traced. Raises TraceError at the user's line where it cannot be
    traced, or when two traces differ; ArgumentError for unknown names in `bound`.
    """
    bound, known = dict(bound or {}), dict(types_of or {})
    function.signature.check_bound(bound)
    for parameter in function.signature.static:
        if parameter.name not in known:
            bound.setdefault(parameter.name, parameter.default)
    graph = _trace_once(function, bound, known, is_strict)
    again = _trace_once(function, bound, known, is_strict, is_silent=True)
    if graph != again:
        raise _difference(function, graph, again)
    verify(graph)
    return graph


def _trace_once(
    function: Function,
    bound: Mapping[str, Any],
    known: Mapping[str, types.Type],
    is_strict: bool,
    is_silent: bool = False,
) -> Graph:
    free = [
        replace(p, type=known[p.name], is_typed=True, has_default=False) if p.name in known else p
        for p in function.signature.parameters
        if p.name not in bound
    ]
    session = TraceSession(function.name, (p.name for p in free), is_strict, is_silent)
    session.note(bound, function)
    given = {name: copied(value) for name, value in bound.items()}
    for parameter in free:
        session.namer.take(parameter.name)
        given[parameter.name] = abstract(Symbol(parameter.name, parameter.type), session)
    try:
        with watch():
            _run_body(function, session, given)
            _refuse_changed(bound, given)
    except TraceStop as stopped:
        raise (session.stopped or stopped).error from None
    except Exception:
        if session.stopped is not None:
            raise session.stopped.error from None
        raise
    if session.stopped is not None:
        raise session.stopped.error
    params = tuple(_param(parameter, session) for parameter in free)
    block = Block("entry", (), tuple(session.nodes))
    return Graph(function.name, params, (block,), guards_of(function, bound))


def _run_body(function: Function, session: TraceSession, arguments: Mapping[str, Any]) -> None:
    """Runs the body and publishes; a Python error of the body becomes a TraceError."""
    try:
        run_body(function, session, arguments)
        session.refuse_changes()
    except SgcError:
        raise
    except RecursionError as error:
        raise TraceError(
            f"{function.name} recurses too deeply while being traced",
            where=innermost_user_line(error),
            hint="a recursion must end by a static argument, before Python's own limit",
        ) from error
    except Exception as error:
        raise TraceError(
            f"the program raised {type(error).__name__} while being traced: {error}",
            where=innermost_user_line(error),
        ) from error


def copied(value: Any) -> Any:
    """A copy of plain data, so that a program that changes it changes nothing outside."""
    return deepcopy(value) if plain(value) is not None else value


def _refuse_changed(bound: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    for name, value in bound.items():
        if plain(value) != plain(given[name]):
            stop(
                f"the program changes its argument {name!r}; a compiled program would not",
                hint="make a copy of it in the program; or " + INTERPRET,
            )


def _param(parameter: Parameter, session: TraceSession) -> Param:
    type_ = parameter.type
    if parameter.name in session.images and type_ == types.TEXT:
        type_ = types.MEDIA
    elif not parameter.is_typed:
        type_ = session.retyped.get(parameter.name, type_)
    return Param(Value(parameter.name, type_), parameter.default_operand)


def _difference(function: Function, first: Graph, second: Graph) -> TraceError:
    pairs = zip(first.nodes(), second.nodes(), strict=False)
    node = next((a for a, b in pairs if a != b), None)
    return TraceError(
        f"tracing {function.name} twice gave two different programs",
        where=str(node.loc) if node is not None and node.loc else "",
        hint="it depends on time, randomness or state outside; pass such values as arguments",
    )
