"""One run of one program: each node starts as soon as its operands exist.

Interpreted and compiled runs use the same class: the interpreter submits nodes one by one as Python
runs, a compiled program all at once. Each stream state is used once, which orders the nodes of a
stream; all other operands order nodes of different streams. A run lives on one event loop and is
not thread-safe; other threads reach it through `sgc.interpreter.session`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sgc.errors import DeoptReached, ProgramError, SgcError
from sgc.ir.analysis.live_order import is_ordered, reads_futures
from sgc.ir.graph import Graph, Node
from sgc.ir.op_specs import Flag
from sgc.ir.ops import ops_with
from sgc.runtime.executor.hints.ahead import Ahead, Told, ahead_of, tell
from sgc.runtime.executor.ops.asking import Asking
from sgc.runtime.executor.ops.foreseen import foreseen
from sgc.runtime.executor.ops.handlers import ASKING, HANDLERS, Results
from sgc.runtime.executor.run.blocks import Ahead as BlockAhead
from sgc.runtime.executor.run.blocks import Flow, flow_of, walk
from sgc.runtime.executor.run.context import Context
from sgc.runtime.executor.run.cuts import Cuts, awaited, path_of
from sgc.runtime.executor.run.map_places import MapPlace, Maps, number_of
from sgc.runtime.executor.run.program_order import ProgramOrder
from sgc.runtime.executor.run.record import RunResult, StreamResult
from sgc.runtime.executor.run.requests import Requests
from sgc.runtime.executor.run.schedule import Plan, Schedule, plan_of
from sgc.runtime.executor.run.stream_order import Streams
from sgc.runtime.executor.run.values import Values
from sgc.runtime.executor.run.work import Work, is_stopped
from sgc.runtime.executor.tools.tool_calls import Tools

if TYPE_CHECKING:
    from sgc.runtime.executor.code.live import Memory

_OF_HOST = ops_with(Flag.HOST)
_CALLS = _OF_HOST | ops_with(Flag.CALLS)


class Instance:
    """One run, by its parts. `finished` resolves with its result or its first error."""

    def __init__(
        self, context: Context, arguments: Mapping[str, Any], tools: Tools | None = None
    ) -> None:
        """tools: for a mapped call, its part of the tools of its run."""
        self.context = context
        self.work = Work()
        self.finished = self.work.finished
        self.values = Values(arguments, self.finished)
        self._arguments = frozenset(arguments)
        self.schedule = Schedule(self.values)
        self.streams = Streams()
        self.maps = Maps()
        self.cuts = Cuts(self.work)
        self._order = ProgramOrder(self.values.by_name)
        self.tools = Tools(context.options.allow_tools) if tools is None else tools
        self.asking = Asking(context)
        self.requests = Requests()
        self._ahead: Ahead | None = None  # of a compiled program
        self._caller: tuple[Instance, Node] | None = None  # of a mapped call in one
        self._returned: tuple[Any] | None = None
        self._left: DeoptReached | None = None
        self._performed: tuple[str, ...] = ()  # the value of the last `perform`
        self._late: list[str] = []  # values of calls that code holds while they run
        self._memory: Memory | None = None
        begin = getattr(context.backend, "begin_run", None)  # of one that traces
        if begin is not None and tools is None:
            self.finished.add_done_callback(begin(context.program, context.row, context.number))

    def part(
        self,
        program: str,
        arguments: Mapping[str, Any],
        path: str,
        place: MapPlace,
        node: Node | None = None,
    ) -> Instance:
        """A run of a called program as a part of this run, until `work.leave` is called with it.

        node: that calls it, in a compiled program.
        """
        tools = self.tools.part(place.tools)
        run = Instance(self.context.part(program, path), arguments, tools)
        if self._ahead is not None and node is not None:
            run._ahead = self._ahead.called[number_of(node, "program")]
            run._caller = self, node
        self.work.enter(run)
        return run

    @property
    def _is_compiled(self) -> bool:
        return self._ahead is not None

    # -- nodes ------------------------------------------------------------------------

    def start(self, graph: Graph) -> None:
        """Starts a compiled program; called once."""
        self._ahead = self._ahead or ahead_of(graph)
        plan = plan_of(graph.blocks[0].nodes) if len(graph.blocks) == 1 else None
        if plan is not None and plan.is_in_order:
            self._submit_all(plan)
        else:
            self._walk(flow_of(graph))

    def submit(self, nodes: Sequence[Node], waits: Iterable[Iterable[str]] | None = None) -> None:
        """Adds nodes whose operands are defined by earlier nodes; starts those that are ready.

        waits: what each node waits for, if it is known.
        """
        if self.finished.done() or self._order.has_failed:
            return
        if self._is_compiled:
            self._order.note(nodes)
        found = map(awaited, nodes) if waits is None else waits
        for node, names in zip(nodes, found, strict=False):
            self.streams.note(node)
            if is_ordered(node):  # after all that run before it in the program
                names = (*names, *self._performed, *self._read_late(node))
                self._performed = (node.results[0].name,)
            elif node.op == "future":
                self._late += node.refs()
            if node.op in _CALLS:
                self._note_call(node)
            self.schedule.add(node, names)
        self._drain()

    def _read_late(self, node: Node) -> Sequence[str]:
        """The values of calls that may still be running, if a node's code may read one."""
        if not self._late or not reads_futures(node.text("code")):
            return ()
        self._late = [name for name in self._late if name not in self.values.by_name]
        return self._late.copy()

    def _submit_all(self, plan: Plan) -> None:
        self._order.note(plan.nodes)
        for node in plan.noted:
            self.streams.note(node)
            if node.op in _CALLS:
                self._note_call(node)
        self.schedule.add_all(plan)
        self._drain()

    def _walk(self, flow: Flow) -> None:
        self.streams.count_by_blocks()
        self.work.background(walk(self, flow))

    def _note_call(self, node: Node) -> None:
        """Notes a call's place among the calls, in the order of the program."""
        if node.op in _OF_HOST:
            self.tools.order.note(node)
        else:
            has_effects = self.context.called.has_effects[number_of(node, "program")]
            self.maps.note(node, self.place_map(self.maps.ordinal_of(node), has_effects))

    def place_map(self, ordinal: int, has_effects: bool = False) -> MapPlace:
        """The next map's place. has_effects: its calls may have effects; later effects wait."""
        mark = self.tools.order.mark(has_effects)
        return self.maps.place(ordinal, self.streams.n_begun, mark)

    def _drain(self) -> None:
        """Runs ready nodes until there are none; a loop, since recursion would be too deep."""
        ready = self.schedule.ready
        while ready and not self.finished.done():
            node = ready.popleft()
            if self._order.is_behind(node):
                continue
            try:
                lost = self.cuts.of(self.values, node)
                if lost is not None:
                    results: Results = (lost,) * len(node.results)
                elif node.op in ASKING:
                    self._begin(node)
                    continue
                else:
                    results = HANDLERS[node.op](self, node)
            except BaseException as error:  # let through, it would end the event loop
                self._failed(node, error)
                continue
            self._complete(node, results)
        self._finish_if_done()

    def _begin(self, node: Node) -> None:
        path = path_of(self.values, node)
        self.work.background(self._ask(node, path), path)

    async def _ask(self, node: Node, path: str | None) -> None:
        tell(lambda: self._told(node))
        try:
            results = await ASKING[node.op](self, node)
        except BaseException as error:
            lost = None if path is None else self.cuts.at(path)
            if lost is None or self.finished.done() or not is_stopped(error):
                self.fail_unless_stopped(node, error)
                return
            results = (lost,) * len(node.results)
        if not self.finished.done():
            self._note_taken(node)
            self._complete(node, results)
            self._drain()

    def _told(self, node: Node) -> Told:
        if self._ahead is None:
            return Told(self.context.number, None)
        return Told(self.context.number, round(self._ahead.of(node) + self._left_after()))

    def _left_after(self) -> float:
        """The remaining tokens of the whole run after this part of it."""
        if self._caller is None:
            return 0.0
        run, node = self._caller
        return (0.0 if run._ahead is None else run._ahead.after(node)) + run._left_after()

    def _note_taken(self, node: Node) -> None:
        """Notes the length of a generation, for the hints of later runs."""
        if self._ahead is not None and Flag.GENERATES in node.flags:
            draws = self.requests.draws_of(node.results[-1].name)
            if draws:
                self._ahead.saw(node, draws[-1].usage.completion_tokens)

    def _complete(self, node: Node, results: Results) -> None:
        define, came = self.values.define, self.schedule.came
        for value, result in zip(node.results, results, strict=True):
            define(value.name, result)
            came(value.name)
        self.schedule.n_open -= 1

    async def reached(self, node: Node) -> None:
        """Waits until Python would have come to a node: all values before it are there."""
        if self._caller is not None:
            run, call = self._caller
            await run.reached(call)
        while self._is_compiled and (name := self._order.missing(node)):
            await self.values.value(name)

    def foresee(self, arms: Mapping[str, Sequence[BlockAhead]]) -> None:
        """Calls pure tools of blocks, one of which will run."""
        self.tools.foresee(self.context, foreseen(self, arms))

    def decided(self, name: str) -> None:
        """Drops calls that were begun for blocks that do not run."""
        self.tools.early.decide(name)

    def define(self, name: str, value: Any) -> None:
        """Sets a value; nodes that waited only for it become ready."""
        self.values.define(name, value)
        self.schedule.came(name)

    @property
    def memory(self) -> Memory:
        """The objects that code on live objects has made."""
        from sgc.runtime.executor.code.live import Memory  # loads many modules

        if self._memory is None:
            self._memory = memory = Memory()
            self.finished.add_done_callback(lambda _: memory.close())
        return self._memory

    def is_argument(self, name: str) -> bool:
        """Whether a value is one that the program was given."""
        return name in self._arguments

    # -- for handlers -------------------------------------------------------------------

    def field(self, node: Node, name: str) -> Any:
        """The value of a field of a node that is ready."""
        return self.values.operand(node.get(name))

    def path_of(self, node: Node) -> str:
        """The call path of a stream that begins."""
        return self.context.placed(self.streams.path_of(node))

    def hold(self) -> None:
        """Keeps the run open until `release`, as an unfinished node does."""
        self.schedule.n_open += 1

    def release(self) -> None:
        self.schedule.n_open -= 1
        self._finish_if_done()

    def returns(self, value: Any) -> None:
        """Sets the program's return value."""
        self._returned = (value,)

    def leaves(self, error: DeoptReached) -> None:
        """Ends the run with this error once all that began before has ended, and is in its log."""
        self._left = error

    def take_in(self, place: MapPlace, results: Iterable[RunResult]) -> None:
        """Adds the results of a map's calls to this run's, at the map's place."""
        results = tuple(results)
        self.maps.streams[place] = tuple(each for one in results for each in one.streams)
        for one in results:
            self.requests.take_in(one)
            self.tools.early.n_begun += one.early_calls
        calls = [call for one in results for call in one.tool_calls]
        self.tools.order.take_in(place.tools, calls)

    # -- the end ----------------------------------------------------------------------

    def _finish_if_done(self) -> None:
        if self.finished.done():
            return
        if (first := self._order.due()) is not None:
            self.fail(*first)
        if self.schedule.n_open or self.finished.done():
            return
        if self._left is not None:
            self.fail(None, self._left)
            return
        if self._returned is None:
            return
        self.tools.early.drop()
        try:
            result = self._result(self._returned[0])
        except BaseException as error:  # a task would lose it, and the run would never end
            self.fail(None, error)
        else:
            self.finished.set_result(result)

    def _result(self, ret_value: Any) -> RunResult:
        if self._memory is not None:
            self._memory.check_given()
        requests = self.requests.by_start()
        return RunResult(
            program=self.context.program,
            streams=self._published(),
            ret_value=ret_value,
            stats=self.requests.stats(requests),
            seed=self.context.options.seed,
            requests=requests,
            tool_calls=self.tools.order.made(),
            prefetches=tuple(self.requests.prefetches),
            early_calls=self.tools.early.n_begun,
        )

    def _published(self) -> tuple[StreamResult, ...]:
        published = self.streams.published()
        return self.maps.among([(n, each) for n, each in published if not self.cuts.at(each.path)])

    def fail(self, node: Node | None, error: BaseException) -> None:
        """Ends the run with its first error, located at the node's line; frees its resources."""
        if self.finished.done():
            return
        placed = _place(node, error)
        self.finished.set_exception(placed)
        # If nobody reads the error (the body failed first), asyncio must not warn at exit.
        self.finished.exception()
        self.values.fail(placed)
        self.schedule.clear()
        self.tools.early.drop()
        self.work.cancel_tasks()
        self.work.cancel_parts()

    def fail_unless_stopped(self, node: Node | None, error: BaseException) -> None:
        """Ends the run with an error of one of its tasks, unless the task itself was stopped.

        A user's callback that raises SystemExit would otherwise end the event loop and all runs.
        """
        if is_stopped(error):
            raise error
        self._failed(node, error)
        self._finish_if_done()

    def _failed(self, node: Node | None, error: BaseException) -> None:
        """Notes an error, which ends the run unless one comes that is earlier in the program.

        An interpreted run makes its nodes one by one, so its first error is the earliest.
        """
        if self._is_compiled and isinstance(error, Exception):
            self._order.fail(node, error)
        else:
            self.fail(node, error)

    def cancel(self) -> None:
        """Stops everything; requests in flight are cancelled at the backend."""
        if not self.finished.done():
            self.fail(None, ProgramError("the run was cancelled"))
        # A waiter that was cancelled has cancelled `finished` too, without stopping the tasks.
        self.work.cancel_tasks()

    async def settle(self) -> None:
        """Waits until cancelled requests have released the backend."""
        await self.work.settle()


def _place(node: Node | None, error: BaseException) -> SgcError:
    """The error with the user's line; an error that is no SgcError becomes a ProgramError."""
    where = str(node.loc) if node is not None and node.loc is not None else ""
    if isinstance(error, SgcError):
        error.where = error.where or where
        return error
    op = node.op if node is not None else "program"
    placed = ProgramError(f"{op} failed: {type(error).__name__}: {error}", where=where)
    placed.__cause__ = error
    return placed
