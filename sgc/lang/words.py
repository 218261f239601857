"""The words of the language: expressions that a program appends to a stream.

An expression is inert data until `s += expression`. Signatures follow SGLang's front end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from sgc.core.places import placed
from sgc.core.session import current_session
from sgc.lang.choices import method_of
from sgc.lang.constraints import constrained

Appendable = Union["Expr", str]


class Expr:
    """Anything but text that can be appended; `+` concatenates expressions and texts."""

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
    """A generation. params: the given parameters, by the op's field names."""

    name: str | None
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Select(Expr):
    """The likeliest of some texts. method: a built-in one's name, or an object of the user's."""

    name: str | None
    choices: Sequence[str]
    method: Any
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Image(Expr):
    value: Any


@dataclass(frozen=True, slots=True)
class Video(Expr):
    value: Any
    n_frames: int


@dataclass(frozen=True, slots=True)
class SeparateReasoning(Expr):
    expr: Appendable | None
    model_type: str | None


@dataclass(frozen=True, slots=True)
class Appended(Expr):
    """The value of `s.user(expr)`; appending it to `s`, as in `s += s.user(…)`, adds nothing."""

    expr: Appendable
    state: Any


@dataclass(frozen=True, slots=True)
class RoleBegin(Expr):
    role: str


@dataclass(frozen=True, slots=True)
class RoleEnd(Expr):
    role: str


def _join(left: Any, right: Any) -> Any:
    """The two in sequence; NotImplemented if one cannot be appended."""
    parts: list[Appendable] = []
    for part in (left, right):
        if isinstance(part, Sequenced):
            parts.extend(part.parts)
        elif isinstance(part, (Expr, str)):
            parts.append(part)
        else:
            return NotImplemented
    return Sequenced(tuple(parts))


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
    dtype: Any = None,
    choices: Sequence[str] | None = None,
    choices_method: Any = None,
    regex: str | None = None,
    json_schema: Any = None,
    *,
    ebnf: str | None = None,
    repetition_penalty: float | None = None,
    logit_bias: Mapping[int, float] | None = None,
    seed: int | None = None,
    keep_stop: bool | None = None,
    heal: bool | None = None,
) -> Expr:
    """Generates text from the prompt so far and appends it; `s[name]` is the text.

    A parameter that is None takes the run's default. One that the backend cannot honour is an error
    when the program runs.

    Args:
        name: what the text is called: `s[name]`.
        max_tokens: the most tokens of the text.
        n: how many texts are drawn; above 1, `s[name]` is a list, and its first text is appended.
        stop: strings that end the text and are not part of it, unless `keep_stop`.
        stop_regex: patterns that end the text in the same way.
        temperature: 0 takes the likeliest token each time.
        dtype: int, float, str or bool, or any type for JSON of it.
        choices: makes it a `select`; what concerns only generation is then ignored.
        regex: a pattern that the whole text matches.
        json_schema: JSON text, a dict, a pydantic model or a type; the text is JSON that fits it.
        ebnf: a grammar that the text fits.
        seed: of this generation alone, in place of one that follows from the run's.
        keep_stop: the stop string stays at the end of the text.
        heal: if the prompt's text ends inside a possible token ("http:"), its last tokens are
            generated anew together with the text.
    """
    given: dict[str, Any] = dict(locals())
    params = {key: value for key, value in given.items() if value is not None}
    for key in ("name", "choices", "choices_method"):
        params.pop(key, None)
    if choices:
        kept = {key: value for key, value in params.items() if key in ("temperature", "seed")}
        return Select(name, _texts(choices), method_of(choices_method), kept)
    with placed():
        return Gen(name, constrained(params))


def gen_int(
    name: str | None = None,
    max_tokens: int | None = None,
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
) -> Expr:
    """`gen` of a whole number; `s[name]` is its text."""
    return gen(**locals(), dtype="int")


def gen_string(
    name: str | None = None,
    max_tokens: int | None = None,
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
) -> Expr:
    """`gen` of a text in double quotes; `s[name]` includes the quotes."""
    return gen(**locals(), dtype="str")


def select(
    name: str | None = None,
    choices: Sequence[str] | None = None,
    temperature: float = 0.0,
    choices_method: Any = None,
    *,
    seed: int | None = None,
) -> Expr:
    """Appends the likeliest of `choices`; `s[name]` is the choice taken.

    Nothing is generated: the model scores each choice after the prompt, which is computed once.
    `s.get_meta_info(name)["probabilities"]` says how likely each of them was.

    Args:
        name: what the choice is called: `s[name]`.
        choices: the texts to choose from.
        choices_method: token_length_normalized (default), greedy_token_selection,
            unconditional_likelihood_normalized or "joint"; or a ChoicesSamplingMethod of your own.
    """
    params: dict[str, Any] = {"temperature": temperature} if temperature else {}
    if seed is not None:
        params["seed"] = seed
    return Select(name, _texts(choices), method_of(choices_method), params)


def _texts(choices: Any) -> Any:
    """A select's choices: a tuple, or a list known only at run time. A text is refused later, with
    the user's line.
    """
    session = current_session()
    is_given = isinstance(choices, str) or (session is not None and session.is_abstract(choices))
    return choices if is_given else tuple(choices or ())


def image(expr: Any) -> Expr:
    """Appends an image: a path, bytes, a data URL or a PIL image; never fetched by URL."""
    return Image(expr)


def video(path: Any, num_frames: int) -> Expr:
    """Appends `num_frames` frames of a video file, evenly spaced; needs OpenCV."""
    return Video(path, num_frames)


def separate_reasoning(expr: Appendable | None = None, model_type: str | None = None) -> Expr:
    """Takes the reasoning out of the texts that `expr` generates.

    The stream and `s[name]` keep the answer, `s[name + "_reasoning_content"]` is the reasoning.
    model_type: the model family whose reasoning marks to use, such as "deepseek-r1" or "qwen3".
    """
    return SeparateReasoning(expr, model_type)


def role(role: str, expr: Appendable | None = None) -> Expr:
    """A message of any role the model's chat template knows."""
    expr = given(expr)
    parts = () if expr is None else expr.parts if isinstance(expr, Sequenced) else (expr,)
    return Sequenced((RoleBegin(role), *parts, RoleEnd(role)))  # appending refuses others


def given(expr: Any) -> Any:
    """An optional part, or None; for an abstract value, whether it is None is decided."""
    found = getattr(type(expr), "or_none", None)
    return expr if found is None else found(expr)


def system(expr: Appendable | None = None) -> Expr:
    """A system message; without content, an empty one, which replaces the template's default."""
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
