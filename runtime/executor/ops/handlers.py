"""The ops at run time: one handler for each row of the table of ops.

A handler takes the run and a node whose operands exist, and returns the results in order. Handlers
of ops that send requests or read files are coroutines, in a table of their own.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from sgc.errors import DeoptReached, ForkError, ProgramError, SgcError, UnsupportedParameter
from sgc.ir.graph import Lit, Node, Ref
from sgc.ir.limits import MAX_CHILDREN
from sgc.runtime.executor.functions.own_texts import (
    OwnText,
    as_returned,
    as_value,
    own,
    put_together,
)
from sgc.runtime.executor.interface.backend import Usage
from sgc.runtime.executor.interface.media import Media, load_media, load_video, media
from sgc.runtime.executor.interface.records import refuse_leaving
from sgc.runtime.executor.ops.calling import call_tool, outcome, run_piece, show
from sgc.runtime.executor.ops.evaluation import evaluate
from sgc.runtime.executor.ops.functions import FUNCTION_HANDLERS
from sgc.runtime.executor.ops.futures import future
from sgc.runtime.executor.ops.generating import gen, gen_n, separate_reasoning, share
from sgc.runtime.executor.ops.maps import run_map
from sgc.runtime.executor.ops.performing import perform
from sgc.runtime.executor.ops.prefetching import prefetch
from sgc.runtime.executor.ops.run import Run
from sgc.runtime.executor.ops.selecting import select
from sgc.runtime.executor.ops.showing import extend
from sgc.runtime.executor.ops.winners import WINNER_ASKING, WINNER_HANDLERS
from sgc.runtime.executor.prompts.roles import begin_role, end_role
from sgc.runtime.executor.run.record import Request, StreamResult
from sgc.runtime.executor.run.stream import Piece, PieceKind, StreamState, messages, pass_gate
from sgc.runtime.executor.run.values import Lost, Unset

Results = tuple[Any, ...]
Handler = Callable[[Run, Node], Results]
AskingHandler = Callable[[Run, Node], Coroutine[Any, Any, Results]]


def _const(run: Run, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    return (extend(run, node, state, Piece(PieceKind.CONSTANT, node.text("text"))),)


def _append(run: Run, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    value = run.field(node, "value")
    if type(value) is OwnText:
        for is_own, text in value.parts():
            kind = PieceKind.CONSTANT if is_own else PieceKind.VALUE
            state = extend(run, node, state, Piece(kind, text))
        return (state,)
    return (extend(run, node, state, Piece(PieceKind.VALUE, as_text(value))),)


def _concat(run: Run, node: Node) -> Results:
    parts = run.field(node, "parts")
    special = run.context.special
    if special is None:
        return ("".join(map(as_text, parts)),)
    found = own(node.get("parts"), list(parts), special)
    return (put_together([*map(as_text, found)]),)


def _list(run: Run, node: Node) -> Results:
    items, special = list(run.field(node, "items")), run.context.special
    value = items if special is None else own(node.get("items"), items, special)
    return (_displayed(run, node, value),)


def _displayed(run: Run, node: Node, value: Any) -> Any:
    if run.context.sharing is not None:
        run.context.sharing.note_display(node, value)
    return value


def as_text(value: Any) -> str:
    """Returns a value as text, as Python prints it."""
    return value if isinstance(value, str) else format(value, "")


def _role_begin(run: Run, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    for piece in begin_role(run.context.capabilities, state, node.text("role")):
        state = extend(run, node, state, piece)
    return (state,)


def _role_end(run: Run, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    return (extend(run, node, state, end_role(run.context.capabilities, node.text("role"))),)


def _media(run: Run, node: Node) -> Results:
    data = base64.b64decode(node.text("data"), validate=True)
    found = media(data, node.text("mime"), run.field(node, "frames"))
    if found.digest != node.text("sha256"):
        raise ProgramError("an image of the program is not what its hash says")
    return (found,)


async def _image(run: Run, node: Node) -> Results:
    value = run.field(node, "value")
    if not isinstance(value, Media):  # files are not read on the event loop
        value = await asyncio.to_thread(load_media, value)
    return _append_media(run, node, value)


async def _video(run: Run, node: Node) -> Results:
    value, frames = run.field(node, "value"), run.field(node, "frames")
    if not isinstance(value, Media):
        value = await asyncio.to_thread(load_video, value, frames)
    return _append_media(run, node, value)


def _append_media(run: Run, node: Node, found: Media) -> Results:
    if not run.context.capabilities.images:
        raise UnsupportedParameter(
            f"{run.context.capabilities.model} does not take images",
            hint="load a model that does, or run on an API that takes them",
        )
    state: StreamState = run.field(node, "stream")
    token = run.context.capabilities.chat.image_token
    return (extend(run, node, state, Piece(PieceKind.MEDIA, token, media=found)),)


def _append_span(run: Run, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    end: StreamState = run.field(node, "end")
    if node.text("kv") and run.context.capabilities.joins:
        # Each part's tokens stay as they were generated.
        part = tuple(end.appended(since=run.field(node, "start")))
        text, goes_on = "".join(piece.text for piece in part), node.text("kv") == "next"
        joined = Piece(PieceKind.JOINED, text, part=part, goes_on=goes_on)
        return (extend(run, node, state, joined),)
    for piece in end.pieces(since=run.field(node, "start")):
        # Their ids were generated after another prompt, so they are text here.
        state = extend(run, node, state, replace(piece, ids=()))
    return (state,)


def _cache(run: Run, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    return (state.append(Piece(PieceKind.MARK, "", ttl=node.text("ttl"))),)


def _fork(run: Run, node: Node) -> Results:
    """Forks a stream; the trunk's prompt is committed first, so that no child computes it again."""
    state: StreamState = run.field(node, "stream")
    n = run.field(node, "n")
    return state.fork(n, _gate(run, node, state, n))


def _open_fork(run: Run, node: Node) -> Results:
    """The same for a number of children known only now."""
    state: StreamState = run.field(node, "stream")
    n = run.field(node, "n")
    if type(n) is not int or not 1 <= n <= MAX_CHILDREN:
        raise ForkError(f"fork takes from 1 to {MAX_CHILDREN} children, found {n}")
    trunk, fork = state.open_fork(_gate(run, node, state, n))
    run.streams.open_fork(node, n)
    return trunk, fork


def _gate(run: Run, node: Node, state: StreamState, n: int) -> asyncio.Future[None] | None:
    """What the children wait for: that the trunk's prompt is committed."""
    if n == 1 or not any(piece.text for piece in state.pieces()):
        return state.gate
    run.hold()
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    run.work.background(_commit(run, node, state, gate))
    return gate


async def _commit(run: Run, node: Node, state: StreamState, gate: asyncio.Future[None]) -> None:
    try:
        await pass_gate(state)
        prompt = run.context.prompt(state)
        start_s = time.monotonic()
        path = f"{state.path}/:{state.n_forks}"
        backend = run.asking.backend_of(run, node, path, state.n_draws)
        usage: Usage = await backend.commit_prefix(prompt)
        end_s = time.monotonic()
    except BaseException as error:
        run.fail_unless_stopped(node, error)
        return
    run.requests.made.append(
        Request(
            "commit", "", path, state.n_draws, prompt, node.loc,
            start_s, end_s, usage,
        )
    )  # fmt: skip
    gate.set_result(None)
    run.release()


def _format(run: Run, node: Node) -> Results:
    value, spec = run.field(node, "value"), node.text("spec")
    try:
        return (format(value, spec),)
    except (ValueError, TypeError) as error:
        raise SgcError(f"cannot format {value!r} with {spec!r}: {error}") from error


def _record(run: Run, node: Node) -> Results:
    keys, items = run.field(node, "keys"), run.field(node, "items")
    is_dict = keys or not (items or node.get("is_tuple") == Lit(True))
    return (
        _displayed(run, node, dict(zip(keys, items, strict=True)) if is_dict else tuple(items)),
    )


def _publish(run: Run, node: Node) -> Results:
    if type(run.values.raw_field(node, "stream")) is Lost:
        return ()
    state: StreamState = run.field(node, "stream")
    run.streams.publish(node, _published(node, state, _set_variables(run, node)))
    return ()


def _published(node: Node, state: StreamState, variables: dict[str, Any]) -> StreamResult:
    pieces = state.pieces()
    return StreamResult(
        name=node.text("name"),
        path=state.path,
        text="".join(piece.text for piece in pieces),
        variables=variables,
        pieces=tuple((piece.kind.value, piece.text) for piece in pieces if piece.text),
        messages=tuple(messages(pieces)),
    )


def _set_variables(run: Run, node: Node) -> dict[str, Any]:
    """Returns the variables of a published stream, without those not set on the path taken."""
    keys, items = run.field(node, "keys"), node.get("items")
    assert isinstance(items, tuple)
    fixed = {
        key: refuse_leaving(as_value(run.values.operand(item)))
        for key, item in zip(keys, items, strict=True)
        if not (isinstance(item, Ref) and run.values.is_unset(item.name))
    }
    named = run.field(node, "named") or ()
    return fixed | {str(name): refuse_leaving(as_value(value)) for name, value in named}


def _return(run: Run, node: Node) -> Results:
    run.returns(refuse_leaving(as_returned(run.field(node, "value"))))
    return ()


def _deopt(run: Run, node: Node) -> Results:
    run.leaves(
        DeoptReached(
            f"this path of the program was not compiled: {node.text('reason')}",
            where=str(node.loc or ""),
            hint="continue it from its source with --source PROG.py, or run it with --interpret",
        )
    )
    return ()


HANDLERS: dict[str, Handler] = {
    **FUNCTION_HANDLERS,
    **WINNER_HANDLERS,
    "stream": lambda run, node: (StreamState(run.path_of(node)),),
    "unset": lambda run, node: (Unset(node.text("name")),),
    "const": _const,
    "append": _append,
    "role_begin": _role_begin,
    "role_end": _role_end,
    "media": _media,
    "separate_reasoning": separate_reasoning,
    "append_span": _append_span,
    "share": share,
    "cache": _cache,
    "prefetch": prefetch,
    "fork": _fork,
    "open_fork": _open_fork,
    "child": lambda run, node: run.field(node, "stream").child(),
    "text_of": lambda run, node: (run.field(node, "stream").text(),),
    "span": lambda run, node: (run.field(node, "end").text(since=run.field(node, "start")),),
    "concat": _concat,
    "format": _format,
    "list": _list,
    "record": _record,
    "outcome": outcome,
    "evaluate": evaluate,
    "perform": perform,
    "future": future,
    "publish": _publish,
    "return": _return,
    "deopt": _deopt,
}

ASKING: dict[str, AskingHandler] = {
    **WINNER_ASKING,
    "gen": gen,
    "gen_n": gen_n,
    "select": select,
    "image": _image,
    "video": _video,
    "tool": call_tool,
    "host": run_piece,
    "show": show,
    "map": run_map,
}
