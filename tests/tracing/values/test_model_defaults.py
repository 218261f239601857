"""Defaults of pydantic's fields that are members of enumerations."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

import pytest
from control_flow import agree_saved
from pydantic import BaseModel, ConfigDict, ValidationError

import sgc
from sgc.errors import TraceError
from sgc.tracing.pieces.text.classes import NoClass, user_class

POOL = (
    '{"title": "x"}', '{"title": "x", "currency": "u"}', '{"title": "x", "level": 3}',
    '{"title": "x", "currency": "z", "level": 9}', '{"level": 1}', "no json",
    '{"title": "x", "kind": "b"}',
)  # fmt: skip


class Currency(str, Enum):  # noqa: UP042 (programs have it)
    EUR = "e"
    USD = "u"


class Level(IntEnum):
    LOW = 1
    HIGH = 3


class Kind(Enum):
    A = "a"
    B = "b"


class Bill(BaseModel):
    model_config = ConfigDict(validate_default=True)
    title: str
    currency: Currency = Currency.EUR
    level: Level = Level.LOW
    kind: Kind = Kind.A
    more: list[Kind] = [Kind.A, Kind.B]
    any: Any = (Kind.B, {"x": Level.HIGH})


@sgc.function
def program(s, q: str):
    s += q + sgc.gen("out")
    try:
        bill = Bill.model_validate_json(s["out"])
    except ValidationError as error:
        return str(error)
    other = Bill(title="y")
    bill.more.append(Kind.A)
    s += f"{bill} {bill.currency is Currency.EUR} {bill.level + 1} {bill.kind.name} {other}"
    return bill.model_dump(mode="json"), other == bill


def test_what_is_not_given_is_the_member():
    agree_saved(program, POOL, n=12, q="x")


class Sized(Enum):
    SMALL = "s"

    def __init__(self, letter: str):
        self.letter = letter


class Shirt(BaseModel):
    size: Any = Sized.SMALL


@sgc.function
def of_other_members(s, q: str):
    s += q + sgc.gen("out")
    s += f"{Shirt.model_validate_json(s['out'])}"


def test_members_of_other_enumerations_are_refused():
    assert user_class(Bill).uses.keys() >= {"Currency", "Level", "Kind"}
    with pytest.raises(NoClass):
        user_class(Sized)
    with pytest.raises(TraceError):
        of_other_members.compile()
