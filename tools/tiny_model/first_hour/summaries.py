"""Summaries of a text, also with a limit of words, and one sentence of several notes
(`examples/map_reduce.py`)."""

# ruff: noqa: E501 (a template is a line)
from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tiny_model import world as w
from tiny_model.exchange import Exchange
from tiny_model.first_hour.phrasings import head
from tiny_model.first_hour.reviews import review
from tiny_model.first_hour.spin import phrase
from tiny_model.person_tasks import biography
from tiny_model.text import Text
from tiny_model.world import Person, World

SUMMARY_HEADS = [  # of `tasks.summary`, too
    "Summarize the text in one sentence.",
    "Write a one sentence summary of the text.",
    "Give a short summary.",
    "Sum up the following text.",
]
CUES = ["Summary", "Summary", "In short", "In one sentence", "Short version", "TL;DR", "Main point"]
LIMITS = (
    "The text in at most {n} words",
    "(The text|The text above|It|All of it|The whole|Summary|A summary|The summary)"
    " (in at most|in no more than|in|with at most|in under) {n} words",
    "(In|With) (at most |no more than |)"
    "{n} words(, the text says|, it says|, the summary is|, the main point is|)",
    "(Summarize|Summarise|Sum up|Shorten) (the|this) (text|passage|note) (in|to) (at most |no more than |){n} words",
)
LISTS = ("Notes", "(Notes|Summaries|Points|Facts|Parts|Lines|What we know|Summaries of the parts)")
WHOLES = (
    "All notes in one sentence",
    "(All notes|All of it|All points|All parts|Everything|The notes|These notes|The whole) (in one sentence|in a sentence|in short)",
    "(One sentence|A single sentence|One line) (for|about|with|that has) (all|all notes|all of it|everything|all of them)",
    "(Together|In one sentence|In sum|Summary|Summary of the notes|Summary of all)",
)

# -- news: a main sentence, and what belongs to it --

DID = """found bought sold painted lost repaired drew cleaned broke borrowed carried hid won opened
built dropped""".split()  # noqa: SIM905
PLURALS = {"knife": "knives", "scarf": "scarves", "watch": "watches"}
WHERE = ["in the market", "near the river", "at the station", "behind the school", "in the old hall",
         "on the beach", "at the harbour", "in the garden", "in {city}", "in {city}", ""]  # fmt: skip
WHEN = ["On {day} morning, ", "On {day}, ", "Last {month}, ", "Yesterday, ", "", "", "", ""]
AFTER = [
    "{They} gave it to {first}.", "It cost {n} coins.", "Many people came to see it.",
    "The newspaper wrote about it.", "Nobody had expected that.", "{They} had waited for {n} days.",
    "{First} told us about it.", "Everybody was pleased.", "It was a long day.",
    "The neighbours talked about it for a week.", "{They} showed it to {n} friends.",
    "{They} said that it was easy.", "It rained all day.", "There was cake for all.",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """A text, and its summary in a few words and in more."""

    text: str
    short: str
    long: str


def news(r: Random, world: World) -> Told:
    """Something that somebody did, with what belongs to it."""
    p, thing = world.person(r), r.choice(w.GOODS)
    if r.random() < 0.25:
        _, subjects, *did = r.choice(w.rows("areas"))
        subject, predicate = world.pick(r, "sentence", subjects.split(", "), did)
        short = main = w.cap(f"{subject} {predicate}")
    else:
        who = r.choice([
            f"{w.a(p.job)}", f"{w.a(p.job)} from {p.city}", p.name, f"the {p.job}", f"two {p.job}s",
            f"{w.a(p.pet)}",
        ])  # fmt: skip
        what = r.choice(
            [
                w.a(thing),
                f"{w.a(p.color)} {thing}",
                f"the {p.color} {thing}",
                f"{r.randint(2, 9)} {PLURALS.get(thing, thing + 's')}",
            ]
        )
        where = r.choice(WHERE).format(city=w.city(r))
        short = w.cap(f"{who} {r.choice(DID)} {what}")
        main = f"{short} {where}".strip()
    fill = {"They": w.cap(p.they), "first": p.first, "First": p.first, "n": r.randint(2, 60)}
    after = [s.format(**fill) for s in r.sample(AFTER, r.choice((0, 1, 1, 2, 2, 3)))]
    when = r.choice(WHEN).format(day=r.choice(w.DAYS), month=r.choice(w.MONTHS))
    lead = main if not when or main.startswith(p.name) else main[0].lower() + main[1:]
    return Told(" ".join([f"{when}{lead}.", *after]), f"{short}.", f"{main}.")


def told_of(r: Random, p: Person) -> Told:
    """A person."""
    fields = r.sample(["job", "city", "pet", "food"], r.choice((2, 3, 3)))
    text = biography(r, p, ["name", *fields])
    facts = {"job": f"is {w.a(p.job)}", "city": f"lives in {p.city}", "pet": f"has a {p.pet}"}
    facts["food"] = f"likes {p.food}"
    kept = [f for f in ("job", "city", "pet", "food") if f in fields]
    short = f"{p.name} {facts[kept[0]]}"
    if kept[:2] == ["job", "city"]:
        short += f" in {p.city}"
    return Told(text, f"{short}.", f"{p.name} {w.listed([facts[f] for f in kept])}.")


def opinion(r: Random, world: World) -> Told:
    label, text, thing = review(r, world)
    likes = {"positive": "likes", "negative": "does not like", "neutral": "describes"}[label]
    said = f"The writer {likes} the {thing}."
    return Told(text, said, said)


def some(r: Random, world: World) -> Told:
    kind = r.random()
    if kind < 0.1:
        fact = r.choice(w.rows("facts"))[2]
        return Told(fact, fact, fact)
    if kind < 0.5:
        return told_of(r, world.person(r))
    return news(r, world) if kind < 0.85 else opinion(r, world)


def joined(r: Random, world: World) -> Told:
    """A text of two parts, whose summary has both."""
    one, two = some(r, world), some(r, world)
    both = join([one.short, two.short])
    return Told(f"{one.text} {two.text}", both, both)


# What begins with a large letter also within a sentence, beside people's names.
PROPER = {*w.DAYS, *w.MONTHS, "Everest", "Jupiter", "Mars", "Mercury", "Saturn"}


def join(sentences: list[str]) -> str:
    """One sentence of several."""
    parts = [sentences[0].removesuffix(".")]
    for sentence in sentences[1:]:
        part = sentence.removesuffix(".")
        first, second = part.split()[:2]
        is_name = first in PROPER or (second[0].isupper() and first != "The")
        parts.append(part if is_name else part[0].lower() + part[1:])
    return w.listed(parts) + "."


def summarised(r: Random, form: Random, world: World) -> Exchange:
    """A summary in one sentence, perhaps with a limit of words."""
    is_limited, n = form.random() < 0.5, form.randint(6, 24)
    told = joined(r, world) if r.random() < 0.15 else some(r, world)
    while is_limited and len(told.short.split()) > n:
        told = some(r, world)
    reply = told.long
    if is_limited:
        reply = told.short if n < 13 or len(told.long.split()) > n else told.long
        cue = phrase(form, world, "limit", LIMITS).format(n=n)
        return Exchange("", "Text", told.text, cue, reply)
    label = form.choice(["Text", "Text", "Passage", "Article", "Note", "Message", ""])
    instruction = head(form, world, "summary", SUMMARY_HEADS)
    return Exchange(instruction, label, told.text, form.choice(CUES), reply)


def notes(r: Random, world: World) -> Text:
    """Notes and one sentence of all: the end of a map and reduce, or all of it."""
    items = [some(r, world) for _ in range(r.choice((2, 2, 3, 3, 4)))]
    shorts = [item.short for item in items]
    if r.random() < 0.35:  # all of them are people, in few words
        people = [world.person(r) for _ in items]
        shorts = [f"{p.name} is {w.a(p.job)} in {p.city}." for p in people]
        whole = [f"{people[0].name} is {w.a(people[0].job)}"]
        whole += [f"{p.name} {w.a(p.job)}" for p in people[1:]]
        one = w.listed(whole) + "."
    elif r.random() < 0.3:
        facts = [row[2] for row in r.sample(w.rows("facts"), len(items))]
        shorts, one = facts, join(facts)
    else:
        one = join(shorts)
    title, ask = phrase(r, world, "list", LISTS), phrase(r, world, "whole", WHOLES)
    lines = "\n- ".join(shorts)
    return Text(r).ask(f"{title}:\n- {lines}\n{ask}:").reply(f" {one}\n").end()
