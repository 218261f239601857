"""The parts of an HTTP request's body that decide which engine gets it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# In the order in which a chat template writes them, so that a longer conversation keeps its prefix.
_PROMPT = ("tools", "instructions", "system", "messages", "prompt", "text", "input_ids", "input")
_LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def text_of(body: Mapping[str, Any]) -> str:
    """The prompt as one text, whose beginning is that of the model's prompt."""
    return "\n".join(
        given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        for name in _PROMPT
        if (given := body.get(name))
    )


def salt_of(body: Mapping[str, Any], domain: bytes) -> str:
    """What keeps prompts apart: the client's token, the model (an adapter has a name of its own),
    and the salt that the request asks for."""
    named = (body.get(name) for name in ("model", "lora_path", "cache_salt", "extra_key"))
    return repr((domain, *map(str, named)))


def n_out_of(body: Mapping[str, Any], expected: float) -> float:
    """How many tokens the request generates: as expected, but at most as many as it allows."""
    own = body.get("sampling_params")
    limits = [body.get(name) for name in _LENGTHS]
    limits.append(own.get("max_new_tokens") if isinstance(own, dict) else None)
    least = min((n for n in limits if isinstance(n, int) and n > 0), default=expected)
    return min(expected, least)


def cached_share_of(reply: Any) -> float | None:
    """The share of a reply's prompt that was cached; None if the reply does not say."""
    usage = reply.get("usage") or reply.get("meta_info") if isinstance(reply, dict) else None
    if not isinstance(usage, dict):
        return None
    n = usage.get("prompt_tokens") or usage.get("input_tokens")
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or usage
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    if not isinstance(n, int) or not isinstance(cached, int) or n <= 0:
        return None
    return min(1.0, cached / n)
