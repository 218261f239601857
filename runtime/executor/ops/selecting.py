"""Selections at run time: a method decides among the choices, by their log-probabilities."""

from __future__ import annotations

import time
from typing import Any

from sgc.errors import BackendError, UnsupportedParameter, UsageError
from sgc.ir.graph import Node
from sgc.runtime.executor.hints.last_use import last_use
from sgc.runtime.executor.interface import choice_methods
from sgc.runtime.executor.interface.backend import Scored
from sgc.runtime.executor.interface.seeds import SEED_BITS
from sgc.runtime.executor.ops.run import Run
from sgc.runtime.executor.ops.showing import Shown
from sgc.runtime.executor.run.options import check_choices, check_parameter, seed_of
from sgc.runtime.executor.run.record import Request
from sgc.runtime.executor.run.stream import Piece, PieceKind, StreamState, pass_gate


def _check_scored(scored: Scored, n_choices: int) -> None:
    """Refuses a reply whose choices do not fit, as a log, recording or cache may return."""
    chosen, n_scored = scored.chosen, len(scored.choices)
    hint = "if the reply is from a log, a recording or a cache, begin a new one"
    if chosen is not None and not 0 <= chosen < n_choices:
        message = f"the reply names choice {chosen}, of {n_choices} choices in the request"
        raise BackendError(message, hint=hint)
    if chosen is None and n_scored != n_choices:
        message = f"the reply scores {n_scored} choices, not the {n_choices} of the request"
        raise BackendError(message, hint=hint)


async def select(run: Run, node: Node) -> tuple[Any, ...]:
    state: StreamState = run.field(node, "stream")
    choices = _choices(run, node)
    method = run.field(node, "method")
    temperature, uniform = _select_draw(run, node, state)
    needs_unconditional = _check_method(run, method)
    if not run.context.capabilities.scores:
        _refuse_scoring(run, method, temperature)
    check_choices(choices, method)
    await pass_gate(state)
    prompt = run.context.prompt(state)
    start_s = time.monotonic()
    backend = run.asking.backend_of(run, node, state.path, state.n_draws)
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
    run.requests.add_draw(
        node,
        Request(
            "score", run.field(node, "name"), state.path, state.n_draws, prompt, node.loc,
            start_s, end_s, scored.usage, choices=choices, reply=scored,
            method=method if isinstance(method, str) else "", value=choices[index], meta=meta,
        ),
    )  # fmt: skip
    Shown(run, node, state.path).finish(choices[index])
    chosen = Piece(PieceKind.CHOSEN, choices[index])
    return state.draw([chosen], prompt, run.context.special), choices[index]


def _choices(run: Run, node: Node) -> tuple[str, ...]:
    among = run.field(node, "among")
    choices: tuple[str, ...] = run.field(node, "choices") if among is None else among
    if not isinstance(choices, (list, tuple)):
        raise UsageError(
            f"select's choices must be a list of texts, found {choices!r:.100}",
            where=str(node.loc or ""),
        )
    if not choices:
        raise UsageError("select needs at least one choice", where=str(node.loc or ""))
    return tuple(choices)


def _refuse_scoring(run: Run, method: Any, temperature: float) -> None:
    """Refuses parameters that need scores, for a backend that returns only the chosen index."""
    if temperature or method != choice_methods.DEFAULT:
        what = "a temperature" if temperature else "this choices_method"
        raise UnsupportedParameter(
            f"{run.context.capabilities.model} returns no log-probabilities of choices, which "
            f"{what} of a select needs",
            hint="leave it out, or run on a backend that returns them",
        )


def _check_method(run: Run, method: Any) -> bool:
    """Whether the method needs the choices' log-probabilities without the prompt too."""
    if isinstance(method, str):
        if method not in choice_methods.METHODS:
            known = ", ".join(choice_methods.METHODS)
            raise UsageError(f"there is no choices_method {method!r}", hint=f"use one of: {known}")
        needs = method in choice_methods.NEEDS_UNCONDITIONAL
    else:
        needs = bool(getattr(method, "requires_unconditional_logprobs", False))
    if needs and not run.context.capabilities.unconditional:
        known = ", ".join(set(choice_methods.METHODS) - choice_methods.NEEDS_UNCONDITIONAL)
        raise UnsupportedParameter(
            f"{run.context.capabilities.model} cannot score choices without the prompt, which "
            "the choices_method needs",
            hint=f"use one of: {known}",
        )
    return needs


def _select_draw(run: Run, node: Node, state: StreamState) -> tuple[float, float]:
    """Returns the temperature (0 unless the select sets one) and a uniform number in [0, 1)."""
    temperature = run.field(node, "temperature") or 0.0
    check_parameter("temperature", temperature)
    given = {"seed": run.field(node, "seed")}
    drawn = seed_of(given, run.context.options, run.context.row, state.path, state.n_draws)
    return float(temperature), drawn / 2**SEED_BITS
