"""Values out of JSON as arguments of methods of texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from control_flow import agree_saved

import sgc

POOL = (
    '{"a":"x","b":"y"} axbx', '{"a":1,"b":"y"} axbx', '{"a":null,"b":"y"} axbx',
    '{"a":["x"],"b":"y"} axbx', '{"a":"x","b":null} axbx', '{"a":"","b":"y"} axbx',
    '{"a":true,"b":1.5} axbx', '{"a":{},"b":1.5} axbx', '{"b":""}', '{"a":"b","b":"bb"} a b',
)  # fmt: skip


def replaced(s, data, text):
    return text.replace(data["a"], data["b"])


def asks_between(s, data, text):
    for key in ("a", "b"):
        text = text.replace(named(s, data[key]), key * 3)
    return text


def named(s, value):
    s += "." + sgc.gen("z", max_tokens=2)
    return value


def asked_of_all(s, data, text):
    x = data["a"]
    s += sgc.gen("z", max_tokens=2)
    found = [text.startswith(x), text.split(x), text.count(x), text.removeprefix(x)]
    s += f"{found}"
    return found, text.strip(x), text.partition(x)


def handled(s, data, text):
    try:
        s += "."
        found = text.index(named(s, data["a"]))
        s += "."
    except (TypeError, ValueError, KeyError) as error:
        found = str(error)
    return found


def by_name(s, data, text):
    return text.split(sep=named(s, data["a"])), text.replace("x", named(s, data["b"]))


def numbers(s, data, text):
    return text.ljust(data["a"]), text.split(",", data["a"])


def program(body: Callable[..., Any]) -> Any:
    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        data, _, text = s["a"].rpartition(" ")
        found = body(s, json.loads(data or s["a"]), text)
        s += f"{found}" + sgc.gen("b", max_tokens=3)
        return found

    return shown


BODIES = (replaced, asks_between, asked_of_all, handled, by_name, numbers)


@pytest.mark.sweep
@pytest.mark.parametrize("body", BODIES)
def test_they_are_texts_or_pythons_error_is_raised(body: Callable[..., Any]) -> None:
    agree_saved(program(body), POOL, n=24, q="x")
