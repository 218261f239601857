"""Sums to 100: addition and subtraction with two digits, and the table of multiplication."""

# ruff: noqa: E501 (a template is a line)
from __future__ import annotations

from random import Random

from tiny_model import world as w
from tiny_model.exchange import QUESTION_CUES, QUESTION_HEADS, Exchange
from tiny_model.first_hour.phrasings import head
from tiny_model.first_hour.spin import FIRST_HOUR, phrase, spin
from tiny_model.text import Text
from tiny_model.world import World

ASKED: dict[str, tuple[str, ...]] = {
    "+": (
        "(What is|What's|How much is|Calculate|Compute|Work out|Tell me|Please calculate) {x} (+|plus) {y}(?|.)",
        "(What is|Find|Give|Tell me|Compute) the (sum|total) of {x} and {y}(?|.)",
        "(Add|Please add) {x} and {y}.",
        "{x} + {y} = ?",
        "(What do you get if you add|What does it make to add) {y} to {x}?",
        "(How much do|What do) {x} and {y} (make|give)( together|)?",
    ),
    "-": (
        "(What is|What's|How much is|Calculate|Compute|Work out|Tell me|Please calculate) {x} (-|minus) {y}(?|.)",
        "(Subtract|Take|Please subtract) {y} from {x}.",
        "(What is|How much is) {x} (less|take away) {y}?",
        "(What is|Find|Give|Compute) the difference between {x} and {y}(?|.)",
        "{x} - {y} = ?",
        "(What is left|What remains|How much is left) if you take {y} from {x}?",
    ),
    "*": (
        "(What is|What's|How much is|Calculate|Compute|Work out|Tell me|Please calculate) {x} (*|times) {y}(?|.)",
        "(Multiply|Please multiply) {x} (by|with|and) {y}.",
        "(What is|Find|Give|Compute) the product of {x} and {y}(?|.)",
        "{x} * {y} = ?",
    ),
}
ITEMS = """apples books coins cups eggs pens stamps shells cards flowers keys balls candles bottles
stones tickets photos chairs hats lemons nuts""".split()  # noqa: SIM905
PLACES = [
    "in the box",
    "on the table",
    "in the bag",
    "on the shelf",
    "in the basket",
    "in the room",
]
MORE = (
    "(gets|finds|buys|receives|picks up|is given|collects|wins) {y} more",
    "gets {y} from a friend",
)
LESS = ("(gives away|loses|sells|uses|throws away|breaks|hands out) {y}", "gives {y} to a friend")


def kind_of(sign: str, x: int, y: int) -> str:
    """The kind of combination by which a sum is held out: to 20 as in the stages before."""
    return "sum" if max(x, y) <= 20 and sign != "*" else "sum to 100"


def is_held_out(sign: str, x: int, y: int) -> bool:
    """Whether an exam may ask for a sum."""
    return w.is_held_out(kind_of(sign, x, y), sign, x, y)


def may_have(world: World, sign: str, x: int, y: int) -> bool:
    """Whether another text may have a sum: from the last stage on, training has none of the exams'."""
    return world.split == "test" or world.stage < FIRST_HOUR or not is_held_out(sign, x, y)


def drawn(r: Random, world: World) -> tuple[str, int, int, int]:
    """A sign, two numbers, and the result."""
    for _ in range(w.MAX_TRIES):
        sign = r.choice("+++--*")
        if sign == "*":
            x, y = r.randint(1, 12), r.randint(1, 12)
        else:
            x, y = sorted((r.randint(1, 99), r.randint(1, 99)), reverse=True)
        if sign == "+":
            if x + y > 100:
                x = x - y
            x, y = (x, y) if r.random() < 0.5 else (y, x)
        if min(x, y) < 1 or (x * y > 100 and sign == "*"):
            continue
        if is_held_out(sign, x, y) == (world.split == "test"):
            return sign, x, y, {"+": x + y, "-": x - y, "*": x * y}[sign]
    raise AssertionError(f"no sum is in the split {world.split!r}")


def sums_to_100(r: Random, form: Random, world: World) -> Exchange:
    sign, x, y, value = drawn(r, world)
    asked = phrase(r, world, f"sum {sign}", ASKED[sign]).format(x=x, y=y)
    instruction, (label, cue) = (
        head(form, world, "question", QUESTION_HEADS),
        form.choice(QUESTION_CUES),
    )
    return Exchange(instruction, label, asked, cue, str(value), f"{x} {sign} {y} is {value}.")


def sums_in_a_row(r: Random, world: World) -> Text:
    """Many sums in a text: calculating is hard to learn from single questions."""
    text, style, (label, cue) = Text(r), r.randrange(4), r.choice(QUESTION_CUES)
    for _ in range(r.randint(8, 16)):
        sign, x, y, value = drawn(r, world)
        if style == 0:
            text.ask(f"{x} {sign} {y} =").reply(f" {value}\n")
        elif style == 1:
            asked = r.choice(ASKED[sign][:1])
            asked = phrase(r, world, f"sum {sign}", (asked,)).format(x=x, y=y)
            text.turn("user", asked).answer(f"{x} {sign} {y} is {value}.")
        else:
            asked = phrase(r, world, f"sum {sign}", ASKED[sign]).format(x=x, y=y)
            text.ask(
                (f"{label}: " if label else "")
                + f"{asked}\n{cue}"
                + ("" if cue.endswith(" is") else ":")
            )
            text.reply(f" {value}\n")
    return text.end() if style != 1 else text


def problem(r: Random, world: World) -> tuple[str, str, int]:
    """A question in words or signs, its reasoning, and the answer."""
    sign, x, y, value = drawn(r, world)
    if sign == "*" or r.random() < 0.25:
        asked = phrase(r, world, f"sum {sign}", ASKED[sign]).format(x=x, y=y)
        return asked, f"{x} {sign} {y} = {value}.", value
    first, _, is_woman = world.name(r)
    thing, they, place = r.choice(ITEMS), "she" if is_woman else "he", r.choice(PLACES)
    is_more = sign == "+"
    does = spin(r, r.choice(MORE if is_more else LESS)).format(y=y)
    end = r.choice(["now", "in all", "then"]) if is_more else r.choice(["left", "left", "now"])
    verb = "adds" if is_more else "takes away"
    if r.random() < 0.3:
        puts = "puts in" if is_more else "takes out"
        more = " more" if is_more else ""
        question = f"There are {x} {thing} {place}. {first} {puts} {y}{more}. How many {thing} are there {end}?"
        why = f"There are {x} and {first} {verb} {y}."
    else:
        joint = r.choice([" and ", ". " + w.cap(they) + " ", ", then " + they + " "])
        has = r.choice(["has", "has", "owns", "starts with"])
        question = (
            f"{first} {has} {x} {thing}{joint}{does}. How many {thing} does {they} have {end}?"
        )
        why = f"{first} starts with {x} and {verb} {y}."
    return question, f"{why} {x} {sign} {y} = {value}.", value
