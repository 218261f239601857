"""What `update` and `extend` put into a dict or list: a compiled run gives what Python gives, or
refuses a later change of what both hold."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from typing import Any

import pytest
from control_flow import agree, agree_or_refuse, equal_or_refused
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.programs.program import Program
from sgc.tracing.tracer import trace

REPLIES = ['{"a": [1]}', '{"a": [2], "b": []}', "{}", '{"c": {"d": 1}}', '{"a": 1, "c": null}']


def parsed(text: str) -> dict[str, Any]:
    return {key: value for key, value in json.loads(text).items() if key != "z"}


def flat(text: str) -> list[str]:
    return [word for word in text.split('"') if word.isalpha()]


def test_a_loop_gathers_dicts() -> None:
    @sgc.function
    def program(s, q: str):
        found: OrderedDict[str, Any] = OrderedDict()
        for _ in range(3):
            s += q + sgc.gen("a", max_tokens=9)
            new = parsed(s["a"])
            found.update(new)
            if not new:
                break
            for key, value in found.items():
                s += f"{key}={value};"
        return list(found), dict(found)

    agree(program, REPLIES, q="x")


@pytest.mark.slow
def test_a_loop_counts_words() -> None:
    @sgc.function
    def program(s, q: str):
        counts: Counter[str] = Counter()
        for _ in range(3):
            s += q + sgc.gen("a", max_tokens=9)
            words = flat(s["a"])
            counts.update(words)
            if not words:
                break
        best, n = counts.most_common(1)[0] if counts else ("", 0)
        s += f"{best} {n}"
        return dict(counts)

    agree(program, REPLIES, q="x")


def in_the_dict(found: dict[str, Any], new: dict[str, Any]) -> None:
    found["a"].append(9)


def in_what_it_got(found: dict[str, Any], new: dict[str, Any]) -> None:
    new["a"].append(9)


def at_the_top(found: dict[str, Any], new: dict[str, Any]) -> None:
    new["a"] = 9
    found["e"] = 8


@pytest.mark.parametrize("change", one_in(3, [in_the_dict, in_what_it_got, at_the_top]))
def test_what_both_hold_is_not_changed_silently(change: Any) -> None:
    @sgc.function
    def program(s, q: str):
        found: dict[str, Any] = {}
        for _ in range(2):
            s += q + sgc.gen("a", max_tokens=9)
            new = parsed(s["a"])
            found.update(new)
            if isinstance(found.get("a"), list):
                change(found, new)
                s += f"{found} {new}"
        return found

    try:
        graph = trace(program, is_full=True)
    except TraceError:
        return
    agree_or_refuse(program, Program(graph), REPLIES, n=12)


def test_an_object_of_the_programs_may_keep_the_whole() -> None:
    @sgc.function
    def program(s, q: str):
        keeper = Keeper()
        s += q + sgc.gen("a", max_tokens=9)
        words = flat(s["a"])
        keeper.update(words)
        words.append("late")
        s += ",".join(keeper.kept)
        return keeper.kept

    equal_or_refused(program, REPLIES)


class Keeper:
    def __init__(self) -> None:
        self.kept: list[str] = []

    def update(self, words: list[str]) -> None:
        self.kept = words


def the_placed(kept: dict[str, Any], value: Any) -> None:
    value["a"] = 9


def where_it_is_placed(kept: dict[str, Any], value: Any) -> None:
    kept["v0"]["a"] = 9


def beside_it(kept: dict[str, Any], value: Any) -> None:
    kept["w"] = 9


@pytest.mark.parametrize("change", one_in(3, [the_placed, where_it_is_placed, beside_it]))
def test_what_a_dict_got_by_a_key_is_not_changed_silently(change: Any) -> None:
    @sgc.function
    def program(s, q: str):
        kept: dict[str, Any] = {}
        for n in range(3):
            s += q + sgc.gen("a", max_tokens=9)
            value = json.loads(s["a"])
            kept[f"v{len(s['a']) % 2}"] = value
            if n and "v0" in kept and "a" in value:
                change(kept, value)
                s += f"{kept} {value}"
        return kept

    try:
        graph = trace(program, is_full=True)
    except TraceError:
        return
    agree_or_refuse(program, Program(graph), REPLIES, n=12)


def test_numbers_out_of_json_are_kept_by_keys() -> None:
    @sgc.function
    def program(s, q: str):
        kept: dict[str, Any] = {}
        found = []
        for _ in range(3):
            s += q + sgc.gen("a", max_tokens=9)
            value = kept.get(s["a"])
            if value is None:
                value = json.loads(s["a"]).get("a", 0.5)
                kept[s["a"]] = value
            found.append(value)
        s += f"{kept} {found}"
        return found, kept

    agree(program, REPLIES, q="x")
