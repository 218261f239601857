"""The contents of a run's log, as JSON: requests, replies and the capabilities of a backend.

Replies are read back exactly as they were written. A fingerprint is the SHA-256 of a whole request:
equal requests have equal fingerprints.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from sgc.runtime.executor.interface.backend import (
    ChoiceScore,
    FinishReason,
    Generated,
    Joined,
    Logprob,
    Logprobs,
    MediaRun,
    Prompt,
    Sampling,
    Scored,
    TextRun,
    Usage,
)
from sgc.runtime.executor.interface.capabilities import Capabilities, ChatFormat, RoleFormat
from sgc.runtime.executor.interface.log import Json
from sgc.runtime.executor.interface.plain import canonical

MAX_PROMPT_CHARS = 20_000  # kept of a prompt's end, for readers; the fingerprint covers all of it
_MAX_TOKENS = 1 << 48
_MAX_SPENT = 1e11  # seconds, dollars

T = TypeVar("T")


def fingerprint(*parts: Any) -> str:
    """SHA-256 of plain data, in hex."""
    return hashlib.sha256(canonical(parts).encode("ascii")).hexdigest()


def prompt_parts(prompt: Prompt) -> list[list[Any]]:
    """Returns a prompt as plain data; media by their hash."""
    return [_segment(segment) for segment in prompt]


def _segment(segment: Any) -> list[Any]:
    if isinstance(segment, TextRun):
        return ["text", segment.text, *segment.literal]
    if isinstance(segment, MediaRun):
        return ["media", segment.media.digest, segment.media.n_frames, segment.text]
    if isinstance(segment, Joined):
        return ["joined", *map(prompt_parts, segment.parts)]
    return ["tokens", segment.ids, segment.text]


def shown_prompt(prompt: Prompt) -> str:
    """Returns the end of a prompt's text."""
    return "".join(segment.text for segment in prompt)[-MAX_PROMPT_CHARS:]


def sampling_parts(sampling: Sampling) -> Json:
    """Returns the fields of a sampling that differ from their defaults."""
    found = _given(sampling)
    if sampling.logprobs is not None:
        found["logprobs"] = _given(sampling.logprobs)
    return found


def _given(record: Any) -> Json:
    """Returns the fields that differ from their defaults, so that a new field changes no
    fingerprint. A number is a float where its default is one: 0 and 0.0 ask for the same.
    """
    return {
        name: float(value) if isinstance(default, float) else value
        for name, default in _compared(record.__class__)
        if (value := getattr(record, name)) != default
    }


@cache  # every record of a log needs them
def _compared(kind: Any) -> tuple[tuple[str, Any], ...]:
    """The fields of a record that count when it is compared, with their defaults."""
    return tuple((row.name, row.default) for row in fields(kind) if row.compare)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(row.name for row in fields(kind))


# -- replies ----------------------------------------------------------------------------------


def usage_json(usage: Usage) -> Json:
    found = _given(usage)
    found.pop("from_log", None)
    return found


def usage_of(found: Json) -> Usage:
    """Reads a usage, and marks it as from the log: it was spent when the log was written."""
    usage = Usage(**found, from_log=True)
    for row in fields(usage):
        _check_spent(row.name, row.default, getattr(usage, row.name))
    return usage


def usage_in(record: Json) -> Usage:
    """The usage in a record's reply; the reply of a commit is its usage."""
    reply = record["reply"]
    return usage_of(reply if record["kind"] == "commit" else reply["usage"])


def _check_spent(name: str, default: Any, value: Any) -> None:
    """Raises TypeError for a value of another type, with which sums would fail later."""
    if isinstance(default, bool):
        is_one = isinstance(value, bool)
    elif isinstance(default, int):
        is_one = type(value) is int and 0 <= value < _MAX_TOKENS
    else:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_one = value is default or (is_number and 0 <= value <= _MAX_SPENT)
    if not is_one:
        raise TypeError(f"expected a usage's {name}, found {value!r}")


def generated_json(reply: Generated) -> Json:
    logprobs = reply.logprobs
    return {
        **_fields(reply),
        "finish_reason": reply.finish_reason.value,
        "usage": usage_json(reply.usage),
        "logprobs": None if logprobs is None else _logprobs_json(logprobs),
        "extra": dict(reply.extra),
    }


def _fields(record: Any) -> Json:
    return {name: getattr(record, name) for name in _names(record.__class__)}


def generated_of(found: Json) -> Generated:
    logprobs = found["logprobs"]
    return Generated(
        text=_text(found["text"]),
        ids=_ids(found["ids"]),
        kept_ids=_ids(found["kept_ids"]),
        tail=_text(found["tail"]),
        finish_reason=FinishReason(found["finish_reason"]),
        matched=_matched(found["matched"]),
        usage=usage_of(found["usage"]),
        logprobs=None if logprobs is None else _logprobs_of(logprobs),
        extra=instance_of(found["extra"], dict),
        head=_text(found["head"]),
        tells_all=_flag(found.get("tells_all", False)),
    )


def instance_of(value: Any, kind: type[T]) -> T:
    """Returns the value; raises TypeError if it is no instance of `kind`."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"expected {kind.__name__}, found {str(value)[:80]!r}")
    return value


def _matched(value: Any) -> str | int | None:
    return value if value is None or isinstance(value, str) else instance_of(value, int)


def _text(value: Any) -> str:
    return instance_of(value, str)


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(_text, instance_of(values, list)))


def _flag(value: Any) -> bool:
    return instance_of(value, bool)


def _ids(value: Any) -> tuple[int, ...]:
    ids = tuple(value)
    if not all(type(each) is int and each >= 0 for each in ids):
        raise TypeError("expected token ids")
    return ids


def scored_json(reply: Scored) -> Json:
    choices = [
        {
            **_fields(choice),
            "logprobs": list(map(_number_json, choice.logprobs)),
            "unconditional": list(map(_number_json, choice.unconditional)),
            "before": _rows_json(choice.before),
            "after": _rows_json(choice.after),
        }
        for choice in reply.choices
    ]
    found: Json = {"choices": choices, "usage": usage_json(reply.usage)}
    if reply.chosen is not None:
        found |= {"chosen": reply.chosen, "how": reply.how}
    if reply.meta is not None:
        found["meta"] = dict(reply.meta)
    return found


def scored_of(found: Json) -> Scored:
    choices = tuple(
        ChoiceScore(
            _ids(choice["ids"]),
            tuple(map(float, choice["logprobs"])),
            tuple(choice["texts"]),
            tuple(map(_number_of, choice["unconditional"])),
            _rows_of(choice.get("before", ())),  # older logs have none
            _rows_of(choice.get("after", ())),
        )
        for choice in found["choices"]
    )
    chosen = found.get("chosen")
    if chosen is not None and instance_of(chosen, int) < 0:
        raise ValueError(f"there is no choice {chosen}")
    how, meta = _text(found.get("how", "")), found.get("meta")
    meta = None if meta is None else dict(meta)
    return Scored(choices, usage_of(found["usage"]), chosen, how, meta)


def _number_json(value: float | None) -> float | str | None:
    """Writes infinities, which JSON does not have, as texts."""
    return value if value is None or math.isfinite(value) else str(value)


def _number_of(value: Any) -> float | None:
    return None if value is None else float(value)


Rows = Iterable[Logprob]
_TOPS = ("input_top", "output_top")


def _rows_json(rows: Rows) -> list[list[Any]]:
    return [[_number_json(logprob), token, text] for logprob, token, text in rows]


def _rows_of(rows: Any) -> tuple[Logprob, ...]:
    return tuple((_number_of(logprob), token, text) for logprob, token, text in rows)


def _logprobs_json(logprobs: Logprobs) -> Json:
    return {
        "input": _rows_json(logprobs.input),
        "output": _rows_json(logprobs.output),
        **{
            name: [None if rows is None else _rows_json(rows) for rows in getattr(logprobs, name)]
            for name in _TOPS
        },
    }


def _logprobs_of(found: Json) -> Logprobs:
    tops = [
        tuple(None if rows is None else _rows_of(rows) for rows in found[name]) for name in _TOPS
    ]
    return Logprobs(_rows_of(found["input"]), _rows_of(found["output"]), *tops)


# -- backends -----------------------------------------------------------------------------------


def capabilities_json(found: Capabilities) -> Json:
    chat = found.chat
    told = {
        **_fields(found),
        "chat": {
            **_fields(chat),
            "roles": {name: [role.prefix, role.suffix] for name, role in chat.roles.items()},
        },
        "fingerprints": dict(found.fingerprints),
        "refuses": sorted(found.refuses),
        "checked": sorted(found.checked),
    }
    del told["prefetches"]  # a replay does not prefetch
    return told


def capabilities_of(found: Json) -> Capabilities:
    """Reads capabilities; fields that an older log lacks take their defaults."""
    chat: Mapping[str, Any] = found["chat"]
    pool_tokens = found.get("pool_tokens")
    flags = [row.name for row in fields(Capabilities) if isinstance(row.default, bool)]
    return Capabilities(
        model=_text(found["model"]),
        chat=ChatFormat(
            roles={name: RoleFormat(*_texts(role)) for name, role in chat["roles"].items()},
            default_system=_text(chat["default_system"]),
            stop=_texts(chat["stop"]),
            system_in_user=_flag(chat["system_in_user"]),
            image_token=_text(chat["image_token"]),
        ),
        max_context=instance_of(found["max_context"], int),
        special_tokens=_texts(found["special_tokens"]),
        max_in_flight=instance_of(found["max_in_flight"], int),
        fingerprints={name: _text(each) for name, each in found["fingerprints"].items()},
        refuses=frozenset(_texts(found["refuses"])),
        checked=frozenset(_texts(found.get("checked", []))),
        pool_tokens=None if pool_tokens is None else instance_of(pool_tokens, int),
        **{name: _flag(found[name]) for name in flags if name in found},
    )
