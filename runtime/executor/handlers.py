"""What each op does at run time: one handler a row of the table of ops.

A handler gets the run and a node whose operands exist, and gives the results in order.
Those of ops that ask a backend or read files are coroutines, in a table of their own.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sgc.errors import (
    BackendError,
    ProgramError,
    SgcError,
    UnsupportedParameter,
    UsageError,
)
from sgc.ir.graph import Node, Ref, operand_refs
from sgc.ir.sampling import SAMPLING
from sgc.runtime.executor import choices as choice_methods
from sgc.runtime.executor.backend import Generated, Prompt, Sampling, Scored, Usage
from sgc.runtime.executor.blocks import Unset
from sgc.runtime.executor.functions import FUNCTION_HANDLERS
from sgc.runtime.executor.last_use import last_use
from sgc.runtime.executor.lowering import Plan, Try, plan_constraint
from sgc.runtime.executor.mapping import run_map
from sgc.runtime.executor.media import Media, load_media, load_video, media
from sgc.runtime.executor.options import (
    check_choices,
    check_parameter,
    decide_sampling,
    seed_of,
)
from sgc.runtime.executor.prefetching import prefetch
from sgc.runtime.executor.reasoning import split_reasoning
from sgc.runtime.executor.record import Request, StreamResult
from sgc.runtime.executor.roles import begin_role, end_role
from sgc.runtime.executor.seeds import SEED_BITS
from sgc.runtime.executor.stream import Piece, PieceKind, StreamState, messages
from sgc.runtime.executor.tools import call_tool
from sgc.runtime.executor.winners import WINNER_ASKING, WINNER_HANDLERS, Lost

if TYPE_CHECKING:
    from sgc.runtime.executor.instance import Instance

Results = tuple[Any, ...]
Handler = Callable[["Instance", Node], Results]
AskingHandler = Callable[["Instance", Node], Coroutine[Any, Any, Results]]

_SAMPLING = frozenset(row.name for row in SAMPLING)


def _stream(run: Instance, node: Node) -> Results:
    return (StreamState(run.path_of(node)),)


def _unset(run: Instance, node: Node) -> Results:
    return (Unset(node.text("name")),)


def _const(run: Instance, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    return (run.extend(node, state, Piece(PieceKind.CONSTANT, node.text("text"))),)


def _append(run: Instance, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    return (run.extend(node, state, Piece(PieceKind.VALUE, as_text(run.field(node, "value")))),)


def as_text(value: Any) -> str:
    """A value as the program's text would show it: as Python prints it."""
    return value if isinstance(value, str) else format(value, "")


def _role_begin(run: Instance, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    for piece in begin_role(run.capabilities, state, node.text("role")):
        state = run.extend(node, state, piece)
    return (state,)


def _role_end(run: Instance, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    return (run.extend(node, state, end_role(run.capabilities, node.text("role"))),)


def _media(run: Instance, node: Node) -> Results:
    data = base64.b64decode(node.text("data"), validate=True)
    found = media(data, node.text("mime"), run.field(node, "frames"))
    if found.digest != node.text("sha256"):
        raise ProgramError("an image of the program is not what its hash says")
    return (found,)


async def _image(run: Instance, node: Node) -> Results:
    value = run.field(node, "value")
    if not isinstance(value, Media):  # files are not read on the event loop
        value = await asyncio.to_thread(load_media, value)
    return _append_media(run, node, value)


async def _video(run: Instance, node: Node) -> Results:
    value, frames = run.field(node, "value"), run.field(node, "frames")
    if not isinstance(value, Media):
        value = await asyncio.to_thread(load_video, value, frames)
    return _append_media(run, node, value)


def _append_media(run: Instance, node: Node, found: Media) -> Results:
    if not run.capabilities.images:
        raise UnsupportedParameter(
            f"{run.capabilities.model} takes no images",
            hint="load a model that does, or run on an API that takes them",
        )
    state: StreamState = run.field(node, "stream")
    token = run.capabilities.chat.image_token
    return (run.extend(node, state, Piece(PieceKind.MEDIA, token, media=found)),)


async def _gen(run: Instance, node: Node) -> Results:
    n = 1 if run.field(node, "single") else run.options.n
    return await _generate(run, node, n, is_list=n > 1)


async def _gen_n(run: Instance, node: Node) -> Results:
    n = run.field(node, "n")
    check_parameter("n", n)
    return await _generate(run, node, n, is_list=True)


async def _generate(run: Instance, node: Node, n: int, is_list: bool) -> Results:
    state: StreamState = run.field(node, "stream")
    given, sampling, plan = _decided(run, node)
    if not sampling.is_greedy:
        seed = seed_of(given, run.options, run.row, state.path, state.n_draws)
        is_repeatable = given.get("seed") is not None or not run.options.is_seed_drawn
        sampling = replace(plan.sampling, seed=seed, is_repeatable=is_repeatable)
        plan = replace(plan, sampling=sampling)
    if state.gate is not None:
        await _pass_gate(state)
    prompt = run.prompt(state)
    backend = run.backend_of(node, state.path, state.n_draws)
    if given.get("keep_stop") and sampling.stop and not run.capabilities.tells_stop:
        raise UnsupportedParameter(
            f"{run.capabilities.model} does not tell which stop string ended a text, as keep_stop "
            "needs",
            hint="leave it out, and append the text yourself",
        )
    shown = _Shown(run, node, state.path)
    is_hidden = node.op == "gen" and run.field(node, "hidden")

    def on_thrown(tried: Try) -> None:
        request = _request_of(node, state, prompt, tried)
        run.requests.append(replace(request, is_used=False))

    tries: tuple[Try, ...]
    if n == 1:
        ahead = run.field(node, "ahead") if node.op == "gen" else 0
        if plan.check is None:
            backend = run.speculation.backend(
                backend, run.capabilities, state.path, ahead, on_thrown
            )
        can_stream = run.on_text is not None and plan.can_stream and not is_hidden
        on_delta = shown.add if can_stream else None
        with last_use(node, state, prompt):
            tries = (await plan.generate(backend, prompt, on_delta, on_thrown),)
    else:
        # As where one text is drawn: of greedy ones a seed would only make equal requests differ.
        seeds = [0] * n
        if not sampling.is_greedy:
            place = (run.options, run.row, state.path, state.n_draws)
            seeds = [seed_of(given, *place, i) for i in range(n)]
        with last_use(node, state, prompt):
            tries = await plan.generate_n(backend, prompt, seeds, on_thrown)
    if given.get("keep_stop"):
        tries = tuple([replace(tried, reply=_with_stop(tried.reply)) for tried in tries])
    texts = [tried.reply.text for tried in tries]
    value = texts if is_list else texts[0]
    for tried in tries:
        run.asked(node, replace(_request_of(node, state, prompt, tried), value=value))
    if not is_hidden:
        shown.finish(texts[0])
    return state.draw(_generated_pieces(tries[0].reply), prompt, run.special), value


def _request_of(node: Node, state: StreamState, prompt: Prompt, tried: Try) -> Request:
    return Request(
        "generate", node.text("name"), state.path, state.n_draws, prompt, node.loc,
        tried.start_s, tried.end_s, tried.reply.usage, sampling=tried.sampling, reply=tried.reply,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decision:
    """What a node's parameters come to, but for the seed. of: what decided it, kept alive."""

    of: tuple[object, ...]
    given: Mapping[str, Any]
    sampling: Sampling
    plan: Plan


# Of nodes whose parameters are all literals, by the identity of what decides them.
_decisions: dict[tuple[int, int, int], Decision] = {}
MAX_DECISIONS = 4096


def _decided(run: Instance, node: Node) -> tuple[Mapping[str, Any], Sampling, Plan]:
    """A generation's own parameters, all of them decided, and how to ask for it."""
    key = (id(node), id(run.options), id(run.capabilities))
    found = _decisions.get(key)
    if found is None:
        given = {name: run.operand(operand) for name, operand in node.fields if name in _SAMPLING}
        sampling = decide_sampling(given, run.options, run.capabilities.chat.stop)
        plan = plan_constraint(sampling, run.capabilities)
        found = Decision((node, run.options, run.capabilities), given, sampling, plan)
        is_literal = not any(any(operand_refs(o)) for name, o in node.fields if name in _SAMPLING)
        if is_literal:
            if len(_decisions) >= MAX_DECISIONS:
                _decisions.clear()
            _decisions[key] = found  # its parts live while it does, so their ids stay theirs
    return found.given, found.sampling, found.plan


class _Shown:
    """Shows a text as it comes; what was not streamed is shown at its end, then nothing more:
    a text of no length is the sign of that.
    """

    def __init__(self, run: Instance, node: Node, path: str) -> None:
        self._run, self._node, self._path = run, node, path
        self._n_shown = 0

    def add(self, text: str) -> None:
        assert self._run.on_text is not None
        self._n_shown += len(text)
        self._run.on_text(self._node, self._path, text)

    def finish(self, text: str) -> None:
        if self._run.on_text is not None:
            if self._n_shown < len(text):
                self.add(text[self._n_shown :])
            self.add("")


def _with_stop(reply: Generated) -> Generated:
    """The reply with the stop string that ended it, which joins the next run."""
    if not isinstance(reply.matched, str):
        return reply
    text, tail = reply.text + reply.matched, reply.tail + reply.matched
    return replace(reply, text=text, tail=tail)


def _generated_pieces(reply: Generated) -> list[Piece]:
    """Kept ids stay as generated; text before and after them joins the runs beside them."""
    kept = reply.text[len(reply.head) : len(reply.text) - len(reply.tail)]
    pieces = []
    if reply.head:
        pieces.append(Piece(PieceKind.GENERATED, reply.head))
    if reply.kept_ids:
        pieces.append(Piece(PieceKind.GENERATED, kept, ids=reply.kept_ids))
    if reply.tail:
        pieces.append(Piece(PieceKind.GENERATED, reply.tail))
    return pieces


def _separate_reasoning(run: Instance, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    start: StreamState = run.field(node, "start")
    reasoning, answer = split_reasoning(state.text(since=start), node.text("model_type"))
    _Shown(run, node, state.path).finish(answer)
    return state.rewound(start, [Piece(PieceKind.GENERATED, answer)]), answer, reasoning


def _append_span(run: Instance, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    end: StreamState = run.field(node, "end")
    for piece in end.pieces(since=run.field(node, "start")):
        # Tokens that were generated after another prompt are text here.
        state = run.extend(node, state, replace(piece, ids=()))
    return (state,)


def _share(run: Instance, node: Node) -> Results:
    """Pieces of the equal generation, ids and all: it was asked with the very same prompt."""
    state: StreamState = run.field(node, "stream")
    value, end = run.field(node, "value"), run.field(node, "end")
    pieces = end.pieces(since=run.field(node, "start"))
    shared = node.get("value")
    assert isinstance(shared, Ref)
    prompt, now_s = run.prompt(state), time.monotonic()
    for drawn in run.draws_of(shared.name):
        usage = replace(drawn.usage, from_shared=True)
        request = replace(
            drawn, name=node.text("name"), path=state.path, ordinal=state.n_draws, prompt=prompt,
            loc=node.loc, start_s=now_s, end_s=now_s, usage=usage,
        )  # fmt: skip
        run.asked(node, request)
        run.log_shared(request, drawn)
    _Shown(run, node, state.path).finish("".join(piece.text for piece in pieces))
    # A list is its reader's own, who may change it.
    value = list(value) if isinstance(value, list) else value
    return state.draw(pieces, prompt, run.special), value


def _cache(run: Instance, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    return (state.append(Piece(PieceKind.MARK, "", ttl=node.text("ttl"))),)


def _check_scored(scored: Scored, n_choices: int) -> None:
    """A log, a recording or a cache may hold the reply to other choices."""
    chosen, n_scored = scored.chosen, len(scored.choices)
    hint = "where replies are kept, in a log, a recording or a cache, begin a new one"
    if chosen is not None and not 0 <= chosen < n_choices:
        message = f"the reply names choice {chosen}, of {n_choices} that were asked for"
        raise BackendError(message, hint=hint)
    if chosen is None and n_scored != n_choices:
        message = f"the reply scores {n_scored} choices, not the {n_choices} asked for"
        raise BackendError(message, hint=hint)


async def _select(run: Instance, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    choices: tuple[str, ...] = run.field(node, "choices")
    method = run.field(node, "method")
    temperature, uniform = _select_draw(run, node, state)
    needs_unconditional = _check_method(run, method)
    if not run.capabilities.scores:
        _refuse_scoring(run, method, temperature)
    check_choices(choices, method)
    if state.gate is not None:
        await _pass_gate(state)
    prompt = run.prompt(state)
    start_s = time.monotonic()
    backend = run.backend_of(node, state.path, state.n_draws)
    with last_use(node, state, prompt):
        scored = await backend.score(prompt, choices, needs_unconditional)
    end_s = time.monotonic()
    _check_scored(scored, len(choices))
    meta = None
    if scored.chosen is not None:
        index = scored.chosen
    elif isinstance(method, str):
        index = choice_methods.pick(scored.choices, method, temperature, uniform)
    else:
        index, meta = choice_methods.decide(method, choices, scored.choices)
    run.asked(
        node,
        Request(
            "score", node.text("name"), state.path, state.n_draws, prompt, node.loc,
            start_s, end_s, scored.usage, choices=choices, reply=scored,
            method=method if isinstance(method, str) else "", value=choices[index], meta=meta,
        ),
    )  # fmt: skip
    _Shown(run, node, state.path).finish(choices[index])
    chosen = Piece(PieceKind.CHOSEN, choices[index])
    return state.draw([chosen], prompt, run.special), choices[index]


def _refuse_scoring(run: Instance, method: Any, temperature: float) -> None:
    """A backend that only says which choice it takes draws none, and knows no other methods."""
    if temperature or method != choice_methods.DEFAULT:
        what = "a temperature" if temperature else "this choices_method"
        raise UnsupportedParameter(
            f"{run.capabilities.model} tells no log-probabilities of choices, as {what} of a "
            "select needs",
            hint="leave it out, or run on a backend that tells them",
        )


def _check_method(run: Instance, method: Any) -> bool:
    """Whether the method wants the choices' log-probabilities without the prompt too."""
    if isinstance(method, str):
        if method not in choice_methods.METHODS:
            known = ", ".join(choice_methods.METHODS)
            raise UsageError(f"there is no choices_method {method!r}", hint=f"use one of: {known}")
        needs = method in choice_methods.NEEDS_UNCONDITIONAL
    else:
        needs = bool(getattr(method, "requires_unconditional_logprobs", False))
    if needs and not run.capabilities.unconditional:
        known = ", ".join(set(choice_methods.METHODS) - choice_methods.NEEDS_UNCONDITIONAL)
        raise UnsupportedParameter(
            f"{run.capabilities.model} cannot score choices without the prompt, as the "
            "choices_method wants",
            hint=f"use one of: {known}",
        )
    return needs


def _select_draw(run: Instance, node: Node, state: StreamState) -> tuple[float, float]:
    """Temperature (0 unless the select asks; the run's is for generations) and a uniform."""
    temperature = run.field(node, "temperature") or 0.0
    check_parameter("temperature", temperature)
    given = {"seed": run.field(node, "seed")}
    drawn = seed_of(given, run.options, run.row, state.path, state.n_draws)
    return float(temperature), drawn / 2**SEED_BITS


async def _pass_gate(state: StreamState) -> None:
    if state.gate is not None:
        await asyncio.shield(state.gate)


def _fork(run: Instance, node: Node) -> Results:
    """Children continue the trunk; it is committed first, so that none computes it again."""
    state: StreamState = run.field(node, "stream")
    n = run.field(node, "n")
    gate = state.gate
    if n > 1 and any(piece.text for piece in state.pieces()):
        run.hold()
        gate = asyncio.get_running_loop().create_future()
        run.background(_commit(run, node, state, gate))
    return state.fork(n, gate)


async def _commit(
    run: Instance, node: Node, state: StreamState, gate: asyncio.Future[None]
) -> None:
    try:
        await _pass_gate(state)
        prompt = run.prompt(state)
        start_s = time.monotonic()
        path = f"{state.path}/:{state.n_forks}"
        backend = run.backend_of(node, path, state.n_draws)
        usage: Usage = await backend.commit_prefix(prompt)
        end_s = time.monotonic()
    except BaseException as error:
        run.fail_unless_stopped(node, error)
        return
    run.requests.append(
        Request(
            "commit", "", path, state.n_draws, prompt, node.loc,
            start_s, end_s, usage,
        )
    )  # fmt: skip
    gate.set_result(None)
    run.release()


def _text_of(run: Instance, node: Node) -> Results:
    return (run.field(node, "stream").text(),)


def _span_text(run: Instance, node: Node) -> Results:
    return (run.field(node, "end").text(since=run.field(node, "start")),)


def _concat(run: Instance, node: Node) -> Results:
    return ("".join(map(as_text, run.field(node, "parts"))),)


def _format(run: Instance, node: Node) -> Results:
    value, spec = run.field(node, "value"), node.text("spec")
    try:
        return (format(value, spec),)
    except (ValueError, TypeError) as error:
        raise SgcError(f"cannot format {value!r} with {spec!r}: {error}") from error


def _list(run: Instance, node: Node) -> Results:
    return (list(run.field(node, "items")),)


def _record(run: Instance, node: Node) -> Results:
    keys, items = run.field(node, "keys"), run.field(node, "items")
    return (dict(zip(keys, items, strict=True)) if keys or not items else tuple(items),)


def _publish(run: Instance, node: Node) -> Results:
    if type(run.raw_field(node, "stream")) is Lost:
        return ()
    state: StreamState = run.field(node, "stream")
    variables = _set_variables(run, node)
    pieces = state.pieces()
    run.publish(
        node,
        StreamResult(
            name=node.text("name"),
            path=state.path,
            text="".join(piece.text for piece in pieces),
            variables=variables,
            pieces=tuple((piece.kind.value, piece.text) for piece in pieces if piece.text),
            messages=tuple(messages(pieces)),
        ),
    )
    return ()


def _set_variables(run: Instance, node: Node) -> dict[str, Any]:
    """The variables of a stream that is published, without those not set on the way taken."""
    keys, items = run.field(node, "keys"), node.get("items")
    assert isinstance(items, tuple)
    return {
        key: run.operand(item)
        for key, item in zip(keys, items, strict=True)
        if not (isinstance(item, Ref) and run.is_unset(item.name))
    }


def _return(run: Instance, node: Node) -> Results:
    run.returns(run.field(node, "value"))
    return ()


HANDLERS: dict[str, Handler] = {
    **FUNCTION_HANDLERS,
    **WINNER_HANDLERS,
    "stream": _stream,
    "unset": _unset,
    "const": _const,
    "append": _append,
    "role_begin": _role_begin,
    "role_end": _role_end,
    "media": _media,
    "separate_reasoning": _separate_reasoning,
    "append_span": _append_span,
    "share": _share,
    "cache": _cache,
    "prefetch": prefetch,
    "fork": _fork,
    "text_of": _text_of,
    "span": _span_text,
    "concat": _concat,
    "format": _format,
    "list": _list,
    "record": _record,
    "publish": _publish,
    "return": _return,
}

ASKING: dict[str, AskingHandler] = {
    **WINNER_ASKING,
    "gen": _gen,
    "gen_n": _gen_n,
    "select": _select,
    "image": _image,
    "video": _video,
    "tool": call_tool,
    "map": run_map,
}
