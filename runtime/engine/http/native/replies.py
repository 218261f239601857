"""The engine's replies in the JSON of SGLang's native API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.errors import Json
from sgc.runtime.engine.http.native.requests import Shown
from sgc.runtime.engine.http.token_texts import logprob_of

_UNKNOWN = {"prompt_tokens": None, "completion_tokens": None, "cached_tokens": None}


def whole(generated: pb.Generated, asked: pb.Sampling, shown: Shown) -> Json:
    """The reply to one request. asked: its sampling."""
    ids = [] if shown.is_prefill else list(generated.ids)
    usage = generated.usage
    meta: Json = {
        "id": shown.rid,
        "finish_reason": _finish(generated, asked, shown),
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": len(ids),
        "cached_tokens": usage.cached_tokens,
        "e2e_latency": usage.queue_s + usage.prefill_s + usage.decode_s,
    }
    if shown.logprobs:
        meta |= _logprobs(generated, shown)
    return {"text": _text(generated, asked, shown), "output_ids": ids, "meta_info": meta}


def partial(text: str, shown: Shown) -> Json:
    """The text so far of a stream; token counts come only with the last event."""
    return {"text": text, "meta_info": {"id": shown.rid, "finish_reason": None, **_UNKNOWN}}


def _is_by_pattern(generated: pb.Generated, asked: pb.Sampling) -> bool:
    return bool(generated.matched) and generated.matched not in asked.stop


def _text(generated: pb.Generated, asked: pb.Sampling, shown: Shown) -> str:
    """The text; as in SGLang, it keeps what a stop pattern matched."""
    if shown.is_prefill:
        return ""
    keeps = shown.keeps_stop or _is_by_pattern(generated, asked)
    return generated.text + generated.matched if keeps else generated.text


def _finish(generated: pb.Generated, asked: pb.Sampling, shown: Shown) -> Json:
    if generated.finish_reason == pb.FINISH_REASON_LENGTH or shown.is_prefill:
        return {"type": "length", "length": 0 if shown.is_prefill else asked.max_tokens}
    if generated.matched_id >= 0:
        return {"type": "stop", "matched": generated.matched_id}
    if _is_by_pattern(generated, asked) and len(asked.stop_regex) == 1:
        return {"type": "stop", "matched": asked.stop_regex[0]}
    return {"type": "stop", "matched": generated.matched or None}


def _logprobs(generated: pb.Generated, shown: Shown) -> Json:
    found: Json = {}
    sides = {"input": generated.prompt_logprobs, "output": generated.logprobs}
    for side, rows in sides.items():
        found[f"{side}_token_logprobs"] = [_row(each, shown.has_text) for each in rows]
        if shown.has_tops:
            found[f"{side}_top_logprobs"] = [_tops(each.top, shown.has_text) for each in rows]
    return found


def _row(found: pb.TokenLogprob, has_text: bool) -> list[Any]:
    """[log-probability or null, token id, text or null]"""
    logprob = logprob_of(found.logprob) if found.HasField("logprob") else None
    return [logprob, found.id, found.text if has_text else None]


def _tops(found: Sequence[pb.TokenLogprob], has_text: bool) -> list[list[Any]] | None:
    return [_row(each, has_text) for each in found] or None
