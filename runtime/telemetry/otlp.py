"""Spans by OpenTelemetry, sent over OTLP; imported only if the user asks for them.

Spans wait in a bounded queue for a thread that sends them; when it is full, new ones are dropped.
Names follow the conventions for generative AI (`gen_ai.…`); what these lack is `sgc.…`.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sgc.errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

FROM_ENVIRONMENT = "env"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
MAX_QUEUE, MAX_BATCH = 2048, 512
EXPORT_TIMEOUT_S = 5.0
MAX_CONTENT_CHARS = 32_768
PROVIDER = "sgc"
OPERATIONS = {"generate": "text_completion", "embed": "embeddings"}
_NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def check_otlp(where: str) -> None:
    """Raises `UsageError` if spans cannot be sent there. where: a URL, or `env`."""
    if not all(map(_is_there, _NEEDED)):
        raise UsageError(
            "--otlp needs packages that are not installed: opentelemetry-sdk and "
            "opentelemetry-exporter-otlp-proto-http",
            hint="pip install 'sgc[otel]'",
        )
    if where == FROM_ENVIRONMENT:
        if not os.environ.get(ENDPOINT):
            raise UsageError(f"--otlp env reads {ENDPOINT}, which is not set")
    elif not where.startswith(("http://", "https://")):
        raise UsageError(f"--otlp takes http://HOST:PORT or env, not {where[:80]!r}")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


class Tracing:
    """Makes spans. captures: whether they hold prompts and texts, which the variable `CAPTURE`
    turns on."""

    def __init__(self, service: str, exporter: SpanExporter) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        name = os.environ.get("OTEL_SERVICE_NAME", service)
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": name}), shutdown_on_exit=False
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(
                exporter,
                max_queue_size=MAX_QUEUE,
                max_export_batch_size=MAX_BATCH,
                export_timeout_millis=EXPORT_TIMEOUT_S * 1000,
            )
        )
        self.tracer = self._provider.get_tracer("sgc")
        self.captures = captures()

    def close(self) -> None:
        """Sends waiting spans, for a few seconds at most."""
        self._provider.force_flush(int(EXPORT_TIMEOUT_S * 1000))
        self._provider.shutdown()


def open_tracing(where: str, service: str) -> Tracing:
    """where: as for `check_otlp`, which raises the error for an invalid value."""
    check_otlp(where)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    if where == FROM_ENVIRONMENT:
        return Tracing(service, OTLPSpanExporter())
    url = where.rstrip("/")
    url = url if url.endswith("/v1/traces") else f"{url}/v1/traces"
    return Tracing(service, OTLPSpanExporter(endpoint=url, timeout=EXPORT_TIMEOUT_S))


def captures() -> bool:
    asked = os.environ.get(CAPTURE, "").strip().lower()
    return asked in ("true", "1", "span_only", "span_and_event")


def parent_of(traceparent: str) -> Any:
    """The context whose spans are children of the given one; None without it."""
    if not traceparent:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": traceparent})


def traceparent_of(span: Any) -> str:
    context = span.get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def mark_failed(span: Any, kind: str, message: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, message[:400]))


def messages_of(role: str, texts: Sequence[str], finish_reason: str = "") -> str:
    """Texts in the form of `gen_ai.input.messages` and `gen_ai.output.messages`."""
    more = {"finish_reason": finish_reason} if finish_reason else {}
    found = [
        {"role": role, "parts": [{"type": "text", "content": text[:MAX_CONTENT_CHARS]}], **more}
        for text in texts
    ]
    return json.dumps(found, ensure_ascii=False)
