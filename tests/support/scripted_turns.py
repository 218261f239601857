"""Plays replies of several parts with a scripted model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.http.openai.requests import chat_completions
from sgc.runtime.engine.http.turns.harmony import turn_of
from sgc.runtime.engine.http.turns.turn import message_of
from sgc.runtime.engine.preparing.bounds import ServerLimits
from sgc.runtime.engine.server.server import EngineFacts
from sgc.runtime.engine.text.template_child import TemplateSource, probe_here
from sgc.runtime.engine.text.template_worker import Renderer
from sgc.runtime.engine.text.tokenizer import Tokenizer

LIMITS = ServerLimits(4096, 4096, 2048)
ASKED = [{"role": "user", "content": "Weather?"}]
TOOL = {"name": "get", "parameters": {"type": "object", "properties": {"city": {}}}}
TOOLS = [{"type": "function", "function": TOOL}]


@contextlib.contextmanager
def templated(tokenizer: Tokenizer, **sources: str) -> Iterator[dict[str, EngineFacts]]:
    """The facts of a model with each template."""
    made = {}
    for name, source in sources.items():
        template = TemplateSource(source, "<s>", "</s>")
        chat = probe_here(template)
        made[name] = EngineFacts(
            "m", wpb.Ready(), chat, tokenizer, LIMITS, renderer=Renderer(template)
        )
    yield made
    for facts in made.values():
        assert facts.renderer is not None
        facts.renderer.close()


def asked(facts: EngineFacts, **more: Any) -> Any:
    body = {"model": "m", "messages": ASKED, "max_tokens": 100, "temperature": 0, **more}
    return chat_completions(body, facts)


def play(facts: EngineFacts, script: list[str], piece: int = 0, **more: Any) -> tuple[Any, ...]:
    """The message, its finish reason, and each request, for a model that goes on as scripted; each
    generation ends at a stop. piece: characters of a delta; 0: not streamed."""
    found = asked(facts, **more)
    turn = turn_of(found.plan, found.requests[0])
    request, requests, deltas = turn.ask(), [], []
    left = list(script)
    while request is not None:
        requests.append(request)
        text = left.pop(0)
        sampling = request.generate.sampling
        hits = [(text.index(stop), stop) for stop in sampling.stop if stop in text]
        at, matched = min(hits, default=(len(text), ""))
        if text[at + len(matched) :]:
            left.insert(0, text[at + len(matched) :])
        text = text[:at]
        for i in range(0, len(text) if piece else 0, piece or 1):
            assert turn.take(pb.Reply(delta=pb.Delta(text=text[i : i + piece]))) is None
            deltas += turn.deltas()
        generated = pb.Generated(text=text, tail=text, matched=matched, matched_id=-1)
        generated.usage.completion_tokens = 1
        generated.usage.prompt_tokens = 10
        generated.finish_reason = pb.FINISH_REASON_STOP
        request = turn.take(pb.Reply(generated=generated))
        deltas += turn.deltas()
    assert left == []
    return message_of(deltas), turn, requests


def end_of(request: pb.Request) -> str:
    return "".join(segment.text.text for segment in request.prompt.segments)[-60:]
