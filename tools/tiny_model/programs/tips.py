"""Programs of tips on a topic, and of their expansion to paragraphs."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tiny_model import world as w
from tiny_model.first_hour.phrasings import head as phrased
from tiny_model.text import Text
from tiny_model.world import World

NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five"}

GENERIC_TIPS = [
    ("Start with something small", "small beginnings are easy to keep"),
    ("Ask someone who knows {t}", "good advice saves many mistakes"),
    ("Take some time for {t} every day", "what you repeat becomes easy"),
    ("Make a simple plan for {t}", "a plan shows you the next step"),
    ("Prepare what you need for {t}", "good tools make light work"),
    ("Take a break when you are tired", "a rested mind sees more"),
    ("Read a little about {t}", "others have made the mistakes before you"),
    ("Share {t} with a friend", "what is shared is more fun"),
    ("Keep a short diary of {t}", "you see what helps and what does not"),
    ("Be patient with yourself", "everything new takes time"),
    ("Do not spend too much on {t}", "care is worth more than money"),
    ("Look at how others do it", "a good example teaches quickly"),
]
GENERIC_GISTS = [
    "patience and a little practice go a long way",
    "small steps every day bring you forward",
    "a simple plan and some patience are enough",
]
DOINGS = """making repairing choosing buying collecting selling building cleaning painting sharing
storing carrying finding testing""".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Advice:
    """Tips for a topic, and the words that ask for them."""

    name: str
    gist: str
    tips: tuple[tuple[str, str], ...]


def topic(r: Random, world: World) -> Advice:
    """A topic of the world by one of its names; one time in five any other topic, with tips that
    fit any topic."""
    if r.random() < 0.8:
        t = r.choice(w.topics())
        return Advice(t.names[0] if r.random() < 0.6 else r.choice(t.names), t.gist, t.tips)
    while True:
        name = any_topic(r)
        if w.is_held_out("topic", name) == (world.split == "test"):
            break
    tips = [(tip.format(t=name), why) for tip, why in r.sample(GENERIC_TIPS, 5)]
    return Advice(name, r.choice(GENERIC_GISTS), tuple(tips))


def any_topic(r: Random) -> str:
    thing = r.choice([*w.GOODS, *w.PETS])
    return r.choice(
        [
            f"{r.choice(DOINGS)} {w.a(thing)}",
            f"{r.choice(DOINGS)} {r.choice(w.FOODS)}",
            f"visiting {w.city(r)}",
            f"living in {w.city(r)}",
            f"working as {w.a(w.job_of(r)[0])}",
            f"your first {thing}",
            r.choice(w.FOODS),
            r.choice([row[1] for row in w.rows("things")]),
        ]
    )


TIPS_HEADS = [
    "Here are {n} concise tips for {t}.\n",
    "Here are {n} concise tips for {t}.\n",
    "Here are {n} tips for {t}.\n",
    "Here are {n} tips for {t}:\n",
    "Here are {n} short tips for {t}:\n",
    "{n} tips for {t}:\n",
    "Give {n} tips for {t}.\n",
    "Tips for {t}:\n",
]
EXPAND_HEADS = [
    "Please expand the following tip into a detailed paragraph: ",
    "Please expand the following tip into a detailed paragraph: ",
    "Please expand the following tip into a paragraph: ",
    "Expand this tip into a paragraph: ",
    "Explain this tip in more detail: ",
    "Write a paragraph about this tip: ",
]
CLOSINGS = [
    "It costs little and pays back every day.",
    "Try it for a week and you will see the difference.",
    "It takes some practice, and then it becomes a habit.",
    "Many people forget this, although it is easy.",
    "Begin today, even if it is only for a few minutes.",
    "Once you are used to it, you will not want to go back.",
]


def tips_of(r: Random, world: World) -> tuple[Advice, str, list[tuple[str, str]]]:
    """A topic, a program's prompt that asks for tips, and the tips."""
    while True:
        t, head = topic(r, world), phrased(r, world, "tips", TIPS_HEADS)
        tips = r.sample(t.tips, r.choice((2, 2, 2, 3, 3, 4, 5)))
        if w.is_held_out("tips", t.name, len(tips)) == (world.split == "test"):
            return t, w.cap(head.format(n=numbered(r, len(tips)), t=t.name)), tips


def paragraph(r: Random, tip: str, why: str) -> str:
    """A tip with its reason, in at most 48 tokens."""
    start = r.choice(["{tip}, because {why}.", "{tip}, because {why}.", "{tip}. {Why}."])
    return f"{start.format(tip=tip, why=why, Why=w.cap(why))} {r.choice(CLOSINGS)}"


def numbered(r: Random, n: int) -> str:
    return str(n) if r.random() < 0.75 else NUMBERS[n]


def tips_program(r: Random, world: World) -> Text:
    """A skeleton of short tips, their expansions merged, and a summary (tip_suggestion.py)."""
    t, head, tips = tips_of(r, world)
    text = Text(r).ask(head)
    dot = r.choice([".", ""])  # a stop string may remove it
    for i, (tip, _) in enumerate(tips, 1):
        text.ask(f"{i}.").reply(f" {tip}{dot}").ask("\n")
    if r.random() < 0.7:
        for i, (tip, why) in enumerate(tips, 1):
            text.ask(f"Tip {i}: {paragraph(r, tip, why)}\n")
    if r.random() < 0.8:
        lead = r.choice(["", "", f" when it comes to {t.name},"])
        text.ask("In summary,").reply(f"{lead} {t.gist}.")
    return text.end()


def tips_at_once(r: Random, world: World) -> Text:
    """The whole list in one generation, or as a chat."""
    t, prompt, tips = tips_of(r, world)
    n = len(tips)
    lines = "\n".join(f"{i}. {tip}." for i, (tip, _) in enumerate(tips, 1))
    if r.random() < 0.5:
        if r.random() < 0.5:
            return Text(r).ask(f"{prompt}1.").reply(lines.removeprefix("1.") + "\n").end()
        return Text(r).ask(prompt).reply(lines + "\n").end()
    asked = r.choice(
        [
            "Give me {n} tips for {t}.",
            "Can you give me {n} tips for {t}?",
            "Please list {n} tips for {t}.",
            "I want {n} tips for {t}.",
        ]
    )
    question = asked.format(n=numbered(r, n), t=t.name)
    text = Text(r).turn("user", question).answer(lines)
    if r.random() < 0.4:
        i = r.randrange(n)
        nth = ["first", "second", "third", "fourth", "fifth"][i]
        text.turn("user", f"Please explain the {nth} tip.").answer(paragraph(r, *tips[i]))
    return text


def expansion(r: Random, world: World) -> Text:
    """A tip and its paragraph."""
    while True:
        (tip, why), head = r.choice(topic(r, world).tips), phrased(r, world, "expand", EXPAND_HEADS)
        if w.is_held_out("expansion", tip, head) == (world.split == "test"):
            break
    tip_text = tip + r.choice(["", "", "."])
    if r.random() < 0.2:
        return Text(r).turn("user", head + tip_text).answer(paragraph(r, tip, why))
    space = r.choice(["", " "])  # a generated tip begins with a space
    return Text(r).ask(f"{head}{space}{tip_text}\n").reply(paragraph(r, tip, why)).end()


def advice(r: Random, world: World) -> Text:
    """One tip in a chat, or a few lines about a topic."""
    t = topic(r, world)
    tip, why = r.choice(t.tips)
    if r.random() < 0.5:
        asked = r.choice(
            [
                "What should I know about {t}?",
                "Do you have advice on {t}?",
                "Tell me something about {t}.",
                "What matters in {t}?",
            ]
        )
        return (
            Text(r)
            .turn("user", asked.format(t=t.name))
            .answer(f"{w.cap(t.gist)}. {tip}, because {why}.")
        )
    asked = r.choice(["Write a short text about {t}.\n", "Write a few sentences about {t}.\n"])
    other = r.choice(t.tips)
    prose = f"{w.cap(t.gist)}. {tip}, because {why}."
    if other[0] != tip:
        prose += f" {other[0]}, because {other[1]}."
    return Text(r).ask(asked.format(t=t.name)).reply(prose).end()
