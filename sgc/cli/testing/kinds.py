"""The types of assertions, in one table: what each takes, and whether an output meets it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sgc.cli.testing.cases import Assertion, Verdict
from sgc.errors import UsageError
from sgc.runtime.executor.patterns.schemas import schema_check

MAX_SHOWN = 160  # characters of an output in a reason


@dataclass(frozen=True, slots=True)
class Looked:
    """What an assertion looks at: an output, and the numbers of its run. is_unpriced: a provider
    was asked, whose prices are not known."""

    text: str
    value: Any
    seconds: float = 0.0
    tokens: int = 0
    cost_usd: float | None = None
    is_unpriced: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """needs: the kind of its value: "text", "texts", "pattern", "schema", "any" or, for a number of
    the run, "threshold"; holds: whether an output meets it; None if a judge or Python decides."""

    needs: str
    says: str
    holds: Callable[[Looked, Any, float | None], bool] | None = None

    def problem(self, value: Any, threshold: float | None, is_negated: bool) -> str:
        """What is wrong with a value and a threshold; "" if nothing is."""
        if self.needs == "threshold":
            if is_negated:
                return "a type with a threshold has no not-"
            return "" if threshold is not None else "expected a threshold"
        return _PROBLEMS[self.needs](value)

    def of_text(self, text: str) -> Any:
        """The value in a cell of a CSV file."""
        if self.needs == "texts":
            return [part.strip() for part in text.split(",")]
        return json.loads(text) if self.needs == "schema" and text else text


def judged(assertion: Assertion, looked: Looked) -> Verdict:
    """Whether an assertion of this table holds."""
    kind = KINDS[assertion.type]
    assert kind.holds is not None
    holds = kind.holds(looked, assertion.value, assertion.threshold)
    if holds is not assertion.is_negated:
        return Verdict(assertion, True, score=1.0)
    if kind.needs == "threshold":
        return Verdict(assertion, False, _over(assertion, looked))
    no = "not " if assertion.is_negated else ""
    value = "" if assertion.value is None else " " + shown(assertion.value)
    return Verdict(assertion, False, f"expected {no}{kind.says}{value}, found {shown(looked.text)}")


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def _over(assertion: Assertion, looked: Looked) -> str:
    most = assertion.threshold
    if assertion.type == "latency":
        return f"expected at most {most:g} ms, took {looked.seconds * 1000:.0f} ms"
    if assertion.type == "cost" and looked.is_unpriced:
        return f"expected at most ${most:g}, the cost is not known: give --prices FILE"
    if assertion.type == "cost":
        return f"expected at most ${most:g}, cost ${looked.cost_usd or 0:.6g}"
    return f"expected at most {most:g} tokens, used {looked.tokens}"


def _equals(looked: Looked, value: Any, _: float | None) -> bool:
    if isinstance(value, str):
        return looked.text == value
    found = looked.value if not isinstance(looked.value, str) else parsed(looked.text)
    return (type(found) is type(value) and bool(found == value)) or (
        isinstance(found, int | float) and isinstance(value, int | float)
        and not isinstance(found, bool) and not isinstance(value, bool) and found == value
    )  # fmt: skip


class _NoJson:
    """The parsed value of a text that is not JSON; equal to nothing."""


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NoJson()


def _fits(text: str, schema: Any) -> bool:
    """Whether a text is JSON that meets a schema, if there is one."""
    if schema is None:
        return not isinstance(parsed(text), _NoJson)
    return schema_check(json.dumps(schema))(text)


def _objects(text: str) -> Iterator[str]:
    """The JSON objects and lists in a text, and those in them, as texts."""
    decoder, at = json.JSONDecoder(), 0
    while starts := [n for n in (text.find("{", at), text.find("[", at)) if n >= 0]:
        at = min(starts)
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            yield text[at:end]
            yield from map(json.dumps, _inner(found))
            at = end


def _inner(value: Any) -> Iterator[Any]:
    """The objects and lists in a value, at any depth."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        for part in each.values() if isinstance(each, dict) else each:
            if isinstance(part, dict | list):
                yield part
                waiting.append(part)


def _matches(looked: Looked, pattern: str, _: float | None) -> bool:
    import re2

    return re2.search(pattern, looked.text) is not None


def _all_of(looked: Looked, values: list[str], _: float | None) -> bool:
    return all(value in looked.text for value in values)


def _folded(holds: Callable[[Looked, Any, float | None], bool]) -> Any:
    """The same test without regard to case."""

    def fold(value: Any) -> Any:
        return [each.casefold() for each in value] if isinstance(value, list) else value.casefold()

    return lambda looked, value, threshold: holds(
        Looked(looked.text.casefold(), looked.value), fold(value), threshold
    )


def _any_of(looked: Looked, values: list[str], _: float | None) -> bool:
    return any(value in looked.text for value in values)


KINDS: Mapping[str, Kind] = {
    "equals": Kind("any", "to equal", _equals),
    "contains": Kind("text", "to contain", lambda o, value, _: value in o.text),
    "contains-any": Kind("texts", "to contain any of", _any_of),
    "contains-all": Kind("texts", "to contain all of", _all_of),
    "icontains": Kind("text", "to contain, in any case,", _folded(lambda o, v, _: v in o.text)),
    "icontains-any": Kind("texts", "to contain, in any case, any of", _folded(_any_of)),
    "icontains-all": Kind("texts", "to contain, in any case, all of", _folded(_all_of)),
    "starts-with": Kind("text", "to start with", lambda o, value, _: o.text.startswith(value)),
    "ends-with": Kind("text", "to end with", lambda o, value, _: o.text.endswith(value)),
    "regex": Kind("pattern", "to match", _matches),
    "is-json": Kind("schema", "JSON that fits", lambda o, s, _: _fits(o.text, s)),
    "contains-json": Kind(
        "schema", "JSON in it that fits", lambda o, s, _: any(_fits(j, s) for j in _objects(o.text))
    ),
    "cost": Kind(
        "threshold", "", lambda o, _, most: not o.is_unpriced and (o.cost_usd or 0) <= (most or 0)
    ),
    "latency": Kind("threshold", "", lambda o, _, most: o.seconds * 1000 <= (most or 0)),
    "tokens": Kind("threshold", "", lambda o, _, most: o.tokens <= (most or 0)),
    "llm-rubric": Kind("text", "that a judge finds"),
    "python": Kind("text", "that Python finds"),
}
UNOFFERED = {
    "javascript": "JavaScript is not run here; python calls a function of --asserts FILE.py",
    "similar": "embeddings are not compared here; llm-rubric asks a judge",
    "model-graded-closedqa": "llm-rubric asks a judge",
    "factuality": "llm-rubric asks a judge",
    "webhook": "nothing is sent anywhere; python calls a function of --asserts FILE.py",
    "g-eval": "llm-rubric asks a judge",
}


def _is_text(value: Any) -> str:
    return "" if isinstance(value, str) and value else f"expected a text as value, found {value!r}"


def _are_texts(value: Any) -> str:
    is_list = isinstance(value, list) and value and all(isinstance(each, str) for each in value)
    return "" if is_list else f"expected a list of texts as value, found {value!r}"


def _is_pattern(value: Any) -> str:
    if _is_text(value):
        return _is_text(value)
    import re2

    try:
        re2.compile(value)
    except re2.error as error:
        return f"{value!r} is no pattern of RE2: {error}"
    return ""


def _is_schema(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, dict | bool):
        return f"expected a JSON schema as value, found {value!r}"
    try:
        schema_check(json.dumps(value))
    except UsageError as error:
        return f"{error.message}{f' ({error.hint})' if error.hint else ''}"
    return ""


_PROBLEMS: Mapping[str, Callable[[Any], str]] = {
    "any": lambda value: "expected a value" if value is None else "",
    "text": _is_text,
    "texts": _are_texts,
    "pattern": _is_pattern,
    "schema": _is_schema,
}
