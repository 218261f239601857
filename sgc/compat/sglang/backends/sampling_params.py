"""SGLang's `SglSamplingParams`: how a generation is sampled, in the form of SGLang's backends."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any


@dataclass
class SglSamplingParams:
    """A generation's parameters, with all defaults filled in."""

    max_new_tokens: int = 128
    min_new_tokens: int = 0
    n: int = 1
    stop: Any = ()
    stop_token_ids: Any = ()
    stop_regex: Any = ()
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    ignore_eos: bool = False
    return_logprob: bool | None = None
    logprob_start_len: int | None = None
    top_logprobs_num: int | None = None
    return_text_in_logprobs: bool | None = None
    json_schema: str | None = None
    dtype: Any = None
    regex: str | None = None

    def clone(self) -> SglSamplingParams:
        """A copy without dtype and regex, as in SGLang."""
        return replace(self, dtype=None, regex=None)

    def to_openai_kwargs(self) -> dict[str, Any]:
        self._warn_of_regex("OpenAI")
        length = self.max_new_tokens
        return {"max_completion_tokens": length, "n": self.n, **self._common(), **self._penalties()}

    def to_litellm_kwargs(self) -> dict[str, Any]:
        self._warn_of_regex("LiteLLM")
        return {**self._common(), **self._penalties()}

    def to_anthropic_kwargs(self) -> dict[str, Any]:
        self._warn_of_regex("Anthropic")
        is_several = isinstance(self.stop, (list, tuple))
        found = {**self._common(), "top_k": self.top_k}
        del found["stop"]
        return {**found, "stop_sequences": self.stop if is_several else [self.stop]}

    def to_vertexai_kwargs(self) -> dict[str, Any]:
        self._warn_of_regex("VertexAI")
        return {
            "candidate_count": 1,
            "max_output_tokens": self.max_new_tokens,
            "stop_sequences": self.stop,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k if self.top_k > 0 else None,
        }

    def to_srt_kwargs(self) -> dict[str, Any]:
        """The parameters that SGLang's own servers take."""
        return {name: getattr(self, name) for name in _OF_SERVERS}

    def _common(self) -> dict[str, Any]:
        return {
            "max_tokens": self.max_new_tokens,
            "stop": self.stop or None,
            "temperature": self.temperature,
            "top_p": self.top_p,
        }

    def _penalties(self) -> dict[str, Any]:
        return {
            "frequency_penalty": self.frequency_penalty,
            "presence_penalty": self.presence_penalty,
        }

    def _warn_of_regex(self, api: str) -> None:
        if self.regex is not None:
            message = f"Regular expression is not supported in the {api} backend."
            warnings.warn(message, stacklevel=3)


_OF_SERVERS = (
    *("max_new_tokens", "min_new_tokens", "n", "stop", "stop_token_ids", "stop_regex"),
    *("temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty"),
    *("ignore_eos", "regex", "json_schema"),
)
