"""A backend whose runs and requests are spans of OpenTelemetry; `Endpoint.trace_to` makes it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sgc.runtime.executor.hints.ahead import told
from sgc.runtime.executor.interface.backend import (
    Backend,
    Generated,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
    TextRun,
    TokenRun,
    Usage,
)
from sgc.runtime.executor.interface.wrapping import Wrapping
from sgc.runtime.telemetry.otlp import (
    OPERATIONS,
    PROVIDER,
    Tracing,
    mark_failed,
    messages_of,
    traceparent_of,
)
from sgc.runtime.telemetry.traceparent import TRACEPARENT

_SET = ("max_tokens", "temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty")


class TracedBackend(Wrapping):
    def __init__(self, backend: Backend, tracing: Tracing) -> None:
        super().__init__(backend)
        self._tracing = tracing
        self._runs: dict[int, Any] = {}  # their spans, by the runs' numbers

    def begin_run(
        self, program: str, row: str, number: int
    ) -> Callable[[asyncio.Future[Any]], None]:
        """Begins the span of a run, which those of its requests are in; returns what ends it."""
        attributes = {"sgc.program": program, **({"sgc.row": row} if row else {})}
        span = self._tracing.tracer.start_span(f"run {program}", attributes=attributes)
        self._runs[number] = span

        def end(finished: asyncio.Future[Any]) -> None:
            del self._runs[number]
            if finished.cancelled():
                mark_failed(span, "cancelled", "")
            elif error := finished.exception():
                mark_failed(span, type(error).__name__, "")  # its text may hold a prompt
            span.end()

        return end

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        async with self._asking("generate", prompt, sampling) as span:
            found = await self.inner.generate(prompt, sampling, on_delta)
            self._tell(span, [found])
            return found

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        async with self._asking("generate", prompt, samplings[0]) as span:
            span.set_attribute("gen_ai.request.choice.count", len(samplings))
            found = await self.inner.generate_n(prompt, samplings)
            self._tell(span, found)
            return found

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        async with self._asking("score", prompt) as span:
            found = await self.inner.score(prompt, choices, unconditional)
            _tell_usage(span, found.usage)
            return found

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        async with self._asking("commit", prompt) as span:
            found = await self.inner.commit_prefix(prompt, heads)
            _tell_usage(span, found)
            return found

    async def close(self) -> None:
        await self.inner.close()
        await asyncio.to_thread(self._tracing.close)  # it may wait for the collector

    @contextlib.asynccontextmanager
    async def _asking(self, kind: str, prompt: Prompt, sampling: Sampling | None = None) -> Any:
        model = (await self.inner.capabilities()).model
        operation = OPERATIONS.get(kind, kind)
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": PROVIDER,
            "gen_ai.request.model": model,
        }
        if sampling is not None:
            attributes |= {f"gen_ai.request.{name}": getattr(sampling, name) for name in _SET}
            attributes["gen_ai.request.stop_sequences"] = list(sampling.stop)
        if self._tracing.captures:
            attributes["gen_ai.input.messages"] = messages_of("user", [_text_of(prompt)])
        with self._span(f"{operation} {model}", attributes) as span:
            token = TRACEPARENT.set(traceparent_of(span))
            try:
                yield span
            finally:
                TRACEPARENT.reset(token)

    @contextlib.contextmanager
    def _span(self, name: str, attributes: dict[str, Any]) -> Iterator[Any]:
        from opentelemetry.trace import SpanKind, set_span_in_context

        run = told()
        of_run = None if run is None else self._runs.get(run.number)
        within = None if of_run is None else set_span_in_context(of_run)
        span = self._tracing.tracer.start_span(name, within, SpanKind.CLIENT, attributes)
        try:
            yield span
        except BaseException as error:
            mark_failed(span, type(error).__name__, "")
            raise
        finally:
            span.end()

    def _tell(self, span: Any, found: Sequence[Generated]) -> None:
        reasons = [each.finish_reason.value for each in found]
        span.set_attribute("gen_ai.response.finish_reasons", reasons)
        usage = found[0].usage
        for each in found[1:]:
            usage = usage.with_more(each.usage)
        _tell_usage(span, usage)
        if self._tracing.captures:
            texts = [each.text for each in found]
            span.set_attribute(
                "gen_ai.output.messages", messages_of("assistant", texts, reasons[0])
            )


def _tell_usage(span: Any, usage: Usage) -> None:
    span.set_attributes(
        {
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        }
    )


def _text_of(prompt: Prompt) -> str:
    return "".join(run.text if isinstance(run, TextRun | TokenRun) else "[other]" for run in prompt)
