"""Code that reads a text known only at run time where no method of it is called is refused, or
becomes a piece of code that is given the text.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import ipaddress
import uuid
from collections.abc import Callable
from typing import Any

import pydantic
import pytest

import sgc
from sgc.errors import TraceError


class Item(pydantic.BaseModel):
    name: str


class Money(decimal.Decimal):
    """A class of the program's, whose objects C makes."""


class Meta(type):
    def __eq__(cls, other: object) -> bool:
        return True


class Odd(metaclass=Meta):
    def __init__(self, text: str) -> None:
        self.text = text


def test_a_class_that_cannot_be_hashed_is_called():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=2)
        s += Odd(s["a"]).text

    assert program.compile().graph.n_nodes > 3


READ: list[Callable[[Any], Any]] = [
    datetime.date.fromisoformat,
    lambda text: datetime.datetime.strptime(text, "%Y"),
    decimal.Decimal,
    Money,
    fractions.Fraction,
    uuid.UUID,
    ipaddress.ip_address,
    Item.model_validate_json,
    lambda text: Item(name=text).model_dump_json(),
    lambda text: getattr(text, text, None),
    lambda text: hasattr(str, text),
    lambda text: complex(text),
    lambda text: bytes(text, "utf-8"),
    lambda text: [*map(decimal.Decimal, [text])],
]


@pytest.mark.sweep
@pytest.mark.parametrize("read", READ, ids=range(len(READ)))
@pytest.mark.parametrize("is_abstract", [True, False], ids=["generated", "formatted"])
def test_what_reads_is_given_the_text_though_its_error_is_handled(
    read: Any, is_abstract: bool, scripted: Any
) -> None:
    """Else a program would take the error, for ever, that its marker brings about."""

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=2)
        text = s["a"].strip() if is_abstract else f"{q}-{s['a']}"
        try:
            s += f"{read(text)}"
        except Exception:
            s += "cannot be read"
        s += sgc.gen("b", max_tokens=2)

    try:
        compiled = program.compile(check=False)
    except TraceError:
        return
    for reply in ("2024-05-06", " 12.5 ", "{}", "1/3", "text"):
        options = {"q": "", "backend": scripted(lambda prompt, sampling, reply=reply: reply)}
        assert compiled.run(**options).text() == program.run(**options).text()
