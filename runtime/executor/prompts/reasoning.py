"""Separates a model's reasoning from its reply, by the marks of its family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sgc.errors import UsageError


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks around reasoning. is_open: a reply may begin inside reasoning, without `start`."""

    start: str
    end: str
    is_open: bool = False


_THINK = Marks("<think>", "</think>")
_OPEN_THINK = Marks("<think>", "</think>", is_open=True)

MODEL_TYPES: Mapping[str, Marks] = {
    "deepseek-r1": _OPEN_THINK,
    "deepseek-v3": _THINK,
    "glm45": _THINK,
    "gpt-oss": Marks("<|channel|>analysis<|message|>", "<|end|>", is_open=True),
    "kimi": Marks("◁think▷", "◁/think▷"),
    "kimi_k2": _OPEN_THINK,
    "minimax": _OPEN_THINK,
    "minimax-append-think": _OPEN_THINK,
    "qwen3": _THINK,
    "qwen3-thinking": _OPEN_THINK,
    "step3": _OPEN_THINK,
}


def split_reasoning(text: str, model_type: str) -> tuple[str, str]:
    """Returns reasoning and answer, both without the marks.

    A reply that ends inside its reasoning has no answer; one without reasoning is all answer.
    """
    marks = MODEL_TYPES.get(model_type.lower())
    if marks is None:
        known = ", ".join(MODEL_TYPES)
        raise UsageError(f"unknown model_type {model_type!r}", hint=f"use one of: {known}")
    if not marks.is_open and marks.start not in text:
        return "", text
    reasoning, found, answer = text.replace(marks.start, "").strip().partition(marks.end)
    return reasoning, answer.strip() if found else ""
