"""Constant text that is itself instructions to somebody, next to words for the model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sgc.passes.changing.movement import lines, move

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches" / "movement"))

from templates import Template, prefix, program

DATA = {
    "on paper": ("Test: {x}\n\nAnswer the question on the card.", "on the card"),
    "your name": ("Sheet: {x}\n\nWrite your name in one word.", "your name"),
    "a phone": ("Call of {x}:\n\nAnswer the phone in English.", "Answer the phone"),
    "a deadline": ("Text: {x}\n\nReply to the text within ten days.", "within ten day"),
    "what instructions are": (
        "Homework: {x}\n\nWrite an essay about the sea.",
        "it may go on with the argument",
    ),
    "a label that nobody asked for": (
        "Poll: {x}\n\nAnswer every question honestly.\n\nPurpose:",
        "names nothing that is asked for",
    ),
    "a statement that begins with no": ("Law: {x}\n\nNo person shall copy the text.", "stays"),
}
FOR_THE_MODEL = {
    "on paper": "Test: {x}\n\nAnswer the question of the test.",
    "your answer": "Sheet: {x}\n\nWrite your answer in one word.",
    "a question": "Question: {x}\n\nAnswer the question in English.",
    "a deadline in the reply": "Text: {x}\n\nReply to the text. Promise help within ten days.",
    "what instructions are": "Homework: {x}\n\nWrite an essay about the homework.",
    "a label asked for": "Poll: {x}\n\nState the purpose in one sentence.\n\nPurpose:",
    "a fragment": "Law: {x}\n\nSummarize the law. No more than ten words.",
}


def moved(text: str):
    template = Template("t", (("", text),), False, (), (), (), "")
    return move(program(template))


@pytest.mark.parametrize("case", DATA)
def test_data_stays_and_the_reason_is_told(case):
    text, reason = DATA[case]
    outcome = moved(text)
    assert prefix(outcome.graph) == text.partition("{x}")[0]
    assert reason in "\n".join(lines(outcome))


@pytest.mark.parametrize("case", FOR_THE_MODEL)
def test_the_models_instructions_lead(case):
    text = FOR_THE_MODEL[case]
    instruction = text.split("\n\n")[1]
    assert prefix(moved(text).graph).startswith(instruction)
