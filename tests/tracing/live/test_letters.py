"""Loops over the letters of a text: code goes over them, as blocks would take too long."""

from __future__ import annotations

from control_flow import agree

import sgc
from sgc.tracing.checking.check import check_trace
from sgc.tracing.tracer import trace


def shown(word, guessed):
    result = ""
    for letter in word:
        if letter in guessed:
            result = result + letter + " "
        else:
            result = result + "_ "
    return result


@sgc.function
def guessing(s, word: str):
    guessed = []
    while len(guessed) < 4:
        s += shown(word, guessed) + sgc.gen("letter", max_tokens=1)
        guessed.append(s["letter"])


def test_letters_of_a_text_are_gone_over_by_code():
    graph = trace(guessing)
    assert any(node.op == "perform" for node in graph.nodes())
    check_trace(guessing, graph, {})
    agree(guessing, ("e", "t", "a"), word="tea")
