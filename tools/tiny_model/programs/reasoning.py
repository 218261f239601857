"""Programs that reason step by step, then answer."""

from __future__ import annotations

from random import Random

from tiny_model.first_hour import sums
from tiny_model.first_hour.phrasings import head as phrased
from tiny_model.first_hour.spin import FIRST_HOUR
from tiny_model.text import Text
from tiny_model.world import World

ITEMS = "apples books coins cups eggs pens stamps shells cards flowers".split()  # noqa: SIM905


def small_sum(r: Random, world: World) -> tuple[str, int, int]:
    while True:
        sign, x, y = world.pick(r, "sum", "+-", range(1, 21), range(1, 21))
        x, y = (max(x, y), min(x, y)) if sign == "-" else (x, y)
        if sums.may_have(world, sign, x, y):
            return sign, x, y


def word_problem(r: Random, world: World) -> tuple[str, str, int]:
    """A question, its reasoning, and the answer."""
    if world.stage >= FIRST_HOUR and r.random() < 0.7:
        return sums.problem(r, world)
    sign, x, y = small_sum(r, world)
    first, _, is_woman = world.name(r)
    thing, they = r.choice(ITEMS), "she" if is_woman else "he"
    if sign == "+":
        more = r.choice(["gets {y} more", "finds {y} more", "buys {y} more"]).format(y=y)
        question = f"{first} has {x} {thing} and {more}. How many {thing} does {they} have now?"
        why = f"{first} starts with {x} and adds {y}. {x} + {y} = {x + y}."
        return question, why, x + y
    less = r.choice(["gives away {y}", "loses {y}", "sells {y}"]).format(y=y)
    question = f"{first} has {x} {thing} and {less}. How many {thing} does {they} have left?"
    return question, f"{first} starts with {x} and takes away {y}. {x} - {y} = {x - y}.", x - y


STEP_CUES = ["Let's think step by step.", "Let us think step by step.", "Reasoning:", "Thought:"]
ANSWER_CUES = ["The answer is", "Answer:", "So the answer is", "Therefore, the answer is"]


def reason(r: Random, world: World) -> Text:
    """Reasoning, then the answer; with or without solved examples."""
    text = Text(r)
    think = phrased(r, world, "steps", STEP_CUES)
    answer = phrased(r, world, "answer", ANSWER_CUES)
    label, reply_label = r.choice(
        [("Question: ", "Answer: "), ("Q: ", "A: "), ("Q: ", ""), ("", "")]
    )
    if r.random() < 0.4:
        text.ask(r.choice(["Solve the problem.\n", "Answer the question step by step.\n"]))
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        question, why, value = word_problem(r, world)
        gap = "\n" if r.random() < 0.8 else " "
        text.ask(f"{label}{question}\n{reply_label}{think}").reply(f" {why}\n")
        text.ask(f"{answer}").reply(f" {value}.\n").ask("\n" if gap == "\n" else "")
    return text.end()


def reason_chat(r: Random, world: World) -> Text:
    question, why, value = word_problem(r, world)
    text = Text(r)
    if r.random() < 0.3:
        text.turn("system", "Think step by step, then give the answer.")
    if r.random() < 0.4:
        return text.turn("user", f"{question} Answer with a number.").answer(str(value))
    return text.turn("user", question).answer(f"{why} The answer is {value}.")
