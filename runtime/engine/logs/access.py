"""The access log: one line for each HTTP request, and for each request of a gRPC stream.

It has no prompts, unless they are asked for, and no tokens, only their names.
"""

from __future__ import annotations

import time
from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.logs.log import Log
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.ledger import FINISHED, Ended

MAX_PROMPT_CHARS = 32_768
MAX_TEXT_CHARS = 400  # of a path, a model's name, an error
QUIET_PATHS = frozenset({"/health", "/metrics"})  # are requested every few seconds
CLIENT_CLOSED = 499  # the status of a request whose client disconnected
_TIMES = ("queue_s", "prefill_s", "decode_s")
_COUNTS = ("prompt_tokens", "cached_tokens", "completion_tokens")
_REASONS: dict[int, str] = {pb.FINISH_REASON_STOP: "stop", pb.FINISH_REASON_LENGTH: "length"}


class AccessLog:
    """model: the engine's, for requests that name no adapter."""

    def __init__(self, log: Log, model: str, with_prompts: bool = False) -> None:
        self._log, self._model, self._with_prompts = log, model, with_prompts

    def observe(self, ended: Ended) -> None:
        """Writes the line of a gRPC request; adds up the engine's requests of an HTTP request."""
        found = self._facts(ended)
        if ended.is_part:
            _add(ended.caller.totals, found)
            return
        active = ended.active
        took_s = None if active is None else time.monotonic() - active.began_at
        self._log.record(
            "request",
            {
                "id": f"{ended.caller.id}/{ended.id}",
                "face": "grpc",
                "token": _name_of(ended.caller),
                "kind": None if active is None else active.kind,
                "status": "OK" if ended.outcome == FINISHED else ended.code_name,
                **found,
                "took_s": None if took_s is None else round(took_s, 6),
            },
        )

    def http(
        self, method: str, path: str, status: int | None, caller: Caller, request_id: str
    ) -> None:
        """Writes the line of an HTTP request. status: None if its client disconnected."""
        if path in QUIET_PATHS and status == 200:
            return
        self._log.record(
            "request",
            {
                "id": request_id,
                "face": "http",
                "token": _name_of(caller),
                "method": method,
                "path": path[:MAX_TEXT_CHARS],
                "status": CLIENT_CLOSED if status is None else status,
                **caller.totals,
                "disconnected": True if status is None else None,
                "took_s": round(time.monotonic() - caller.began_at, 6),
            },
        )

    def _facts(self, ended: Ended) -> dict[str, Any]:
        active, usage = ended.active, ended.usage
        adapter = "" if active is None else active.adapter
        found: dict[str, Any] = {
            "model": (adapter or self._model)[:MAX_TEXT_CHARS],
            "outcome": ended.outcome,
            "finish_reason": _REASONS.get(ended.finish_reason),
            "error": ended.error[:MAX_TEXT_CHARS] or None,
        }
        if usage is not None:
            found |= {name: getattr(usage, name) for name in _COUNTS}
            found |= {name: round(getattr(usage, name), 6) for name in _TIMES}
        elif active is not None:
            found["completion_tokens"] = active.n_generated
        if self._with_prompts and active is not None and active.prompt is not None:
            found["prompt"] = text_of(active.prompt)
        return found


def _name_of(caller: Caller) -> str | None:
    return None if caller.account is None else caller.account.name


def _add(totals: dict[str, Any], found: dict[str, Any]) -> None:
    """Adds up tokens, and keeps the longest times and the worst outcome."""
    totals["requests"] = totals.get("requests", 0) + 1
    is_good = totals.get("outcome") in (None, FINISHED)
    for name, value in found.items():
        if value is None:
            continue
        if name in _COUNTS:
            totals[name] = totals.get(name, 0) + value
        elif name in _TIMES:
            totals[name] = max(totals.get(name, 0.0), value)
        elif name == "prompt":
            totals.setdefault(name, value)
        elif is_good:
            totals[name] = value


def text_of(prompt: pb.Prompt) -> str:
    """A prompt as one text; parts that are not text are named in brackets."""
    parts, n_chars = [], 0
    for segment in prompt.segments:
        kind = segment.WhichOneof("content")
        if kind == "text":
            part = segment.text.text[: MAX_PROMPT_CHARS - n_chars]
        elif kind == "tokens":
            part = f"[{len(segment.tokens.ids)} tokens]"
        else:
            part = f"[{kind}]"
        parts.append(part)
        n_chars += len(part)
        if n_chars >= MAX_PROMPT_CHARS:
            break
    return "".join(parts)
