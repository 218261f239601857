"""Converts prompts and requests to the form of SGLang's backends, and back."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sgc.compat.sglang.backends.sampling_params import SglSamplingParams
from sgc.core.building import OneText
from sgc.ir.graph import Lit, Node
from sgc.runtime.executor.interface.backend import (
    LogprobsAsked,
    MediaRun,
    Prompt,
    Sampling,
    TextRun,
)
from sgc.runtime.executor.run.options import DTYPES, dtype_stops

# Parameters with the same names and values in both forms.
_SAME = (
    "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty",
    "ignore_eos", "json_schema",
)  # fmt: skip
_TYPES = {"int": int, "float": float, "str": str, "bool": bool}


@dataclass(eq=False)
class AskedStream:
    """A stream at the time of a request: SGLang's `StreamExecutor` as backends read it.

    Each request has a copy of its own, so a backend that changes the copy changes no program; `sid`
    is the same in all requests of a stream. The names of images are not known.
    """

    backend: Any
    prompt: Prompt
    sid: str
    chat_template: Any = None
    stream: bool = False
    num_api_spec_tokens: int | None = None
    variables: dict[str, Any] = field(default_factory=dict)
    meta_info: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    text_: str = ""
    messages_: list[dict[str, Any]] = field(default_factory=list)
    images_: list[tuple[str | None, str]] = field(default_factory=list)
    cur_images: list[tuple[str | None, str]] = field(default_factory=list)
    cur_role: str | None = None
    cur_role_begin_pos: int | None = None
    is_finished: bool = False
    speculated_text: str = ""
    error_: BaseException | None = None

    def __post_init__(self) -> None:
        for run in self.prompt:
            if isinstance(run, MediaRun):
                image = (None, ("video:" if run.media.n_frames else "") + run.media.base64())
                self.images_.append(image)
                self.cur_images.append(image)
            start = len(self.text_)
            self.text_ += run.text
            if isinstance(run, TextRun):
                self._read_roles(run, start)

    def _read_roles(self, run: TextRun, start: int) -> None:
        for mark in run.roles:
            if mark.is_begin:
                self.cur_role, self.cur_role_begin_pos = mark.role, start + mark.end
                continue
            text = self.text_[self.cur_role_begin_pos or 0 : start + mark.start].lstrip()
            content: Any = text
            if self.cur_images:
                content = [{"type": "text", "text": text}, *map(_image_part, self.cur_images)]
            self.messages_.append({"role": mark.role, "content": content})
            self.cur_role, self.cur_images = None, []

    def text(self) -> str:
        return self.text_

    def messages(self) -> list[dict[str, Any]]:
        return self.messages_

    def get_var(self, name: str) -> Any:
        return self.variables[name]

    def set_var(self, name: str, value: Any) -> None:
        self.variables[name] = value

    def get_meta_info(self, name: str, timeout: float | None = None) -> Any:
        return self.meta_info.get(name)

    def error(self) -> BaseException | None:
        return self.error_

    def sync(self) -> None:
        """Does nothing: everything is computed already."""

    def end(self) -> None:
        """Does nothing: the run ends the stream."""


def prompt_of(s: Any) -> Prompt:
    """Returns a stream's prompt or, if a backend has changed its text, that text."""
    prompt: Prompt = getattr(s, "prompt", ())
    is_same = "".join(run.text for run in prompt) == s.text_
    return prompt if prompt and is_same else (TextRun(s.text_),)


def params_of(run: Any, node: Node, sampling: Sampling, n: int) -> SglSamplingParams:
    """A request's parameters in SGLang's form. run: the `Instance` that makes the request."""
    asked, dtype = sampling.logprobs, run.values.operand(dict(node.fields).get("dtype", Lit(None)))
    return SglSamplingParams(
        max_new_tokens=sampling.max_tokens,
        min_new_tokens=sampling.min_tokens,
        n=n,
        stop=_stop_of(run, node, sampling, dtype),
        stop_token_ids=list(sampling.stop_token_ids),
        stop_regex=list(sampling.stop_regex),
        **{name: getattr(sampling, name) for name in _SAME},
        return_logprob=True if asked else None,
        logprob_start_len=asked.start if asked else None,
        top_logprobs_num=asked.top or None if asked else None,
        return_text_in_logprobs=asked.text or None if asked else None,
        dtype=_TYPES[dtype] if dtype else None,
        regex=None if dtype else sampling.regex,
    )


def _stop_of(run: Any, node: Node, sampling: Sampling, dtype: str | None) -> Any:
    """The stop strings as the program gave them: one text stays a text, unless the chat template
    adds others."""
    operand = dict(node.fields).get("stop")
    given = run.context.options.stop if operand is None else run.values.operand(operand)
    chat = run.context.capabilities.chat.stop
    if sampling.stop != given + dtype_stops(dtype) + chat:
        return list(sampling.stop)  # speculation: the request generates past the program's stops
    is_text = isinstance(operand, OneText) and not chat
    return given[0] if is_text else [*given, *chat]


def sampling_of(params: SglSamplingParams) -> Sampling:
    """SGLang's parameters as the sampling of a request to one of our endpoints."""
    regex, stop = params.regex, _listed(params.stop)
    if params.dtype is not None:
        name = params.dtype if isinstance(params.dtype, str) else params.dtype.__name__
        regex, more = DTYPES[name]
        stop += more
    logprobs = None
    if params.return_logprob:
        start = params.logprob_start_len
        logprobs = LogprobsAsked(
            None if start is None or start < 0 else start,
            params.top_logprobs_num or 0,
            bool(params.return_text_in_logprobs),
        )
    return Sampling(
        max_tokens=params.max_new_tokens,
        min_tokens=params.min_new_tokens,
        **{name: getattr(params, name) for name in _SAME},
        seed=secrets.randbits(31),
        stop=stop,
        stop_token_ids=tuple(params.stop_token_ids or ()),
        stop_regex=_listed(params.stop_regex),
        regex=regex,
        logprobs=logprobs,
    )


def _listed(value: str | Sequence[str] | None) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def _image_part(image: tuple[str | None, str]) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{image[1]}"}}
