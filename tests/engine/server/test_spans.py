"""Spans of a client's run and of the server that it asks are one trace."""

from __future__ import annotations

import http.server
import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from engine.server.test_serve import refused
from waiting import until

import sgc
from sgc.errors import UsageError
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.telemetry.otlp import CAPTURE, ENDPOINT, check_otlp
from sgc.runtime.telemetry.traceparent import valid

pytest.importorskip("opentelemetry.sdk")
trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


class Collector(http.server.ThreadingHTTPServer):
    """Keeps the spans that it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            data = gzip.decompress(data)
        asked = trace_service.ExportTraceServiceRequest.FromString(data)
        for resource in asked.resource_spans:
            for scope in resource.scope_spans:
                self.server.spans += scope.spans
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: object) -> None: ...


@contextmanager
def collecting() -> Iterator[Collector]:
    with Collector() as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        try:
            yield collector
        finally:
            collector.shutdown()


def attributes_of(span: Any) -> dict[str, Any]:
    def value_of(value: Any) -> Any:
        kind = value.WhichOneof("value")
        if kind == "array_value":
            return [value_of(each) for each in value.array_value.values]
        return getattr(value, kind)

    return {each.key: value_of(each.value) for each in span.attributes}


@sgc.function
def tip(s: Any, topic: Any) -> None:
    s += "A tip about " + topic + ":"
    s += sgc.gen("one", max_tokens=5, ignore_eos=True)


@pytest.mark.parametrize("captured", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_run_and_its_requests_are_one_trace(
    captured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE, str(captured))
    with collecting() as collector:
        with EmbeddedEngine("fake", ["--http", "0", "--otlp", collector.url]) as engine:
            remote = sgc.RemoteEngine(engine.uri)
            remote.trace_to(collector.url)
            with remote:
                assert tip.run(topic="tea", backend=remote)["one"]
            url = next(x for x in engine.stderr_tail.splitlines() if x.startswith("HTTP on "))
            body = {"model": "fake", "prompt": "SECRET", "max_tokens": 2, "n": 2}
            asked = urllib.request.Request(
                url.removeprefix("HTTP on ") + "/v1/completions",
                json.dumps(body).encode(),
                {"traceparent": PARENT},
            )
            urllib.request.urlopen(asked).read()
        until(lambda: len(collector.spans) >= 6)  # two engines' ends send what is left
        (run,) = collector.named("run tip")
        mine = [span for span in collector.spans if span.trace_id == run.trace_id]
        ours = {span.span_id: span for span in mine}
        generations = [span for span in mine if span.name.startswith("text_completion")]
        client, server = sorted(generations, key=lambda span: span.kind, reverse=True)
        assert ours[client.parent_span_id] is run
        assert ours[server.parent_span_id] is client
        told = attributes_of(server)
        assert told["gen_ai.operation.name"] == "text_completion"
        assert told["gen_ai.provider.name"] == "sgc"
        assert told["gen_ai.usage.output_tokens"] == 5
        assert told["gen_ai.response.finish_reasons"] == ["length"]
        assert (
            told["gen_ai.usage.input_tokens"] == attributes_of(client)["gen_ai.usage.input_tokens"]
        )
        assert [event.name for event in server.events] == ["sgc.admitted", "sgc.prefilled"]
        assert run.start_time_unix_nano <= client.start_time_unix_nano
        assert client.end_time_unix_nano <= run.end_time_unix_nano
        assert ("gen_ai.input.messages" in attributes_of(client)) == captured
        assert ("gen_ai.output.messages" in attributes_of(client)) == captured
        (post,) = collector.named("POST /v1/completions")
        assert post.trace_id.hex() == TRACE
        parts = [span for span in collector.spans if span.parent_span_id == post.span_id]
        assert len(parts) == 2
        assert attributes_of(post)["http.response.status_code"] == 200
        content = "".join(str(span) for span in collector.spans)
        assert ("SECRET" in content) == captured


def test_a_client_s_trace_is_a_plain_one() -> None:
    assert valid(PARENT) == PARENT
    for wrong in (
        "",
        "00-0-0-0",
        PARENT + "\n",
        PARENT.replace(TRACE, "0" * 32),
        "01" + PARENT[2:],
    ):
        assert valid(wrong) == ""


@pytest.mark.parametrize("where", ["localhost:4318", "env", "ftp://x"])
def test_where_they_cannot_be_sent_is_told(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENDPOINT, raising=False)
    with pytest.raises(UsageError, match="--otlp"):
        check_otlp(where)
    code, said = refused("--otlp", where)
    assert (code, "--otlp" in said) == (2, True)


@pytest.mark.slow
def test_a_collector_that_is_not_there_holds_nobody_up() -> None:
    engine = EmbeddedEngine("fake", ["--otlp", "http://127.0.0.1:9"])
    with engine, sgc.RemoteEngine(engine.uri) as remote:
        assert tip.run(topic="tea", backend=remote)["one"]
