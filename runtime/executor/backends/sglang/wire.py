"""Translates between the executor's data and the JSON of SGLang's native HTTP API.

It makes no requests; `sglang/backend.py` uses it. A reply that does not have the API's form raises
a BackendError that says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import reduce
from typing import Any

from sgc.errors import BackendError, ContextExceeded
from sgc.runtime.executor.interface.backend import (
    ChoiceScore,
    FinishReason,
    Generated,
    MediaRun,
    Prompt,
    Sampling,
    Usage,
)

Json = dict[str, Any]
# [log-probability or null, token id, text or null]
Row = Sequence[Any]

# Parameters that the API names differently. Not sent as sampling parameters: seeds, which only
# newer servers accept; logprobs, which are fields of the request; healing, which it lacks; and
# refused replies, as the server enforces constraints.
_NAMES = {"max_tokens": "max_new_tokens", "min_tokens": "min_new_tokens"}
_ALWAYS = frozenset({"max_tokens", "temperature"})
_ELSEWHERE = frozenset({"seed", "logprobs", "heal", "is_repeatable", "own_seed", "refused"})
_FIELDS = tuple(
    (field.name, _NAMES.get(field.name, field.name), field.default)
    for field in fields(Sampling)
    if field.name not in _ELSEWHERE
)
_CONTEXT_WORDS = ("context length", "maximum allowed length", "maximum context")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


# Requests.


def prompt_text(prompt: Prompt) -> str:
    """The whole prompt as text: this API does not accept token ids together with text."""
    return "".join([run.text for run in prompt])


def generate_body(
    prompt: Prompt, sampling: Sampling, n: int = 1, stream: bool = False, sends_all: bool = False
) -> Json:
    """sends_all: neutral values are sent too, for a server with other defaults."""
    params = sampling_params(sampling, sends_all)
    if n > 1:
        params["n"] = n
    body: Json = {"text": prompt_text(prompt), "sampling_params": params}
    if sampling.logprobs is not None:
        body["return_logprob"] = True
        if sampling.logprobs.start is not None:
            body["logprob_start_len"] = sampling.logprobs.start
        if sampling.logprobs.top:
            body["top_logprobs_num"] = sampling.logprobs.top
        if sampling.logprobs.text:
            body["return_text_in_logprobs"] = True
    if stream:
        body["stream"] = True
    images = images_of(prompt)
    if len(images) > 1 and n > 1:
        # The server makes a batch of it, in which a flat list would mean one image per text.
        body["text"], body["image_data"] = [body["text"]], [images]
    elif images:
        body["image_data"] = images if len(images) > 1 else images[0]
    return body


def sampling_params(sampling: Sampling, sends_all: bool = False) -> Json:
    params: Json = {}
    for name, key, neutral in _FIELDS:
        value = getattr(sampling, name)
        if sends_all or value != neutral or name in _ALWAYS:
            params[key] = value
    if sampling.logit_bias:
        params["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias}
    elif sends_all:
        params["logit_bias"] = None
    return params


def prefill_body(prompt: Prompt) -> Json:
    """The request that computes and caches the prompt, and counts its tokens."""
    return generate_body(prompt, Sampling(max_tokens=0, temperature=0.0))


def choices_body(prompt: Prompt, choices: Sequence[str], n_prompt_tokens: int) -> Json:
    """The request that scores the choices, from two tokens before the prompt's end on.

    The prompt's last token may differ when a choice follows it.
    """
    text, images = prompt_text(prompt), images_of(prompt)
    body: Json = {
        "text": [text + choice for choice in choices],
        "sampling_params": {"max_new_tokens": 0, "temperature": 0.0},
        "return_logprob": True,
        "return_text_in_logprobs": True,
        "logprob_start_len": max(n_prompt_tokens - 2, 0),
    }
    if images:
        body["image_data"] = images[0] if len(images) == 1 else [images] * len(choices)
    return body


def unconditional_body(scores: Sequence[Sequence[Row]]) -> Json:
    return {
        "input_ids": [[row[1] for row in rows] for rows in scores],
        "sampling_params": {"max_new_tokens": 0, "temperature": 0.0},
        "return_logprob": True,
        "logprob_start_len": 0,
    }


def images_of(prompt: Prompt) -> list[str]:
    """Images and videos in this API's form; a video has a prefix."""
    return [
        ("video:" if run.media.n_frames else "") + run.media.base64()
        for run in prompt
        if isinstance(run, MediaRun)
    ]


def encoded(body: Json) -> bytes:
    try:
        return _encode(body).encode()
    except UnicodeEncodeError as error:
        raise BackendError(
            f"the request holds a lone surrogate ({error.object[error.start]!r}), which is no text",
            hint='decode bytes with errors="replace", not "surrogateescape"',
        ) from error


# Replies.


def parsed(data: bytes | bytearray, what: str = "the server's reply") -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        shown = bytes(data[:80]).decode(errors="replace")
        raise BackendError(f"{what} is not JSON: {shown!r} ({error})") from error


def replies_of(reply: Any, n: int) -> list[Json]:
    """The reply's completions; a server may leave out the list around a single one."""
    found = reply if isinstance(reply, list) else [reply]
    if len(found) != n:
        raise BackendError(f"the server sent {len(found)} completions, not the {n} asked for")
    for each in found:
        if not isinstance(each, dict) or not isinstance(each.get("meta_info"), dict):
            raise BackendError(f"the server sent no completion but {str(each)[:200]}")
    return found


def generated_of(reply: Json, sampling: Sampling) -> Generated:
    text, meta = reply.get("text"), reply["meta_info"]
    if not isinstance(text, str):
        raise BackendError("the server sent a completion without text")
    finish_reason, matched = _finish_of(meta.get("finish_reason"), sampling.stop)
    return Generated(
        text, (), (), text, finish_reason, matched, usage_of(meta), None, extra=meta
    )  # fmt: skip


def _finish_of(given: Any, stop: tuple[str, ...]) -> tuple[FinishReason, str | int | None]:
    found = given if isinstance(given, dict) else {"type": given}
    if found.get("type") == "abort":
        raise error_of(found, "the server aborted the request")
    if found.get("type") == "length":
        return FinishReason.LENGTH, None
    matched = found.get("matched")
    # Of a stop_regex it is the pattern, and what that matched is still in the text.
    is_given = matched in stop if isinstance(matched, str) else isinstance(matched, int)
    return FinishReason.STOP, matched if is_given else None


def usage_of(meta: Json, is_prefill: bool = False) -> Usage:
    """is_prefill: the token that the server sampled at the end is not counted."""
    prompt, cached = _count(meta, "prompt_tokens"), _count(meta, "cached_tokens")
    completion = 0 if is_prefill else _count(meta, "completion_tokens")
    return Usage(prompt, cached, max(prompt - cached, 0), completion)


def sum_usage(replies: Iterable[Json]) -> Usage:
    """The total usage of several prefills."""
    each = (usage_of(reply["meta_info"], is_prefill=True) for reply in replies)
    return reduce(Usage.with_more, each, Usage())


def _count(meta: Json, name: str) -> int:
    value = meta.get(name)
    if value is None:
        return 0
    if not isinstance(value, int) or value < 0:
        raise BackendError(f"the server counts {name} as {str(value)[:80]}")
    return value


def prompt_tokens_of(reply: Json) -> int:
    if reply["meta_info"].get("prompt_tokens") is None:
        raise BackendError("the server does not tell prompt_tokens, which a select needs")
    return _count(reply["meta_info"], "prompt_tokens")


def choice_rows(reply: Json, text: str) -> list[Row]:
    """The rows that score a choice after the prompt's `text`, with the same first row as in SGLang.

    The server's first row usually has no log-probability. If it has one, it is of a token of the
    prompt, which counts only if that token merged with the choice.
    """
    rows = _rows_of(reply)
    kept = [row for row in rows if row[0] is not None]
    if kept and rows[0][0] is not None and len(kept) > 1:
        is_prompts = isinstance(rows[0][2], str) and text.endswith(rows[0][2])
        kept = kept[1:] if is_prompts else kept
    if not kept:
        raise BackendError(
            "the server gave no log-probability for a choice",
            hint="the prompt may be too short; it needs a token before the choices",
        )
    return kept


def choice_score(reply: Json, rows: Sequence[Row], alone: Json | None) -> ChoiceScore:
    """alone: the reply for the rows' tokens without the prompt, if requested."""
    told, unconditional = _rows_of(reply), tuple[float | None, ...]()
    left_out = told[: len(told) - len(rows)]
    if alone is not None:
        unconditional = tuple(row[0] for row in _rows_of(alone))
        if len(unconditional) == len(rows) - 1:
            unconditional = (None, *unconditional)  # some servers omit the first, which has none
        if len(unconditional) != len(rows):
            raise BackendError(
                f"the server scored {len(unconditional)} of a choice's {len(rows)} tokens alone"
            )
    return ChoiceScore(
        ids=tuple(row[1] for row in rows),
        logprobs=tuple(row[0] for row in rows),
        texts=tuple(row[2] for row in rows),
        unconditional=unconditional,
        before=tuple((None, row[1], row[2]) for row in left_out[-1:]),
        after=tuple((row[0], row[1], row[2]) for row in _rows_of(reply, "output")),
    )


def _rows_of(reply: Json, side: str = "input") -> list[Row]:
    """The rows of one side; a server that generated nothing may leave out the output's."""
    name = f"{side}_token_logprobs"
    rows = reply["meta_info"].get(name, [] if side == "output" else None)
    if not isinstance(rows, list) or not all(map(_is_row, rows)):
        raise BackendError(f"the server sent {str(rows)[:80]} as {name}")
    return rows


def _is_row(row: Any) -> bool:
    if not isinstance(row, list) or len(row) != 3 or not isinstance(row[1], int):
        return False
    return isinstance(row[0], (int, float, type(None))) and isinstance(row[2], (str, type(None)))


# Errors.


def error_of(body: Any, what: str) -> BackendError:
    message = message_of(body)
    is_context = any(words in message.lower() for words in _CONTEXT_WORDS)
    return (ContextExceeded if is_context else BackendError)(f"{what}: {message}")


def message_of(body: Any) -> str:
    """The server's message, from {"error": {"message": …}} and the like; at most 500 characters."""
    while isinstance(body, Mapping):
        inner = next((body[key] for key in ("error", "message", "detail") if body.get(key)), None)
        if inner is None:
            break
        body = inner
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return text.strip()[:500] or "(no message)"
