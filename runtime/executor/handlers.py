"""What each op does at run time: one handler a row of the table of ops.

A handler gets the run and a node whose operands exist, and gives the results in order,
or a coroutine that will. Handlers of ops that ask a backend are the only coroutines.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from sgc.errors import SgcError, UnsupportedParameter, UsageError
from sgc.ir.graph import Node
from sgc.ir.ops import SAMPLING
from sgc.runtime.executor import choices as choice_methods
from sgc.runtime.executor.backend import Generated, RoleFormat, Usage
from sgc.runtime.executor.options import check_parameter, decide_sampling
from sgc.runtime.executor.record import Request, StreamResult
from sgc.runtime.executor.seeds import SEED_BITS, draw_seed
from sgc.runtime.executor.stream import Piece, PieceKind, StreamState, messages

if TYPE_CHECKING:
    from sgc.runtime.executor.instance import Instance

Results = tuple[Any, ...]
Handler = Callable[["Instance", Node], Results | Coroutine[Any, Any, Results]]

_SAMPLING_NAMES = tuple(row.name for row in SAMPLING)


def _stream(run: Instance, node: Node) -> Results:
    return (StreamState(node.text("path")),)


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
    role = node.text("role")
    prefix = _role_format(run, role).prefix
    default_system = run.capabilities.chat.default_system
    if not state.has_roles and role != "system" and default_system:
        system = _role_format(run, "system")
        state = run.extend(node, state, Piece(PieceKind.ROLE_BEGIN, system.prefix, role="system"))
        state = run.extend(node, state, Piece(PieceKind.CONSTANT, default_system))
        state = run.extend(node, state, Piece(PieceKind.ROLE_END, system.suffix, role="system"))
    return (run.extend(node, state, Piece(PieceKind.ROLE_BEGIN, prefix, role=role)),)


def _role_end(run: Instance, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    role = node.text("role")
    suffix = _role_format(run, role).suffix
    return (run.extend(node, state, Piece(PieceKind.ROLE_END, suffix, role=role)),)


def _role_format(run: Instance, role: str) -> RoleFormat:
    roles = run.capabilities.chat.roles
    if role not in roles:
        known = ", ".join(sorted(roles))
        raise UsageError(
            f"the chat template of {run.capabilities.model} has no role {role!r}",
            hint=f"it has: {known}",
        )
    return roles[role]


async def _gen(run: Instance, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    given = {name: run.field(node, name) for name in _SAMPLING_NAMES}
    sampling = decide_sampling(given, run.options, state.path, state.n_draws)
    await _pass_gate(state)
    prompt = run.prompt(state)
    on_delta = None
    if run.on_text is not None:
        on_delta = functools.partial(run.on_text, node, state.path)
    start_s = time.monotonic()
    reply = await run.backend.generate(prompt, sampling, on_delta)
    end_s = time.monotonic()
    run.requests.append(
        Request(
            "generate", node.text("name"), state.path, state.n_draws, prompt, node.loc,
            start_s, end_s, reply.usage, sampling=sampling, reply=reply,
        )
    )  # fmt: skip
    return state.draw(_generated_pieces(reply), prompt), reply.text


def _generated_pieces(reply: Generated) -> list[Piece]:
    """Kept ids stay as generated; text after them joins the next run."""
    head = reply.text[: len(reply.text) - len(reply.tail)] if reply.tail else reply.text
    pieces = []
    if reply.kept_ids:
        pieces.append(Piece(PieceKind.GENERATED, head, ids=reply.kept_ids))
    if reply.tail:
        pieces.append(Piece(PieceKind.GENERATED, reply.tail))
    return pieces


async def _select(run: Instance, node: Node) -> Results:
    state: StreamState = run.field(node, "stream")
    choices: tuple[str, ...] = run.field(node, "choices")
    method = node.text("method")
    temperature, uniform = _select_draw(run, node, state)
    if method not in choice_methods.METHODS:
        known = ", ".join(choice_methods.METHODS)
        raise UnsupportedParameter(
            f"choices_method {method!r} is not available", hint=f"use one of: {known}"
        )
    for choice in choices:
        if not isinstance(choice, str) or not choice:
            raise UsageError(f"choices must be non-empty texts, found {choice!r}")
    await _pass_gate(state)
    prompt = run.prompt(state)
    start_s = time.monotonic()
    scored = await run.backend.score(prompt, choices)
    end_s = time.monotonic()
    run.requests.append(
        Request(
            "score", node.text("name"), state.path, state.n_draws, prompt, node.loc,
            start_s, end_s, scored.usage, choices=choices, reply=scored,
        )
    )  # fmt: skip
    chosen = choices[choice_methods.pick(scored.choices, method, temperature, uniform)]
    if run.on_text is not None:
        run.on_text(node, state.path, chosen)
    return state.draw([Piece(PieceKind.CHOSEN, chosen)], prompt), chosen


def _select_draw(run: Instance, node: Node, state: StreamState) -> tuple[float, float]:
    """Temperature (0 unless the select asks; the run's is for generations) and a uniform."""
    temperature = run.field(node, "temperature") or 0.0
    check_parameter("temperature", temperature)
    seed = run.field(node, "seed")
    if seed is not None:
        check_parameter("seed", seed)
        drawn = draw_seed(seed, "", "explicit", 0)
    else:
        drawn = draw_seed(run.options.seed, run.options.row, state.path, state.n_draws)
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
        gate = run.background(_commit(run, node, state))
    return state.fork(n, gate)


async def _commit(run: Instance, node: Node, state: StreamState) -> None:
    try:
        await _pass_gate(state)
        prompt = run.prompt(state)
        start_s = time.monotonic()
        usage: Usage = await run.backend.commit_prefix(prompt)
        end_s = time.monotonic()
    except asyncio.CancelledError:
        raise
    except Exception as error:
        run.fail(node, error)
        return
    run.requests.append(
        Request(
            "commit", "", f"{state.path}/:{state.n_forks}", state.n_draws, prompt, node.loc,
            start_s, end_s, usage,
        )
    )  # fmt: skip
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
    state: StreamState = run.field(node, "stream")
    keys, items = run.field(node, "keys"), run.field(node, "items")
    pieces = state.pieces()
    run.publish(
        node,
        StreamResult(
            name=node.text("name"),
            path=state.path,
            text="".join(piece.text for piece in pieces),
            variables=dict(zip(keys, items, strict=True)),
            pieces=tuple((piece.kind.value, piece.text) for piece in pieces if piece.text),
            messages=tuple(messages(pieces)),
        ),
    )
    return ()


def _return(run: Instance, node: Node) -> Results:
    run.returns(run.field(node, "value"))
    return ()


HANDLERS: dict[str, Handler] = {
    "stream": _stream,
    "const": _const,
    "append": _append,
    "role_begin": _role_begin,
    "role_end": _role_end,
    "gen": _gen,
    "select": _select,
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
