"""Turns a request's constraint into a grammar of the constraint library (llguidance).

Pure functions from text to text: the server makes a request's grammar here, `sgc compile` checks
literals here, and `guides.py` compiles the result. The library is imported only to check.

Regexes are Python's (`python_regex.py`). JSON is laid out as by `json.dumps`, and an object that
lists its properties has no others, unless the schema allows them (`json_schemas.py`). Grammars are
Lark (llguidance's dialect) or EBNF, which is recognised by its `::=`. Nothing is fetched, and
everything has a bound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sgc.runtime.engine.guides import json_schemas
from sgc.runtime.engine.guides.constants import texts_of
from sgc.runtime.engine.guides.python_regex import PatternError, literal, translate
from sgc.runtime.engine.text import strict_json

MAX_REGEX_CHARS = 8 * 1024
MAX_SCHEMA_CHARS = 64 * 1024
MAX_GRAMMAR_CHARS = 16 * 1024  # outside its schemas
MAX_GRAMMAR_SCHEMAS_CHARS = 128 * 1024  # of all of them

# Limits for compiling and following one constraint; found by fuzzing, see docs/generation.md.
LIMITS: Mapping[str, int] = {
    "initial_lexer_fuel": 200_000,
    "step_lexer_fuel": 100_000,
    "step_max_items": 20_000,
    "max_items_in_row": 2_000,
    "max_lexer_states": 20_000,
    "max_grammar_size": 50_000,
}


class ConstraintError(ValueError):
    """Why nothing can be generated under a constraint."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """body: a grammar of the library, as JSON. shortest: the fewest characters a text can have."""

    body: str
    shortest: int = 0


@lru_cache(maxsize=256)
def grammar_of(field: str, text: str) -> Grammar:
    """The grammar of a constraint. field: regex, json_schema or grammar. Raises ConstraintError."""
    make, limit = _MAKERS[field]
    if len(text) > limit:
        raise ConstraintError(f"{_NAMES[field]} has {len(text)} characters, of at most {limit}")
    return make(text)


def _of_regex(text: str) -> Grammar:
    try:
        pattern = translate(text)
    except PatternError as error:
        raise ConstraintError(f"the regex {_shown(text)} {error}") from error
    return Grammar(_lark(f"start: /{pattern.translated}/"), pattern.shortest)


def _of_schema(text: str) -> Grammar:
    schema = _checked(json_schemas.read, text)
    texts = texts_of(schema)
    if texts:
        return _of_texts(texts)
    return Grammar(json.dumps({"json_schema": _checked(json_schemas.prepared, schema)}))


def _of_texts(texts: Sequence[str]) -> Grammar:
    pattern = "|".join(map(literal, texts))
    return Grammar(_lark(f"start: /{pattern}/"), min(map(len, texts)))


def _of_grammar(text: str) -> Grammar:
    own, schemas = _apart(text)
    n_own, n_schemas = sum(map(len, own)), len(text) - sum(map(len, own))
    if n_own > MAX_GRAMMAR_CHARS or n_schemas > MAX_GRAMMAR_SCHEMAS_CHARS:
        raise ConstraintError(
            f"the grammar has {n_own} characters, of at most {MAX_GRAMMAR_CHARS}, and {n_schemas} "
            f"of %json schemas, of at most {MAX_GRAMMAR_SCHEMAS_CHARS}"
        )
    for what, pattern, limit in _COSTLY:
        if sum(len(pattern.findall(part)) for part in own) > limit:
            raise ConstraintError(f"the grammar has over {limit} {what}; write a simpler one")
    if not _EBNF.search(text):
        texts = [*map(json.dumps, schemas), ""]
        return Grammar(_lark("".join(map("".join, zip(own, texts, strict=True)))))
    from llguidance.gbnf_to_lark import gbnf_to_lark

    try:
        return Grammar(_lark(gbnf_to_lark(text)))
    except Exception as error:  # it raises bare Exceptions, too
        raise ConstraintError(f"the EBNF grammar is invalid: {error}") from error


_EBNF = re.compile(r"^\s*[\w-]+\s*::=", re.MULTILINE)
# A grammar's own patterns take as long to compile as regexes do, so they are limited too.
_COSTLY = (
    ("classes such as \\w", re.compile(r"\\[wWdDsSpP]"), 200),
    ("repeats and optional parts", re.compile(r"[?*+]"), 1000),
)


def _apart(text: str) -> tuple[list[str], list[dict[str, Any]]]:
    """The grammar around its `%json` schemas, and these, checked and prepared like any schema."""
    own, schemas, at, n_patterns = [], [], 0, 0
    for found in re.finditer(r"%json\s*(?=\{)", text):
        if found.start() < at:
            continue
        try:
            schema, end = strict_json.load_at(text, found.end())
            n_patterns += json_schemas.n_pattern_chars(schema)
        except json_schemas.SchemaError as error:
            raise ConstraintError(f"a %json of the grammar {error}") from error
        except (ValueError, RecursionError) as error:
            raise ConstraintError(f"a %json of the grammar is not valid JSON: {error}") from error
        if n_patterns > json_schemas.MAX_PATTERN_CHARS:
            most = json_schemas.MAX_PATTERN_CHARS
            raise ConstraintError(f"the grammar's schemas have over {most} characters of patterns")
        own.append(text[at : found.end()])
        schemas.append(_checked(json_schemas.prepared, schema))
        at = end
    return [*own, text[at:]], schemas


def _checked(step: Callable[[Any], Any], given: Any) -> Any:
    """What a step of reading a schema makes of it; raises ConstraintError."""
    try:
        return step(given)
    except json_schemas.SchemaError as error:
        raise ConstraintError(f"the JSON schema {error}") from error


_MAKERS = {
    "regex": (_of_regex, MAX_REGEX_CHARS),
    "json_schema": (_of_schema, MAX_SCHEMA_CHARS),
    "grammar": (_of_grammar, MAX_GRAMMAR_CHARS + MAX_GRAMMAR_SCHEMAS_CHARS),
}
_NAMES = {"regex": "the regex", "json_schema": "the JSON schema", "grammar": "the grammar"}


def _lark(text: str) -> str:
    return json.dumps({"lark_grammar": text})


def composed(grammar: Grammar | None, prefix: str = "") -> str:
    """The library's input: a text of the grammar (any text, if None) after a prefix."""
    body = _lark("start: /(?s:.*)/") if grammar is None else grammar.body
    if not prefix:
        return f'{{"grammars": [{body}]}}'
    main = {"name": "main", **json.loads(body)}
    start = json.loads(_lark(f"start: PREFIX @main\nPREFIX: /{literal(prefix)}/"))
    return json.dumps({"grammars": [start, main]})


def check_constraint(field: str, text: str) -> None:
    """Raises ConstraintError for a constraint that cannot be used; field: its name in `gen`.

    Without the library nothing more is checked: the backend that runs the program decides.
    """
    if field == "stop_regex":
        check_stop(text)
        return
    try:
        grammar = composed(grammar_of("grammar" if field == "ebnf" else field, text))
        from llguidance import LLMatcher
    except ModuleNotFoundError:
        return
    is_error, messages = LLMatcher.validate_grammar_with_warnings(
        grammar, None, limits=library_limits()
    )
    if is_error:
        raise ConstraintError(f"{field} cannot be used: {first_line(messages[0])}")


def check_stop(text: str) -> None:
    """Raises ConstraintError for a stop pattern that cannot be used."""
    try:
        pattern = translate(text, is_whole=False)
    except PatternError as error:
        raise ConstraintError(f"the stop pattern {_shown(text)} {error}") from error
    if pattern.shortest == 0:
        raise ConstraintError(f"the stop pattern {_shown(text)} matches the empty text")


def library_limits() -> Any:
    from llguidance import LLParserLimits

    limits: dict[str, Any] = {**LIMITS, "verbose_errors": False}
    return LLParserLimits(**limits)


def first_line(error: str) -> str:
    """The library's reason, without the excerpt of the grammar that it prints."""
    lines = [line.strip() for line in error.strip().splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith("error:")), lines[0] if lines else "")
    return reason.removeprefix("error:").strip()[:300]


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
