"""A server's spans: one for each HTTP request, and one for each request of the engine.

A span of an engine request is made when the request has ended, with the times that the step process
measured: its events are the admission, and the end of the prompt's computation.
"""

from __future__ import annotations

import time
from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.logs.access import text_of
from sgc.runtime.engine.server.ledger import FINISHED, Ended
from sgc.runtime.telemetry.otlp import (
    OPERATIONS,
    PROVIDER,
    Tracing,
    mark_failed,
    messages_of,
    parent_of,
    traceparent_of,
)

NS = 1_000_000_000
MAX_NAME_CHARS = 200  # of a name that a client gave
_REASONS: dict[int, str] = {pb.FINISH_REASON_STOP: "stop", pb.FINISH_REASON_LENGTH: "length"}


class ServerSpans:
    """model: the engine's."""

    def __init__(self, tracing: Tracing, model: str) -> None:
        self._tracing, self._tracer, self._model = tracing, tracing.tracer, model

    def begin_http(self, method: str, route: str, traceparent: str) -> Any:
        """route: the pattern of the path, as a path may hold anything."""
        from opentelemetry.trace import SpanKind

        return self._tracer.start_span(
            f"{method} {route}",
            parent_of(traceparent),
            SpanKind.SERVER,
            {"http.request.method": method, "http.route": route},
        )

    def traceparent_of(self, span: Any) -> str:
        return traceparent_of(span)

    def end_http(self, span: Any, status: int | None) -> None:
        """status: None if the client disconnected."""
        if status is None:
            mark_failed(span, "disconnected", "the client hung up")
        else:
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                mark_failed(span, str(status), "")
        span.end()

    def observe(self, ended: Ended) -> None:
        """Makes the span of a request that has ended."""
        from opentelemetry.trace import SpanKind

        active, caller = ended.active, ended.caller
        if active is None:
            return
        operation = OPERATIONS.get(active.kind, active.kind)
        model = active.adapter[:MAX_NAME_CHARS] or self._model
        end = time.time_ns()
        start = end - int((time.monotonic() - active.began_at) * NS)
        span = self._tracer.start_span(
            f"{operation} {self._model}",  # since a client may name any adapter
            parent_of(active.traceparent or caller.traceparent),
            SpanKind.INTERNAL if ended.is_part else SpanKind.SERVER,
            {
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": PROVIDER,
                "gen_ai.request.model": model,
                "sgc.outcome": ended.outcome,
            },
            start_time=start,
        )
        if caller.account is not None:
            span.set_attribute("sgc.token", caller.account.name)
        if ended.usage is not None:
            _tell(span, ended.usage, end)
        if reason := _REASONS.get(ended.finish_reason):
            span.set_attribute("gen_ai.response.finish_reasons", [reason])
        if active.prompt is not None and self._tracing.captures:
            span.set_attribute(
                "gen_ai.input.messages", messages_of("user", [text_of(active.prompt)])
            )
        if ended.outcome != FINISHED:
            mark_failed(span, ended.code_name, ended.error)
        span.end(end)


def _tell(span: Any, usage: pb.Usage, end: int) -> None:
    span.set_attributes(
        {
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "sgc.queue_s": usage.queue_s,
            "sgc.prefill_s": usage.prefill_s,
            "sgc.decode_s": usage.decode_s,
        }
    )
    prefilled = end - int(usage.decode_s * NS)
    span.add_event("sgc.admitted", timestamp=prefilled - int(usage.prefill_s * NS))
    span.add_event("sgc.prefilled", timestamp=prefilled)
