"""Lambdas of `map` and `filter` get names of their own, which nothing else in a function sets."""

from __future__ import annotations

from control_flow import agree

import sgc


@sgc.function
def longer(s, text: str):
    s += "longer? " + text + sgc.gen("n")
    return s["n"]


def louder():
    return str.upper


def test_a_lambda_of_a_test_and_another_function_in_the_block():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("xs")
        xs = s["xs"].split(",")
        kept = xs
        while any(map(lambda x: longer(x).ret_value == "yes", xs)):  # noqa: C417
            for word in map(louder(), ["a", "b"]):
                s += word
            xs = xs[1:]
        kept.append("end")
        s += str(kept) + str(xs) + sgc.gen("z")

    agree(program, ["yes", "no", "a,b"], q="a")
