"""SGLang's hooks on our endpoints, for users' backends that forward to them."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from sgc.compat.sglang.backends.own_backends import adapted
from sgc.compat.sglang.backends.sampling_params import SglSamplingParams
from sgc.compat.sglang.backends.streams import prompt_of, sampling_of
from sgc.lang.choices import ChoicesDecision, method_of
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.interface import choice_methods
from sgc.runtime.executor.interface.backend import Generated
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.record import generated_meta

HOOKS = ("generate", "generate_stream", "select", "commit_lazy_operations", "end_program")


class Hooks(Endpoint):
    """An endpoint with the hooks that SGLang's interpreter calls; each blocks its caller."""

    def as_asked(self) -> Endpoint:
        """Returns itself, or an endpoint that calls the hooks if a subclass overrides one."""
        if all(getattr(type(self), name) is getattr(Hooks, name) for name in HOOKS):
            return self
        return adapted(self)

    def generate(self, s: Any, sampling_params: SglSamplingParams) -> tuple[Any, Any]:
        """Returns the text and its meta info; with n above 1, a list of each."""
        prompt, sampling = prompt_of(s), sampling_of(sampling_params)
        if sampling_params.n == 1:
            reply: Generated = shared.run(self.backend.generate(prompt, sampling))
            return reply.text, generated_meta(reply, sampling)
        samplings = [replace(sampling, seed=sampling.seed + i) for i in range(sampling_params.n)]
        replies = shared.run(self.backend.generate_n(prompt, samplings))
        return [r.text for r in replies], [generated_meta(r, sampling) for r in replies]

    def generate_stream(
        self, s: Any, sampling_params: SglSamplingParams
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields pieces of text as they come, each with the meta info known so far."""
        prompt, sampling = prompt_of(s), sampling_of(sampling_params)
        pieces: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        asked = self.backend.generate(prompt, sampling, pieces.put)
        work: Future[Generated] = asyncio.run_coroutine_threadsafe(asked, shared.loop)
        work.add_done_callback(lambda _: pieces.put(None))
        try:
            held = pieces.get()
            while held is not None:
                piece, held = held, pieces.get()
                if held is not None:
                    yield str(piece), dict(getattr(piece, "meta", {}))
                else:
                    yield str(piece), generated_meta(work.result(), sampling)
            work.result()
        finally:
            work.cancel()

    def select(
        self, s: Any, choices: list[str], temperature: float = 0.0, choices_method: Any = None
    ) -> ChoicesDecision:
        """Returns the likeliest choice by one of SGLang's methods or the user's own."""
        method = method_of(choices_method)
        is_named = isinstance(method, str)
        needs = getattr(choices_method, "requires_unconditional_logprobs", False)
        scored = shared.run(self.backend.score(prompt_of(s), tuple(choices), bool(needs)))
        if scored.chosen is not None:
            return ChoicesDecision(choices[scored.chosen], {"chosen_by": scored.how})
        if not is_named:
            index, meta = choice_methods.decide(method, choices, scored.choices)
            return ChoicesDecision(choices[index], dict(meta or {}))
        index = choice_methods.pick(scored.choices, method, temperature, uniform=0.5)
        return ChoicesDecision(choices[index], choice_methods.select_meta(method, scored.choices))

    def commit_lazy_operations(self, s: Any) -> None:
        """Makes the backend compute and cache the stream's text."""
        shared.run(self.backend.commit_prefix(prompt_of(s)))

    def fill_image(self, s: Any) -> None:
        """The same as `commit_lazy_operations`."""
        self.commit_lazy_operations(s)

    def end_program(self, s: Any) -> None:
        """Does nothing: the endpoint keeps no state of a program."""
