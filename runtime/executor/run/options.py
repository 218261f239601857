"""A run's defaults, and how a generation's fields become a decided `Sampling`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sgc.errors import UsageError
from sgc.runtime.executor.interface.backend import LogprobsAsked, Sampling
from sgc.runtime.executor.interface.log import Log
from sgc.runtime.executor.interface.seeds import draw_seed
from sgc.runtime.executor.interface.tools import Shown, ToolSource

DEFAULT_MAX_TOKENS = 128

# The valid values of each parameter: (types, lowest, highest); None is no bound.
RANGES: Mapping[str, tuple[type | tuple[type, ...], float | None, float | None]] = {
    "max_tokens": (int, 0, 2**31 - 1),
    "min_tokens": (int, 0, 2**31 - 1),
    "temperature": ((int, float), 0.0, 100.0),
    "top_p": ((int, float), 0.0, 1.0),
    "top_k": (int, -1, 2**31 - 1),
    "min_p": ((int, float), 0.0, 1.0),
    "frequency_penalty": ((int, float), -100.0, 100.0),
    "presence_penalty": ((int, float), -100.0, 100.0),
    "repetition_penalty": ((int, float), 1e-3, 100.0),
    "seed": (int, None, None),
    "ignore_eos": (bool, None, None),
    "n": (int, 1, 10_000),
    "keep_stop": (bool, None, None),
    "heal": (bool, None, None),
    "return_logprob": (bool, None, None),
    "logprob_start_len": (int, -1, 2**31 - 1),
    "top_logprobs_num": (int, 0, 10_000),
    "return_text_in_logprobs": (bool, None, None),
}

# The patterns that `dtype` stands for; the names are SGLang's.
REGEX_INT = r"[-+]?[0-9]+[ \n]*"
REGEX_FLOAT = r"[-+]?[0-9]*\.?[0-9]+[ \n]*"
REGEX_BOOL = r"(True|False)"
REGEX_STR = r"\"[\w\d\s]*\""
DTYPES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "int": (REGEX_INT, (" ", "\n")),
    "float": (REGEX_FLOAT, (" ", "\n")),
    "str": (REGEX_STR, ()),
    "bool": (REGEX_BOOL, ()),
}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """A run's seed, row key and sampling defaults, which a generation's own parameters replace.

    stop and stop_regex may be one text; any list becomes a tuple. allow_tools: the tools that the
    program may call; log: requests are written to it, or replies are read from it. ordered_joins: a
    join that takes the first children waits for all, and takes them in order. is_seed_drawn: the
    seed was drawn at random and not set by the user, so no other run has it. early_tools: pure
    tools may be called before it is known whether the program calls them. adapter: of the engine,
    by its name, for all requests; empty: the model itself. on_show: takes what the program prints,
    logs and warns of; None: it is shown as Python would.
    """

    seed: int = 0
    row: str = "0"
    max_tokens: int = DEFAULT_MAX_TOKENS
    min_tokens: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    stop_regex: tuple[str, ...] = ()
    heal: bool = False
    n: int = 1
    return_logprob: bool = False
    logprob_start_len: int = -1
    top_logprobs_num: int = 0
    return_text_in_logprobs: bool = False
    allow_tools: ToolSource | None = None
    log: Log | None = None
    ordered_joins: bool = False
    is_seed_drawn: bool = False
    early_tools: bool = False
    adapter: str = ""
    on_show: Callable[[Shown], object] | None = None

    def __post_init__(self) -> None:
        for name in _CHECKED:
            check_parameter(name, getattr(self, name))
        if not isinstance(self.adapter, str):
            raise UsageError(f"adapter must be a name, found {self.adapter!r}")
        for name, read in _LISTS.items():
            object.__setattr__(self, name, read(name, getattr(self, name)))

    def given(self) -> dict[str, Any]:
        """Returns the options that decide requests and differ from their defaults, without the
        seed.
        """
        values = {row.name: (getattr(self, row.name), row.default) for row in fields(self)}
        kept = {name: value for name, (value, default) in values.items() if value != default}
        return {name: value for name, value in kept.items() if name not in _NO_REQUEST}


_NO_REQUEST = frozenset({"seed", "row", "allow_tools", "log", "is_seed_drawn", "early_tools",
                         "on_show"})  # fmt: skip
_CHECKED = tuple(field.name for field in fields(RunOptions) if field.name in RANGES)
_PLAIN = tuple(
    field.name
    for field in fields(Sampling)
    if field.name in RANGES and field.name != "seed" and field.name in RunOptions.__slots__
)


def check_parameter(name: str, value: Any) -> None:
    """Raises UsageError unless the parameter can have the value."""
    types: Any
    types, low, high = RANGES[name]
    wanted = "a whole number" if types is int else "a number" if types is not bool else "a bool"
    is_bool = isinstance(value, bool)
    if not isinstance(value, types) or (is_bool and types is not bool):
        raise UsageError(f"{name} must be {wanted}, found {value!r}")
    if is_bool:
        return
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{name} must be finite, found {value!r}")
    if (low is not None and value < low) or (high is not None and value > high):
        low_text, high_text = (
            f"{bound:.6g}" if bound != int(bound) else f"{int(bound)}"
            for bound in (low or 0, high or 0)
        )
        raise UsageError(f"{name} must be from {low_text} to {high_text}, found {value!r}")


def decide_sampling(
    given: Mapping[str, Any], options: RunOptions, chat_stop: tuple[str, ...] = ()
) -> Sampling:
    """Returns a generation's sampling: its own parameters, else the run's defaults.

    chat_stop: the strings that end a message in the chat template; they end every generation. The
    seed is 0, and stays so for a greedy generation, so that equal requests are equal.
    """
    values: dict[str, Any] = {}
    for name in _PLAIN:
        value = given.get(name)
        if value is None:
            value = getattr(options, name)
        else:
            check_parameter(name, value)
        values[name] = value
    for name, read in _LISTS.items():
        own = given.get(name)
        values[name] = getattr(options, name) if own is None else read(name, own)
    check_lengths(values["min_tokens"], values["max_tokens"])
    values["regex"], own_stop = _pattern(given)
    values["stop"] += own_stop + chat_stop
    for name in ("json_schema", "ebnf"):
        values[name] = given.get(name)
    _check_constraints(values)
    if given.get("logit_bias") is not None:
        values["logit_bias"] = parse_logit_bias(given["logit_bias"])
    if given.get("seed") is not None:
        check_parameter("seed", given["seed"])
    values["logprobs"] = _logprobs(given, options)
    return Sampling(**values)


def check_lengths(min_tokens: int, max_tokens: int) -> None:
    """Raises UsageError if min_tokens is more than max_tokens."""
    if min_tokens > max_tokens:
        raise UsageError(
            f"min_tokens={min_tokens} is more than max_tokens={max_tokens}",
            hint="a generation without max_tokens has the run's; set its own, or fewer min_tokens",
        )


def check_choices(choices: Sequence[Any], method: Any) -> None:
    """Raises UsageError for choices that are not non-empty texts, or not distinct.

    A text that is there twice would split its probability; only a user's own method may have it.
    """
    for choice in choices:
        if not isinstance(choice, str) or not choice:
            raise UsageError(f"choices must be non-empty texts, found {choice!r}")
    if isinstance(method, str) and len(set(choices)) < len(choices):
        twice = next(choice for choice in choices if choices.count(choice) > 1)
        raise UsageError(
            f"choices must differ, found {twice!r} twice",
            hint="it would count twice, each time with a part of its probability",
        )


def seed_of(
    given: Mapping[str, Any],
    options: RunOptions,
    row: str,
    path: str,
    ordinal: int,
    n_index: int = 0,
) -> int:
    """Returns the seed of one draw: derived from the generation's own seed if it has one, else from
    the run's seed and the draw's place.
    """
    own = given.get("seed")
    if own is None:
        return draw_seed(options.seed, row, path, ordinal, n_index)
    check_parameter("seed", own)
    return draw_seed(own, "", "explicit", 0, n_index)


def own_seed_of(given: Mapping[str, Any], n_index: int = 0) -> int | None:
    """Returns the seed that the program set; further texts derive theirs from it."""
    own: int | None = given.get("seed")
    return own if own is None or n_index == 0 else draw_seed(own, "", "explicit", 0, n_index)


def _texts(name: str, given: Any) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else _items(name, given, "non-empty texts")
    for text in texts:
        if not isinstance(text, str) or not text:
            raise UsageError(f"{name} must be non-empty texts, found {text!r}")
    return texts


def _token_ids(name: str, given: Any) -> tuple[int, ...]:
    ids = _items(name, given, "a list of token ids")
    for each in ids:
        if isinstance(each, bool) or not isinstance(each, int) or not 0 <= each < 2**31:
            raise UsageError(f"{name} must be a list of token ids, found {each!r} in it")
    return ids


def _items(name: str, given: Any, wanted: str) -> tuple[Any, ...]:
    is_list = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
    if not is_list:
        raise UsageError(f"{name} must be {wanted}, found {given!r}")
    return tuple(given)


_LISTS: Mapping[str, Callable[[str, Any], tuple[Any, ...]]] = {
    "stop": _texts,
    "stop_regex": _texts,
    "stop_token_ids": _token_ids,
}


def dtype_stops(dtype: str | None) -> tuple[str, ...]:
    """Returns the stops that belong to a `dtype`."""
    return DTYPES[dtype][1] if dtype is not None else ()


def _pattern(given: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """Returns the pattern that a text must match, and the stops that belong to it."""
    dtype = given.get("dtype")
    if dtype is None:
        return given.get("regex"), ()
    if given.get("regex") is not None:
        raise UsageError(f"dtype={dtype} and regex are both given; each is a pattern")
    if dtype not in DTYPES:
        raise UsageError(f"dtype must be one of {', '.join(DTYPES)}, found {dtype!r}")
    return DTYPES[dtype]


def _check_constraints(values: Mapping[str, Any]) -> None:
    """Refuses invalid constraints; literal ones were checked before."""
    try:
        for pattern in (values["regex"], *values["stop_regex"]):
            if pattern is not None:
                re.compile(pattern)
        if values["json_schema"] is not None:
            json.loads(values["json_schema"])
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"a pattern is invalid: {error}") from error
    except ValueError as error:
        raise UsageError(f"json_schema is not JSON: {error}") from error


def _logprobs(given: Mapping[str, Any], options: RunOptions) -> LogprobsAsked | None:
    found: dict[str, Any] = {}
    for name in _LOGPROBS:
        value = given.get(name)
        if value is not None:
            check_parameter(name, value)
        found[name] = getattr(options, name) if value is None else value
    if not found["return_logprob"]:
        return None
    start = found["logprob_start_len"]
    return LogprobsAsked(
        start=None if start < 0 else start,
        top=found["top_logprobs_num"],
        text=found["return_text_in_logprobs"],
    )


_LOGPROBS = ("return_logprob", "logprob_start_len", "top_logprobs_num", "return_text_in_logprobs")


def parse_logit_bias(text: str) -> tuple[tuple[int, float], ...]:
    """Reads pairs of token id and bias from a JSON object; raises UsageError for anything else."""
    try:
        given = json.loads(text)
        pairs = tuple(sorted((int(token), float(bias)) for token, bias in given.items()))
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"logit_bias must map token ids to numbers, found {text!r}") from error
    for token, bias in pairs:
        if token < 0 or not math.isfinite(bias):
            raise UsageError(f"logit_bias must map token ids to numbers, found {token}: {bias}")
    return pairs
