"""Names requests by their content, so that a later process finds those of an earlier one.

Hints to caches are left out: they may differ when a job goes on with fewer rows.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sgc.runtime.executor.backends.providers.wire.lower import Lowered
from sgc.runtime.executor.backends.providers.wire.messages import Message, Text
from sgc.runtime.executor.interface.media import Media

DIGEST_CHARS = 40  # of custom_id, which may have 64 in all
_HINTS = ("prompt_cache_key",)


def digest_of(lowered: Lowered, seed: int) -> str:
    """seed: of the draw, 0 if it is greedy; it tells equal requests of different draws apart."""
    asked: Any = lowered.asked
    if not isinstance(asked, str):
        asked = [[_said(message) for message in asked.messages], asked.prefill]
    params = {name: value for name, value in lowered.params.items() if name not in _HINTS}
    shape = None if lowered.shape is None else [lowered.shape.schema, lowered.shape.is_strict]
    what = [asked, lowered.max_tokens, params, lowered.sent_stop, shape, lowered.n,
            lowered.top_logprobs, seed]  # fmt: skip
    text = json.dumps(what, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:DIGEST_CHARS]


def _said(message: Message) -> list[Any]:
    """The role and the content, however marks split it."""
    parts: list[Any] = []
    for part in message.parts:
        if isinstance(part, Media):
            parts.append({"media": part.digest})
        elif isinstance(part, Text) and parts and isinstance(parts[-1], str):
            parts[-1] += part.text
        elif isinstance(part, Text):
            parts.append(part.text)
    return [message.role, parts]
