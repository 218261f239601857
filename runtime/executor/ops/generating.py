"""Generations at run time: requesting them, showing them, and sharing an equal one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sgc.errors import UnsupportedParameter
from sgc.ir.graph import Node, Ref, operand_refs
from sgc.ir.sampling import SAMPLING
from sgc.runtime.executor.hints.last_use import last_use
from sgc.runtime.executor.interface.backend import Backend, Generated, Prompt, Sampling
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.ops.run import Run
from sgc.runtime.executor.ops.showing import Shown
from sgc.runtime.executor.patterns.checked_constraints import (
    ConstraintPlan,
    OnThrown,
    Try,
    plan_constraint,
)
from sgc.runtime.executor.prompts.reasoning import split_reasoning
from sgc.runtime.executor.run.options import (
    check_parameter,
    decide_sampling,
    own_seed_of,
    seed_of,
)
from sgc.runtime.executor.run.record import Request
from sgc.runtime.executor.run.stream import Piece, PieceKind, StreamState, pass_gate

_SAMPLING = frozenset(row.name for row in SAMPLING)


async def gen(run: Run, node: Node) -> tuple[Any, ...]:
    n = 1 if run.field(node, "single") else run.context.options.n
    return await _generate(run, node, n, is_list=n > 1)


async def gen_n(run: Run, node: Node) -> tuple[Any, ...]:
    n = run.field(node, "n")
    check_parameter("n", n)
    return await _generate(run, node, n, is_list=True)


async def _generate(run: Run, node: Node, n: int, is_list: bool) -> tuple[Any, ...]:
    context = run.context
    state: StreamState = run.field(node, "stream")
    given, sampling, plan = _decided(run, node)
    plan = _seeded(run, state, given, plan)
    await pass_gate(state)
    prompt = context.prompt(state)
    backend = run.asking.backend_of(run, node, state.path, state.n_draws)
    if given.get("keep_stop"):
        _check_keep_stop(sampling, context.capabilities)
    shown = Shown(run, node, state.path)
    is_hidden = node.op == "gen" and run.field(node, "hidden")

    def on_thrown(tried: Try) -> None:
        run.requests.made.append(_request_of(run, node, state, prompt, tried, is_used=False))

    tries: tuple[Try, ...]
    if n == 1:
        backend = _speculating(run, node, state, plan, backend, on_thrown)
        can_stream = context.on_text is not None and plan.can_stream and not is_hidden
        on_delta = shown.add if can_stream else None
        with last_use(node, state, prompt):
            tries = (await plan.generate(backend, prompt, on_delta, on_thrown),)
    else:
        seeds = _seeds(run, state, given, plan.sampling, n)
        with last_use(node, state, prompt):
            tries = await plan.generate_n(backend, prompt, seeds, on_thrown)
    if given.get("keep_stop"):
        tries = tuple([replace(tried, reply=_with_stop(tried.reply)) for tried in tries])
    texts = [tried.reply.text for tried in tries]
    value = texts if is_list else texts[0]
    for tried in tries:
        run.requests.add_draw(node, _request_of(run, node, state, prompt, tried, value))
    if not is_hidden:
        shown.finish(texts[0])
    return state.draw(_generated_pieces(tries[0].reply), prompt, context.special), value


def _seeded(
    run: Run, state: StreamState, given: Mapping[str, Any], plan: ConstraintPlan
) -> ConstraintPlan:
    """The plan of one text, with its seed. A greedy text has none, so that requests are equal."""
    context, sampling = run.context, plan.sampling
    if not sampling.is_greedy:
        seed = seed_of(given, context.options, context.row, state.path, state.n_draws)
        is_repeatable = given.get("seed") is not None or not context.options.is_seed_drawn
        sampling = replace(sampling, seed=seed, is_repeatable=is_repeatable)
    if given.get("seed") is not None:
        sampling = replace(sampling, own_seed=own_seed_of(given))
    return plan if sampling is plan.sampling else replace(plan, sampling=sampling)


def _seeds(
    run: Run, state: StreamState, given: Mapping[str, Any], sampling: Sampling, n: int
) -> list[tuple[int, int | None]]:
    """The seeds of n texts, each with the seed that the program set; greedy texts have seed 0."""
    if sampling.is_greedy:
        return [(0, own_seed_of(given))] * n
    place = (run.context.options, run.context.row, state.path, state.n_draws)
    return [(seed_of(given, *place, i), own_seed_of(given, i)) for i in range(n)]


def _check_keep_stop(sampling: Sampling, capabilities: Capabilities) -> None:
    if sampling.stop and not capabilities.tells_stop:
        raise UnsupportedParameter(
            f"{capabilities.model} does not say which stop string ended a text, which "
            "keep_stop needs",
            hint="leave it out, and append the text yourself",
        )


def _speculating(
    run: Run,
    node: Node,
    state: StreamState,
    plan: ConstraintPlan,
    backend: Backend,
    on_thrown: OnThrown,
) -> Backend:
    """The backend for one text: an earlier reply may hold it, or its reply may hold later texts."""
    ahead = run.field(node, "ahead") if node.op == "gen" else 0
    where, capabilities = str(node.loc or ""), run.context.capabilities
    if plan.check is None:
        return run.asking.speculation.backend(
            backend, capabilities, state.path, ahead, on_thrown, where
        )
    if ahead and capabilities.speculates:
        run.asking.speculation.warn_once(where, f"its {plan.check.field} is checked here")
    return backend


def _request_of(
    run: Run,
    node: Node,
    state: StreamState,
    prompt: Prompt,
    tried: Try,
    value: Any = None,
    is_used: bool = True,
) -> Request:
    return Request(
        "generate", run.field(node, "name"), state.path, state.n_draws, prompt, node.loc,
        tried.start_s, tried.end_s, tried.reply.usage, sampling=tried.sampling, reply=tried.reply,
        value=value, is_used=is_used,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decision:
    """The decided parameters of a node, without the seed. of: the objects that decided them, kept
    alive because their ids are keys.
    """

    of: tuple[object, ...]
    given: Mapping[str, Any]
    sampling: Sampling
    plan: ConstraintPlan


# Of nodes whose parameters are all literals, by the ids of options and capabilities, and by the
# node's id and by its parameters: a loop makes new nodes in each turn, as an interpreted run does.
_decisions: dict[tuple[object, int, int], Decision] = {}
MAX_DECISIONS = 4096


def _decided(run: Run, node: Node) -> tuple[Mapping[str, Any], Sampling, ConstraintPlan]:
    """Returns a generation's own parameters, its decided sampling, and the plan of its requests."""
    options, capabilities = run.context.options, run.context.capabilities
    of = id(options), id(capabilities)
    found = _decisions.get((id(node), *of))
    if found is None:
        own = tuple([field for field in node.fields if field[0] in _SAMPLING])
        is_literal = not any(operand_refs(operand) for _, operand in own)
        found = _decisions.get((own, *of)) if is_literal else None
    if found is None:
        given = {name: run.values.operand(operand) for name, operand in own}
        sampling = decide_sampling(given, options, capabilities.chat.stop)
        plan = plan_constraint(sampling, capabilities)
        found = Decision((node, options, capabilities), given, sampling, plan)
        if is_literal:
            if len(_decisions) >= MAX_DECISIONS:
                _decisions.clear()
            # It keeps the objects of its keys alive, so that ids stay unique.
            _decisions[(id(node), *of)] = _decisions[(own, *of)] = found
    return found.given, found.sampling, found.plan


def _with_stop(reply: Generated) -> Generated:
    """Returns the reply with the stop string that ended it, which joins the next text run."""
    if not isinstance(reply.matched, str):
        return reply
    text, tail = reply.text + reply.matched, reply.tail + reply.matched
    return replace(reply, text=text, tail=tail)


def _generated_pieces(reply: Generated) -> list[Piece]:
    """Pieces of a reply: kept ids stay as generated; text around them joins adjacent text runs."""
    kept = reply.text[len(reply.head) : len(reply.text) - len(reply.tail)]
    pieces = []
    if reply.head:
        pieces.append(Piece(PieceKind.GENERATED, reply.head))
    if reply.kept_ids:
        pieces.append(Piece(PieceKind.GENERATED, kept, ids=reply.kept_ids))
    if reply.tail:
        pieces.append(Piece(PieceKind.GENERATED, reply.tail))
    return pieces


def separate_reasoning(run: Run, node: Node) -> tuple[Any, ...]:
    state: StreamState = run.field(node, "stream")
    start: StreamState = run.field(node, "start")
    reasoning, answer = split_reasoning(state.text(since=start), node.text("model_type"))
    Shown(run, node, state.path).finish(answer)
    return state.rewound(start, [Piece(PieceKind.GENERATED, answer)]), answer, reasoning


def share(run: Run, node: Node) -> tuple[Any, ...]:
    """Appends the pieces of an equal generation with their ids, since its prompt was the same."""
    state: StreamState = run.field(node, "stream")
    value, end = run.field(node, "value"), run.field(node, "end")
    pieces = end.pieces(since=run.field(node, "start"))
    shared = node.get("value")
    assert isinstance(shared, Ref)
    prompt, now_s = run.context.prompt(state), time.monotonic()
    for drawn in run.requests.draws_of(shared.name):
        usage = replace(drawn.usage, from_shared=True)
        request = replace(
            drawn, name=run.field(node, "name"), path=state.path, ordinal=state.n_draws,
            prompt=prompt, loc=node.loc, start_s=now_s, end_s=now_s, usage=usage,
        )  # fmt: skip
        run.requests.add_draw(node, request)
        run.asking.log_shared(request, drawn)
    Shown(run, node, state.path).finish("".join(piece.text for piece in pieces))
    # Each reader gets its own list, which it may change.
    value = list(value) if isinstance(value, list) else value
    return state.draw(pieces, prompt, run.context.special), value
