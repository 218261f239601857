"""The corpus's independent oracle, and random walks that draw outputs from a matcher.

The oracle does not use the engine: Python's `re` and `jsonschema` decide what a regex or a schema
accepts. Tests and benches of constrained decoding call it.
"""

import json
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator, ValidationError, validators
from llguidance import LLMatcher

CORPUS = Path(__file__).parent
CLOSING = (b"}", b"]", b'"', b"\n", b")", b">", b".", b"|", b"@", b":")


def regexes() -> dict[str, str]:
    """The corpus's patterns by name."""
    entries = json.loads((CORPUS / "regexes.json").read_text(encoding="utf-8"))
    return {entry["name"]: entry["pattern"] for entry in entries}


def schemas() -> dict[str, Any]:
    """The corpus's JSON schemas by name."""
    entries = json.loads((CORPUS / "schemas.json").read_text(encoding="utf-8"))
    return {entry["name"]: entry["schema"] for entry in entries}


def refusals() -> list[dict[str, Any]]:
    """The entries that llguidance refuses as they are written (README.md describes them)."""
    return json.loads((CORPUS / "refused.json").read_text(encoding="utf-8"))


def regex_holds(pattern: str, text: str) -> bool:
    """Whether the whole text matches in Python's `re`."""
    return re.fullmatch(pattern, text) is not None


def schema_holds(schema: Any, text: str) -> bool:
    """Whether the text is one strict JSON value that the schema accepts (formats ignored)."""
    return schema_complaint(schema, text) is None


def schema_complaint(schema: Any, text: str) -> str | None:
    """Why `schema_holds` is false; None if it is true."""
    try:
        value = strict_json(text)
    except ValueError as error:
        return f"not strict JSON: {error}"
    error = next(_Validator(schema).iter_errors(value), None)
    if error is None:
        return None
    return f"{error.validator} at {error.json_path}: {error.message[:160]}"


def strict_json(text: str) -> Any:
    """Parses JSON; raises ValueError for NaN, infinities and duplicate keys."""
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_pairs)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _multiple_of(
    validator: Any, divisor: float, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    # jsonschema divides floats, so 0.3 would not be a multiple of 0.1.
    if not validator.is_type(instance, "number") or abs(instance) == math.inf:
        return
    if Fraction(str(instance)) % Fraction(str(divisor)):
        yield ValidationError(f"{instance!r} is not a multiple of {divisor}")


_Validator: Any = validators.extend(Draft202012Validator, {"multipleOf": _multiple_of})


class Vocabulary:
    """A vocabulary's tokens as bytes, with tables that a walk needs to choose among them."""

    def __init__(self, tokens: Sequence[bytes], eos: int) -> None:
        self.tokens = tuple(tokens)
        self.eos = eos
        self.first_byte = np.array([token[0] if token else 256 for token in self.tokens])
        self.closing = [self.tokens.index(text) for text in CLOSING if text in self.tokens]


class Ending(Enum):
    """How a walk ended."""

    COMPLETE = auto()  # end of sequence, or the matcher stopped, while accepting
    UNFINISHED = auto()  # max_tokens ran out
    STUCK = auto()  # not accepting, and no token is allowed
    ERROR = auto()


@dataclass(frozen=True, slots=True)
class Walk:
    """The output of one random walk; `message` is the matcher's error."""

    content: bytes
    ending: Ending
    message: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether the matcher accepted the whole content."""
        return self.ending is Ending.COMPLETE


def walk(
    matcher_factory: Callable[[], LLMatcher],
    vocabulary: Vocabulary,
    rng: random.Random,
    max_tokens: int,
) -> Walk:
    """Draws one output of random allowed tokens, with a growing bias towards closing tokens."""
    matcher = matcher_factory()
    content = b""
    for n_tokens in range(max_tokens):
        if matcher.is_stopped():
            break
        allowed = _allowed_tokens(matcher)
        if matcher.is_error():
            break
        if not len(allowed):
            return Walk(content, Ending.STUCK)
        token = _choose(allowed, vocabulary, rng, n_tokens / max_tokens)
        if token == vocabulary.eos:
            return Walk(content, Ending.COMPLETE)
        if not matcher.consume_token(token):
            break
        content += vocabulary.tokens[token]
    return Walk(content, _ending(matcher), matcher.get_error())


def _ending(matcher: LLMatcher) -> Ending:
    if matcher.is_error():
        return Ending.ERROR
    return Ending.COMPLETE if matcher.is_accepting() else Ending.UNFINISHED


def _allowed_tokens(matcher: LLMatcher) -> np.ndarray:
    mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(mask, bitorder="little"))


def _choose(
    allowed: np.ndarray, vocabulary: Vocabulary, rng: random.Random, progress: float
) -> int:
    if vocabulary.eos in allowed and rng.random() < 2 * progress:
        return vocabulary.eos
    closing = [token for token in vocabulary.closing if token in allowed]
    if closing and progress > 0.5 and rng.random() < 0.8:
        return rng.choice(closing)
    if rng.random() < 0.5:
        allowed = _with_one_first_byte(allowed, vocabulary, rng)
    return int(allowed[rng.randrange(len(allowed))])


def _with_one_first_byte(
    allowed: np.ndarray, vocabulary: Vocabulary, rng: random.Random
) -> np.ndarray:
    # There are many long tokens: without this, a walk would hardly ever take a rare byte.
    first = vocabulary.first_byte[allowed]
    return allowed[first == rng.choice(np.unique(first).tolist())]
