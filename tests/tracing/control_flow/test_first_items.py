"""`next` of a generator that asks something, with a default: a loop that its first item ends."""

from __future__ import annotations

from typing import Any

from control_flow import agree, agree_saved

import sgc
from sgc.tracing.tracer import trace

REPLIES = ("yes", "no", "a b c", "", "b no yes")


@sgc.tool(effect="pure")
def fault(text: str) -> str:
    if text == "b":
        raise ValueError("b is no word")
    return "" if text.startswith("y") else f"{text} is wrong"


@sgc.function
def ask(s, text: str):
    s += text + sgc.gen("x", max_tokens=4)
    return s["x"]


def whole(program: Any, **arguments: Any) -> None:
    agree_saved(program, REPLIES, n=12, **arguments)


def test_the_first_text_that_a_tool_accepts():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        tidy = [each.strip() for each in s["x"].split()]
        try:
            first = next((each for each in tidy if not fault(each)), tidy[0])
        except (IndexError, ValueError) as error:
            first = type(error).__name__
        s += first + sgc.gen("z")

    agree(program, REPLIES, n=16, q="x", tools=[fault])


def test_a_program_asks_for_each_until_one_fits():
    @sgc.function
    def program(s, words: list[str]):
        n = len(words)
        found = next((f"{each}{n}" for each in words if ask(each).ret_value == "yes"), "none")
        s += found + sgc.gen("z")

    for words in ([], ["a"], ["a", "b", "c", "d"]):
        whole(program, words=words)


def test_the_default_is_evaluated_before_the_items():
    @sgc.function
    def program(s, words: list[str]):
        s += next((each for each in words if ask(each).ret_value == "yes"), ask("d").ret_value)
        s += sgc.gen("z")

    for words in ([], ["a", "b"]):
        whole(program, words=words)


def test_a_default_of_none_and_a_known_list():
    @sgc.function
    def program(s, words: list[str]):
        found = next((each for each in words if ask(each).ret_value == "yes"), None)
        known = next((each for each in ["u", "v"] if ask(each).ret_value == "yes"), None)
        s += f"{found} {known}" + sgc.gen("z")
        return found is None, known

    for words in ([], ["a", "b"]):
        whole(program, words=words)


def test_a_function_of_the_programs_that_is_called_next():
    def next(items: Any, default: str) -> str:
        return "|".join([*items, default])

    @sgc.function
    def program(s, words: list[str]):
        s += next((each for each in ["u", "v"] if ask(each).ret_value == "yes"), "d")
        s += sgc.gen("z")

    whole(program, words=[])


def test_what_asks_nothing_stays_one_piece_of_code():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        s += next((each for each in s["x"].split() if len(each) > 1), "none") + sgc.gen("z")

    assert trace(program, is_full=True).n_nodes < 14
    whole(program, q="x")
