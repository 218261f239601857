"""Numbers and texts among a schema's constants are written exactly, or refused by name."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any, Literal

import pytest
from engine.generation.conftest import ByteMatcher
from pydantic import BaseModel

from sgc.runtime.engine.guides.grammar import ConstraintError, check_constraint

TWEET = 1790000000000000001
EXACT = [0, -1, 2**53, 2**53 + 2, 2**60, 0.1, -2.5, 1.0, 1e-7, 123456.789, 0.30000000000000004]
WIDE = [2**53 + 1, -(2**53) - 1, 2**63, -(2**63), -(2**64), 12345678901234567890, 10**22, 10**400]
FLOATS = [123456789.12345679, 1e22, -1e300, 5e-324, 5.6132819972877e17]


def accepts(schema: Any, text: str) -> bool:
    made = ByteMatcher("json_schema", json.dumps(schema))
    assert not made.error, made.error
    return made.accepts(text)


def plain(number: float) -> str:
    """The shortest digits of a number, without an exponent."""
    return str(int(number)) if number % 1 == 0 else format(Decimal(repr(number)), "f")


@pytest.mark.parametrize("number", EXACT)
def test_a_constant_within_a_schema_is_written_as_it_is(number: float) -> None:
    text = plain(number)
    assert accepts({"const": number}, text)
    assert accepts({"enum": ["a", {"n": [number]}]}, f'{{"n": [{text}]}}')


@pytest.mark.parametrize("number", WIDE + FLOATS)
def test_one_that_would_be_rounded_is_refused_by_name(number: float) -> None:
    named = str(number) if number != 10**400 else "a number of 401 digits"
    for schema in (
        {"properties": {"a": {"const": number}}},
        {"$defs": {"a": {"enum": [None, number]}}, "$ref": "#/$defs/a"},
        {"const": {"a": [1, number]}},
        {"enum": [[number]]},
        {"enum": [number], "minimum": 0},
    ):
        with pytest.raises(ConstraintError) as caught:
            check_constraint("json_schema", json.dumps(schema))
        assert f"has {named} among its constants" in str(caught.value)
    with pytest.raises(ConstraintError, match="among its constants"):
        check_constraint("ebnf", f"start: %json {json.dumps({'const': number})}")


@pytest.mark.parametrize("number", WIDE + FLOATS)
def test_a_schema_that_only_lists_values_has_them_exactly(number: float) -> None:
    schema = {"enum": [number, "a b", None], "title": "Ids"}
    for value in schema["enum"]:
        assert accepts(schema, json.dumps(value))
    assert accepts({"const": number}, json.dumps(number))
    assert not accepts({"const": TWEET}, str(TWEET - 1))
    assert not accepts({"const": TWEET}, f"{TWEET}0")


def test_of_the_values_listed_those_of_the_type_are_left() -> None:
    schema = {"type": "integer", "enum": [TWEET, None, True, 1.5, 100]}
    assert [v for v in schema["enum"] if accepts(schema, json.dumps(v))] == [TWEET, 100]
    schema["type"] = ["boolean", "null"]
    assert [v for v in schema["enum"] if accepts(schema, json.dumps(v))] == [None, True]
    with pytest.raises(ConstraintError, match=f"{TWEET} among its constants"):
        check_constraint("json_schema", json.dumps({"type": "string", "enum": [TWEET]}))


@pytest.mark.parametrize("text", ["\x7f", "\x01", "a\x00b"])
def test_a_listed_text_may_have_control_characters(text: str) -> None:
    assert accepts({"const": text}, json.dumps(text, ensure_ascii=False))


def test_ids_in_a_model_s_literal_are_not_rounded() -> None:
    class Found(BaseModel):
        tweet: Literal[1790000000000000001, 1790000000000000002]

    with pytest.raises(ConstraintError, match=f"{TWEET} among its constants.*make it a text"):
        check_constraint("json_schema", json.dumps(Found.model_json_schema()))


def test_whatever_number_is_taken_comes_back_as_a_double() -> None:
    draw = random.Random(7)
    taken = 0
    for _ in range(200):
        number = draw.choice(
            (
                draw.randrange(-(2**65), 2**65),
                draw.randrange(2**53, 2**63) // 4096 * 4096,
                round(draw.uniform(-1e6, 1e6), draw.randrange(12)),
                draw.uniform(-1, 1) * 10.0 ** draw.randrange(-30, 12),
            )
        )
        try:
            made = ByteMatcher("json_schema", json.dumps({"const": {"a": number}}))
        except ConstraintError:
            continue
        taken += 1
        assert made.accepts(f'{{"a": {plain(number)}}}'), number
    assert taken > 50
