"""One run of one program: nodes go in, each starts as soon as its operands exist.

Eager and compiled runs use this same class: the interpreter submits nodes one by one as
Python runs, a graph all at once. The use chain of stream states orders each stream;
any other operand orders streams among each other. Lives on one event loop and is not
thread-safe; `sgc.session` is the door from other threads.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from sgc.errors import ProgramError, SgcError
from sgc.ir.graph import Graph, Lit, Node, Operand, Ref
from sgc.ir.op_specs import Flag
from sgc.runtime.executor.backends.speculation import Speculation
from sgc.runtime.executor.interface.backend import Backend, Capabilities, Prompt
from sgc.runtime.executor.interface.failures import Failed
from sgc.runtime.executor.interface.place import Place, Placed, of_run
from sgc.runtime.executor.log.backend import Logged, log_as
from sgc.runtime.executor.ops.handlers import ASKING, HANDLERS, Results
from sgc.runtime.executor.run.blocks import Flow, Unset, flow_of, unset_error, walk
from sgc.runtime.executor.run.map_places import Called, MapPlace, Maps
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.plan import Plan, plan_of
from sgc.runtime.executor.run.record import Request, RunResult, Stats, StreamResult
from sgc.runtime.executor.run.stream import Piece, StreamState, special_pattern
from sgc.runtime.executor.run.stream_order import Births
from sgc.runtime.executor.run.winners import Cuts, Lost, awaited, lost_error, path_of
from sgc.runtime.executor.tools.tools import Tools

# (node, stream path, text): text that a stream has got, in order, never retracted.
OnText = Callable[[Node, str, str], None]


class Instance:
    """The state of one run. `finished` resolves with its result or its first error."""

    def __init__(
        self,
        program: str,
        backend: Backend,
        capabilities: Capabilities,
        options: RunOptions,
        arguments: Mapping[str, Any],
        on_text: OnText | None = None,
        row: str | None = None,
        path: str = "",
    ) -> None:
        """path: where it stands among the calls of another run, which it is a part of."""
        self.row = options.row if row is None else row
        self.program = program
        self.base = path
        self.backend = backend
        self._placed: Placed | None = backend if isinstance(backend, Placed) else None
        self._of_run = of_run(backend)
        if self._placed is None and options.log is not None:
            self._placed = Logged(backend, options.log)
        self.capabilities = capabilities
        self.options = options
        self.on_text = on_text
        self.called = Called()
        self.special = special_pattern(capabilities.special_tokens)
        self._streams: list[StreamResult | None] = []  # in order of their publish nodes
        self._stream_index: dict[int, int] = {}
        self.requests: list[Request] = []
        self.prefetches: list[Request] = []  # that are done; no requests of the program's
        self.failed_prefetches = 0
        self.tools = Tools(options.allow_tools)
        self._draws: dict[str, list[Request]] = {}  # by the value they gave
        self.finished: asyncio.Future[RunResult] = asyncio.get_running_loop().create_future()
        self._values: dict[str, Any] = dict(arguments)
        self._blocked: dict[str, list[_Pending]] = {}
        self._readers: dict[str, list[asyncio.Future[Any]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: deque[Node] = deque()
        self._plan: Plan | None = None
        self._n_missing: list[int] = []
        self._n_open = 0
        self._births: Births | None = None
        self.cuts = Cuts()
        self.speculation = Speculation()
        self.maps = Maps()
        self._parts: set[Instance] = set()  # runs of mapped calls that are under way
        self._returned: tuple[Any] | None = None
        self._start_s = time.monotonic()

    def part(
        self, program: str, arguments: Mapping[str, Any], path: str, place: MapPlace
    ) -> Instance:
        """A run of a called program that is a part of this one; `leave` ends that."""
        run = Instance(
            program, self.backend, self.capabilities, self.options, arguments, self.on_text,
            self.row, path,
        )  # fmt: skip
        run.called, run.tools = self.called, self.tools.part(place.tools)
        self._parts.add(run)
        if self.finished.done():
            run.cancel()
        return run

    async def leave(self, run: Instance) -> None:
        """Stops a part, if it is not over, and waits until it has let go of the backend."""
        run.cancel()
        await run.settle()
        self._parts.discard(run)

    def start(self, graph: Graph) -> None:
        """Takes a compiled program, once."""
        plan = plan_of(graph.blocks[0].nodes) if len(graph.blocks) == 1 else None
        if plan is not None and plan.is_in_order:
            self.submit_all(plan)
        else:
            self.walk(flow_of(graph))

    # -- nodes ------------------------------------------------------------------------

    def submit(self, nodes: Iterable[Node]) -> None:
        """Takes nodes whose operands are defined by earlier ones; starts what can start."""
        if self.finished.done():
            return
        for node in nodes:
            self._n_open += 1
            if self._births is not None:
                self._births.note(node)
            elif node.op == "publish":
                self._stream_index[id(node)] = len(self._streams)
                self._streams.append(None)
            if Flag.HOST in node.flags:
                self.tools.note(node)
            elif Flag.BEGINS in node.flags:
                self.maps.note(self, node)
            missing = {name for name in awaited(node) if name not in self._values}
            if missing:
                pending = _Pending(node, len(missing))
                for name in missing:
                    self._blocked.setdefault(name, []).append(pending)
            else:
                self._ready.append(node)
        self._drain()

    def walk(self, flow: Flow) -> None:
        """Takes a compiled program of several blocks, once."""
        self._births = Births()
        self.background(walk(self, flow))

    def path_of(self, node: Node) -> str:
        """The call path of a stream that begins."""
        return self.placed(self._path_of(node))

    def _path_of(self, node: Node) -> str:
        return node.text("path") if self._births is None else self._births.path_of(node)

    def placed(self, path: str) -> str:
        """A path as the run knows it that this one is a part of."""
        return self.base + path.removeprefix(self.program) if self.base else path

    @property
    def n_streams(self) -> int:
        """Streams begun by the nodes submitted so far."""
        return self.maps.n_streams if self._births is None else self._births.n_streams

    def submit_all(self, plan: Plan) -> None:
        """Takes all nodes of a compiled program, once; what they wait for is known."""
        self._n_open += len(plan.nodes)
        self._plan, self._n_missing = plan, list(plan.n_missing)
        for node in plan.nodes:
            if node.op == "publish":
                self._stream_index[id(node)] = len(self._streams)
                self._streams.append(None)
            elif Flag.HOST in node.flags:
                self.tools.note(node)
            elif plan.has_maps and Flag.BEGINS in node.flags:
                self.maps.note(self, node)
        for place, count in enumerate(plan.n_missing):
            if count == 0:
                self._ready.append(plan.nodes[place])
        for name in list(self._values):
            self._planned(plan, name)
        self._drain()

    def _planned(self, plan: Plan, name: str) -> None:
        """A value is there: those nodes of the plan are ready that wait for nothing else."""
        counts = self._n_missing
        for place in plan.waiting.get(name, ()):
            counts[place] -= 1
            if counts[place] == 0:
                self._ready.append(plan.nodes[place])

    def _drain(self) -> None:
        """Runs what is ready until nothing is; a loop, since chains are long."""
        while self._ready and not self.finished.done():
            node = self._ready.popleft()
            try:
                lost = self.cuts.of(self, node)
                if lost is not None:
                    results: Results = (lost,) * len(node.results)
                elif node.op in ASKING:
                    self._begin(node)
                    continue
                else:
                    results = HANDLERS[node.op](self, node)
            except BaseException as error:  # raised further, it would end the event loop
                self.fail(node, error)
                return
            self._complete(node, results)
        self._finish_if_done()

    def background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task of this run: cancelled with it, and waited for by `settle`."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _begin(self, node: Node) -> None:
        path = path_of(self, node)
        task = self.background(self._ask(node, path))
        if path is not None:
            self.cuts.note(task, path)

    async def _ask(self, node: Node, path: str | None) -> None:
        try:
            results = await ASKING[node.op](self, node)
        except BaseException as error:
            lost = None if path is None else self.cuts.at(path)
            if lost is None or self.finished.done() or not is_stopped(error):
                self.fail_unless_stopped(node, error)
                return
            results = (lost,) * len(node.results)
        if not self.finished.done():
            self._complete(node, results)
            self._drain()

    def hold(self) -> None:
        """Keeps the run from ending before `release`, as an unfinished node does."""
        self._n_open += 1

    def release(self) -> None:
        self._n_open -= 1
        self._finish_if_done()

    def _complete(self, node: Node, results: Results) -> None:
        for value, result in zip(node.results, results, strict=True):
            self.define(value.name, result)
        self._n_open -= 1

    def define(self, name: str, value: Any) -> None:
        self._values[name] = value
        if self._plan is not None:
            self._planned(self._plan, name)
        elif self._blocked:
            for pending in self._blocked.pop(name, ()):
                pending.n_missing -= 1
                if pending.n_missing == 0:
                    self._ready.append(pending.node)
        if self._readers:
            for reader in self._readers.pop(name, ()):
                if not reader.done():
                    reader.set_result(value)

    # -- values -----------------------------------------------------------------------

    def operand(self, operand: Operand) -> Any:
        """The run-time value of an operand of a node that is ready."""
        if isinstance(operand, Ref):
            value = self._values[operand.name]
            if type(value) is Unset:
                raise unset_error(value)
            if type(value) is Lost:
                raise lost_error(value)
            if type(value) is Failed:
                raise value.error()
            return value
        if isinstance(operand, Lit):
            return operand.value
        return tuple(map(self.operand, operand))

    def is_unset(self, name: str) -> bool:
        """Whether a value is that of a name which was not set on the way taken."""
        return type(self._values[name]) is Unset

    def field(self, node: Node, name: str) -> Any:
        return self.operand(node.get(name))

    def raw(self, name: str) -> Any:
        """A value that is there, also one that stands for what is not."""
        return self._values[name]

    def raw_field(self, node: Node, name: str) -> Any:
        """The same of an operand."""
        operand = node.get(name)
        return self.raw(operand.name) if isinstance(operand, Ref) else self.operand(operand)

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Those of some values that are there, in the order in which they came."""
        wanted = set(names) & self._values.keys()
        return [name for name in self._values if name in wanted] if wanted else []

    def known(self, name: str) -> tuple[Any] | None:
        """A value that is there already; may be called by any thread."""
        try:
            return (self._values[name],)
        except KeyError:
            return None

    def asked(self, node: Node, request: Request) -> None:
        """Takes note of what a sampling op asked and got."""
        self.requests.append(request)
        self._draws.setdefault(node.results[-1].name, []).append(request)

    def draws_of(self, name: str) -> list[Request]:
        """What was asked for a value; nothing where it was not generated."""
        return self._draws.get(name, [])

    def log_shared(self, request: Request, drawn: Request) -> None:
        """Writes down that a draw has another one's replies, for runs that ask for each."""
        if self.options.log is not None:
            log_as(self.options.log, self.row, drawn, request)

    def meta_info(self, name: str) -> Any:
        """How a value was generated; a list where several texts were drawn, None for neither."""
        found = [request.meta_info() for request in self._draws.get(name, ())]
        return None if not found else found[0] if len(found) == 1 else found

    async def value(self, name: str) -> Any:
        """Waits for a value; raises the run's error if it will never come."""
        if name in self._values:
            return self._values[name]
        if self.finished.done():
            self.finished.result()
        reader: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._readers.setdefault(name, []).append(reader)
        return await reader

    def extend(self, node: Node, state: StreamState, piece: Piece) -> StreamState:
        """Appends what is known at once, and shows it."""
        if self.on_text is not None and piece.text:
            self.on_text(node, state.path, piece.text)
        return state.append(piece)

    def backend_of(self, node: Node, path: str, ordinal: int) -> Backend:
        """The backend for a node's request, through the run's log where there is one."""
        backend, placed = self.backend, self._placed
        if self._of_run is not None:
            backend = self._of_run.in_run(self, node, path, ordinal)
            placed = Logged(backend, self.options.log) if self.options.log is not None else None
        if placed is None:
            return backend
        name = node.text("name") if Flag.ASKS in node.flags else ""
        return placed.at(Place(self.row, path, ordinal, name, str(node.loc or "")))

    def prompt(self, state: StreamState) -> Prompt:
        return state.prompt(self.special)

    # -- the end ----------------------------------------------------------------------

    def publish(self, node: Node, result: StreamResult) -> None:
        if self._births is not None:
            self._births.publish(node, result)
        else:
            self._streams[self._stream_index[id(node)]] = result

    def returns(self, value: Any) -> None:
        self._returned = (value,)

    def _finish_if_done(self) -> None:
        if self._returned is None or self._n_open or self.finished.done():
            return
        try:
            result = self._result(self._returned[0])
        except BaseException as error:  # in a task it would be lost, and the run never end
            self.fail(None, error)
        else:
            self.finished.set_result(result)

    def _result(self, ret_value: Any) -> RunResult:
        requests = tuple(sorted(self.requests, key=lambda request: request.start_s))
        wall_s = time.monotonic() - self._start_s
        return RunResult(
            program=self.program,
            streams=self._published(),
            ret_value=ret_value,
            stats=Stats.of(requests, wall_s, self.prefetches, self.failed_prefetches),
            seed=self.options.seed,
            requests=requests,
            tool_calls=self.tools.made(),
            prefetches=tuple(self.prefetches),
        )

    def _published(self) -> tuple[StreamResult, ...]:
        found = enumerate(self._streams) if self._births is None else self._births.streams()
        own = [(n, each) for n, each in found if each is not None and not self.cuts.at(each.path)]
        return self.maps.among(own)

    def take_in(self, place: MapPlace, results: Iterable[RunResult]) -> None:
        """Makes the results of a map's calls part of this run's, at the map's place."""
        results = tuple(results)
        self.maps.streams[place] = tuple(each for one in results for each in one.streams)
        for one in results:
            self.requests.extend(one.requests)
            self.prefetches.extend(one.prefetches)
            self.failed_prefetches += one.stats.failed_prefetches
        self.tools.take_in(place.tools, [call for one in results for call in one.tool_calls])

    def fail(self, node: Node | None, error: BaseException) -> None:
        """Ends the run with its first error, placed at the node's line; frees what it held."""
        if self.finished.done():
            return
        placed = _place(node, error)
        self.finished.set_exception(placed)
        # A run whose error nobody reads (the body failed first) must not warn at exit.
        self.finished.exception()
        for readers in self._readers.values():
            for reader in readers:
                if not reader.done():
                    reader.set_exception(placed)
        self._readers.clear()
        self._blocked.clear()
        self._ready.clear()
        for task in self._tasks:
            task.cancel()
        for part in self._parts:
            part.cancel()

    def fail_unless_stopped(self, node: Node | None, error: BaseException) -> None:
        """What a task of this run does with any error: only its own end goes further.

        A SystemExit of a user's callback would end the event loop, and with it every run.
        """
        if is_stopped(error):
            raise error
        self.fail(node, error)

    def cancel(self) -> None:
        """Stops everything; requests in flight are cancelled at the backend."""
        self.fail(None, ProgramError("the run was cancelled"))
        # Whoever was cancelled while waiting for `finished` has cancelled that too.
        for task in self._tasks:
            task.cancel()

    async def settle(self) -> None:
        """Waits until cancelled requests have let go of the backend."""
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        for part in tuple(self._parts):
            await part.settle()


def is_stopped(error: BaseException) -> bool:
    """Whether an error in a task says that the task itself was cancelled or thrown away."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    if isinstance(error, GeneratorExit):  # of a coroutine that is closed outside its loop
        try:
            return asyncio.current_task() is None
        except RuntimeError:
            return True
    return False


class _Pending:
    """A node that waits for some of its operands."""

    __slots__ = ("n_missing", "node")

    def __init__(self, node: Node, n_missing: int) -> None:
        self.node = node
        self.n_missing = n_missing


def _place(node: Node | None, error: BaseException) -> SgcError:
    """The error with the user's line; one that is not ours becomes a ProgramError."""
    where = str(node.loc) if node is not None and node.loc is not None else ""
    if isinstance(error, SgcError):
        error.where = error.where or where
        return error
    op = node.op if node is not None else "program"
    placed = ProgramError(f"{op} failed: {type(error).__name__}: {error}", where=where)
    placed.__cause__ = error
    return placed
