"""What a run's log holds, as JSON: requests, replies and what a backend is.

Replies come back exactly as they were. A fingerprint is the SHA-256 of a whole request: two
requests that have the same ask for the same.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from sgc.runtime.executor.backend import (
    Capabilities,
    ChatFormat,
    ChoiceScore,
    FinishReason,
    Generated,
    Logprob,
    Logprobs,
    MediaRun,
    Prompt,
    RoleFormat,
    Sampling,
    Scored,
    TextRun,
    Usage,
)
from sgc.runtime.executor.log_file import Json
from sgc.runtime.executor.plain import canonical

MAX_PROMPT_CHARS = 20_000  # of a prompt's end, kept for people; the fingerprint is of all of it


def fingerprint(*parts: Any) -> str:
    """SHA-256 of plain data, in hex."""
    return hashlib.sha256(canonical(parts).encode("ascii")).hexdigest()


def prompt_parts(prompt: Prompt) -> list[list[Any]]:
    """A prompt as plain data; media by their hash."""
    return [_segment(segment) for segment in prompt]


def _segment(segment: Any) -> list[Any]:
    if isinstance(segment, TextRun):
        return ["text", segment.text, *segment.literal]
    if isinstance(segment, MediaRun):
        return ["media", segment.media.digest, segment.media.n_frames, segment.text]
    return ["tokens", segment.ids, segment.text]


def shown_prompt(prompt: Prompt) -> str:
    """The end of a prompt's text."""
    return "".join(segment.text for segment in prompt)[-MAX_PROMPT_CHARS:]


def sampling_parts(sampling: Sampling) -> Json:
    """What of a sampling is not as it is without being given."""
    found = _given(sampling)
    if sampling.logprobs is not None:
        found["logprobs"] = _given(sampling.logprobs)
    return found


def _given(record: Any) -> Json:
    """The fields of a record that are not their defaults, so that new ones change nothing."""
    asked = [row for row in fields(record) if row.compare]
    values = {row.name: getattr(record, row.name) for row in asked}
    return {row.name: values[row.name] for row in asked if values[row.name] != row.default}


# -- replies ----------------------------------------------------------------------------------


def usage_json(usage: Usage) -> Json:
    return _given(replace(usage, from_log=False))


def usage_of(found: Json) -> Usage:
    """Marked as from the log: it was spent when that was written."""
    return Usage(**found, from_log=True)


def generated_json(reply: Generated) -> Json:
    logprobs = reply.logprobs
    return {
        "text": reply.text,
        "ids": reply.ids,
        "kept_ids": reply.kept_ids,
        "head": reply.head,
        "tail": reply.tail,
        "finish_reason": reply.finish_reason.value,
        "matched": reply.matched,
        "usage": usage_json(reply.usage),
        "logprobs": None if logprobs is None else _logprobs_json(logprobs),
        "extra": dict(reply.extra),
    }


def generated_of(found: Json) -> Generated:
    logprobs = found["logprobs"]
    return Generated(
        text=_text(found["text"]),
        ids=tuple(found["ids"]),
        kept_ids=tuple(found["kept_ids"]),
        tail=_text(found["tail"]),
        finish_reason=FinishReason(found["finish_reason"]),
        matched=found["matched"],
        usage=usage_of(found["usage"]),
        logprobs=None if logprobs is None else _logprobs_of(logprobs),
        extra=found["extra"],
        head=_text(found["head"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {value!r}")
    return value


def scored_json(reply: Scored) -> Json:
    choices = [
        {
            "ids": choice.ids,
            "logprobs": list(map(_number_json, choice.logprobs)),
            "texts": choice.texts,
            "unconditional": list(map(_number_json, choice.unconditional)),
        }
        for choice in reply.choices
    ]
    found: Json = {"choices": choices, "usage": usage_json(reply.usage)}
    if reply.chosen is not None:
        found |= {"chosen": reply.chosen, "how": reply.how}
    return found


def scored_of(found: Json) -> Scored:
    choices = tuple(
        ChoiceScore(
            tuple(choice["ids"]),
            tuple(map(_known_number, choice["logprobs"])),
            tuple(choice["texts"]),
            tuple(map(_number_of, choice["unconditional"])),
        )
        for choice in found["choices"]
    )
    return Scored(choices, usage_of(found["usage"]), found.get("chosen"), found.get("how", ""))


def _number_json(value: float | None) -> float | str | None:
    """JSON has no infinities: they stand as texts."""
    return value if value is None or math.isfinite(value) else str(value)


def _number_of(value: Any) -> float | None:
    return None if value is None else float(value)


def _known_number(value: Any) -> float:
    return float(value)


Rows = Iterable[Logprob]


def _rows_json(rows: Rows) -> list[list[Any]]:
    return [[_number_json(logprob), token, text] for logprob, token, text in rows]


def _rows_of(rows: Any) -> tuple[Logprob, ...]:
    return tuple((_number_of(logprob), token, text) for logprob, token, text in rows)


def _logprobs_json(logprobs: Logprobs) -> Json:
    return {
        "input": _rows_json(logprobs.input),
        "output": _rows_json(logprobs.output),
        "input_top": [None if rows is None else _rows_json(rows) for rows in logprobs.input_top],
        "output_top": [None if rows is None else _rows_json(rows) for rows in logprobs.output_top],
    }


def _logprobs_of(found: Json) -> Logprobs:
    tops = [
        tuple(None if rows is None else _rows_of(rows) for rows in found[name])
        for name in ("input_top", "output_top")
    ]
    return Logprobs(_rows_of(found["input"]), _rows_of(found["output"]), *tops)


# -- backends -----------------------------------------------------------------------------------


def capabilities_json(found: Capabilities) -> Json:
    chat = found.chat
    return {
        "model": found.model,
        "chat": {
            "roles": {name: [role.prefix, role.suffix] for name, role in chat.roles.items()},
            "default_system": chat.default_system,
            "stop": chat.stop,
            "system_in_user": chat.system_in_user,
            "image_token": chat.image_token,
        },
        "max_context": found.max_context,
        "special_tokens": found.special_tokens,
        "max_in_flight": found.max_in_flight,
        "fingerprints": dict(found.fingerprints),
        "refuses": sorted(found.refuses),
        "unconditional": found.unconditional,
        "images": found.images,
        "checked": sorted(found.checked),
        "scores": found.scores,
        "tells_stop": found.tells_stop,
        "speculates": found.speculates,
        "takes_messages": found.takes_messages,
        "pool_tokens": found.pool_tokens,
    }


def capabilities_of(found: Json) -> Capabilities:
    chat: Mapping[str, Any] = found["chat"]
    return Capabilities(
        model=_text(found["model"]),
        chat=ChatFormat(
            roles={name: RoleFormat(*role) for name, role in chat["roles"].items()},
            default_system=chat["default_system"],
            stop=tuple(chat["stop"]),
            system_in_user=chat["system_in_user"],
            image_token=chat["image_token"],
        ),
        max_context=found["max_context"],
        special_tokens=tuple(found["special_tokens"]),
        max_in_flight=found["max_in_flight"],
        fingerprints=found["fingerprints"],
        refuses=frozenset(found["refuses"]),
        unconditional=found["unconditional"],
        images=found["images"],
        checked=frozenset(found.get("checked", ())),  # of older logs, none
        scores=found.get("scores", True),
        tells_stop=found.get("tells_stop", True),
        speculates=found.get("speculates", False),
        takes_messages=found.get("takes_messages", False),
        pool_tokens=found.get("pool_tokens"),
    )
