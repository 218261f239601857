"""The words of the language: expressions that a program appends to a stream.

An expression is inert data until `s += expression`. Signatures follow SGLang's front end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

Appendable = Union["Expr", str]

DEFAULT_METHOD = "token_length_normalized"


class Expr:
    """Anything but text that can be appended; `+` joins expressions and texts in order."""

    __slots__ = ()

    def __add__(self, other: Appendable) -> Sequenced:
        joined: Sequenced = _join(self, other)
        return joined

    def __radd__(self, other: Appendable) -> Sequenced:
        joined: Sequenced = _join(other, self)
        return joined


@dataclass(frozen=True, slots=True)
class Sequenced(Expr):
    """Parts appended one after the other."""

    parts: tuple[Appendable, ...]


@dataclass(frozen=True, slots=True)
class Gen(Expr):
    """A generation. params: those that were given, by the op's field names."""

    name: str | None
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Select(Expr):
    """The likeliest of some texts."""

    name: str | None
    choices: Sequence[str]
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoleBegin(Expr):
    role: str


@dataclass(frozen=True, slots=True)
class RoleEnd(Expr):
    role: str


def _join(left: Any, right: Any) -> Any:
    """The two in sequence; NotImplemented for what cannot be appended."""
    parts: list[Appendable] = []
    for part in (left, right):
        if isinstance(part, Sequenced):
            parts.extend(part.parts)
        elif isinstance(part, (Expr, str)):
            parts.append(part)
        else:
            return NotImplemented
    return Sequenced(tuple(parts))


# Parameters of `gen` that have a meaning but no backend that honours them yet. They are
# refused with the user's line, never dropped.
NOT_YET = (
    "n",
    "stop_regex",
    "return_logprob",
    "logprob_start_len",
    "top_logprobs_num",
    "return_text_in_logprobs",
    "dtype",
    "regex",
    "json_schema",
)


def gen(
    name: str | None = None,
    max_tokens: int | None = None,
    min_tokens: int | None = None,
    n: int | None = None,
    stop: str | Sequence[str] | None = None,
    stop_token_ids: Sequence[int] | None = None,
    stop_regex: str | Sequence[str] | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    ignore_eos: bool | None = None,
    return_logprob: bool | None = None,
    logprob_start_len: int | None = None,
    top_logprobs_num: int | None = None,
    return_text_in_logprobs: bool | None = None,
    dtype: type | str | None = None,
    choices: Sequence[str] | None = None,
    choices_method: str | None = None,
    regex: str | None = None,
    json_schema: str | None = None,
    *,
    repetition_penalty: float | None = None,
    seed: int | None = None,
) -> Expr:
    """Generates text from the prompt so far and appends it; `s[name]` is the text.

    What is None takes the run's default. Stop strings end the text and are not part of it.
    With `choices` it is a `select`. Parameters no backend honours yet raise
    UnsupportedParameter when the expression is appended.
    """
    given: dict[str, Any] = dict(locals())
    params = {key: value for key, value in given.items() if value is not None}
    for key in ("name", "choices", "choices_method"):
        params.pop(key, None)
    if choices:
        # As in SGLang: temperature 0 unless given; what only concerns generation is unused.
        kept = {key: value for key, value in params.items() if key in ("temperature", "seed")}
        texts = choices if isinstance(choices, str) else tuple(choices)
        return Select(name, texts, _method(choices_method), kept)
    return Gen(name, params)


def select(
    name: str | None = None,
    choices: Sequence[str] | None = None,
    temperature: float = 0.0,
    choices_method: str | Callable[..., Any] | None = None,
    *,
    seed: int | None = None,
) -> Expr:
    """Appends the likeliest of `choices`; `s[name]` is the one taken.

    choices_method: token_length_normalized (default), greedy_token_selection or joint.
    """
    params: dict[str, Any] = {"temperature": temperature} if temperature else {}
    if seed is not None:
        params["seed"] = seed
    given = choices if isinstance(choices, str) else tuple(choices or ())
    return Select(name, given, _method(choices_method), params)


def _method(method: str | Callable[..., Any] | None) -> str:
    if method is None:
        return DEFAULT_METHOD
    return method if isinstance(method, str) else getattr(method, "__name__", repr(method))


def role(role: str, expr: Appendable | None = None) -> Expr:
    """A message of any role the model's chat template knows."""
    begin, end = RoleBegin(role), RoleEnd(role)
    return begin + end if expr is None else begin + expr + end


def system(expr: Appendable | None = None) -> Expr:
    """A system message; without content an empty one, which replaces the template's own."""
    return role("system", expr)


def user(expr: Appendable | None = None) -> Expr:
    """A user message."""
    return role("user", expr)


def assistant(expr: Appendable | None = None) -> Expr:
    """An assistant message: usually one or more generations and the text around them."""
    return role("assistant", expr)


def system_begin() -> Expr:
    return RoleBegin("system")


def system_end() -> Expr:
    return RoleEnd("system")


def user_begin() -> Expr:
    return RoleBegin("user")


def user_end() -> Expr:
    return RoleEnd("user")


def assistant_begin() -> Expr:
    return RoleBegin("assistant")


def assistant_end() -> Expr:
    return RoleEnd("assistant")
