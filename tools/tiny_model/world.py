"""The closed toy world: the content of the texts, and the combinations held out of training.

All content comes from `data/` (written for this model) and from the lists here. The hash of a
*combination* (a first and a last name, a fact and its phrasing, two numbers) decides whether it is
held out, so additions do not change the split. Tasks and shapes call it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal

Split = Literal["train", "test"]
DATA = Path(__file__).resolve().parent / "data"
HELD_OUT = 10  # one combination in so many is held out
MAX_TRIES = 10_000

WOMEN = """Ada Alice Anna Bella Clara Dora Ella Emma Eva Fiona Grace Hanna Helen Ida Ines Iris Jane
Julia Karen Laura Lena Lily Lucy Mara Maria Mia Nina Nora Olga Paula Rosa Ruth Sara Sofia Tina Una
Vera Wanda Zoe""".split()  # noqa: SIM905
MEN = """Adam Anton Ben Boris Carl Daniel David Emil Eric Felix Frank Fred George Henry Hugo Ivan
Jack Jacob James John Karl Leo Lucas Mark Martin Max Noah Oscar Otto Paul Peter Quinn Robert Sam
Simon Theo Tom Victor Walter""".split()  # noqa: SIM905
LAST = """Abbott Baker Barnes Bell Black Brook Brown Carter Clark Cole Cook Cross Dale Dean Field
Fisher Ford Forest Fox Frost Gale Grant Gray Green Hall Hart Hill Holm Hunt King Lake Lane Lind Long
Marsh Meyer Mills Moor Moss North Page Park Pond Reed Rivers Rose Shaw Smith Snow Stein Stone Swan
Vale Ward Waters West White Wolf Wood Young""".split()  # noqa: SIM905
CITIES = """York Oxford Bath Leeds Bristol Dover Derby Lyon Nice Turin Milan Porto Seville Bonn
Bremen Kiel Graz Bergen Malmo Ghent Basel Bern Zurich Krakow Gdansk Riga Split Patras Kyoto Osaka
Boston Denver Austin Quebec Lima Cusco Fez Luxor Mombasa Perth Darwin Cork Galway""".split()  # noqa: SIM905
MONTHS = """January February March April May June July August September October November
December""".split()  # noqa: SIM905
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
PETS = "dog cat horse parrot rabbit hamster turtle goldfish canary pony goat hen mouse frog".split()  # noqa: SIM905
FOODS = """apples bread cheese soup rice pasta cake salad honey grapes noodles potatoes fish
chocolate pancakes tomatoes carrots cherries eggs mushrooms olives peas""".split()  # noqa: SIM905
COLORS = "red blue green yellow white black brown grey orange pink purple".split()  # noqa: SIM905
GOODS = """book lamp chair phone clock coat bag kettle knife radio camera pen cup table watch film
hotel game jacket pillow bicycle umbrella sofa keyboard guitar tent blanket mirror candle toy meal
soup song concert cake hat scarf carpet printer basket""".split()  # noqa: SIM905
TRADES = "maker seller painter tester designer collector inspector repairer".split()  # noqa: SIM905
TONES = ["kind", "calm", "cheerful", "quiet", "brave", "curious", "patient", "honest"]
ONSETS = "b br c ch d dr f g gr h j k kl l m n p pr r s sh st t th tr v w z".split()  # noqa: SIM905
NUCLEI = "a e i o u a e i o ai ea ie oo au".split()  # noqa: SIM905
CODAS = ["", "", "n", "r", "l", "s", "m", "nd", "rt", "ck", "x", "lt"]


def is_held_out(kind: str, *parts: object) -> bool:
    """Whether a combination is held out for evaluation."""
    key = "\0".join([kind, *map(str, parts)]).encode()
    return int.from_bytes(hashlib.sha256(key).digest()[:4], "big") % HELD_OUT == 0


@cache
def rows(name: str) -> tuple[tuple[str, ...], ...]:
    """The lines of a data file, split at `|`."""
    lines = (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    cut = (tuple(cell.strip() for cell in line.split("|")) for line in lines)
    return tuple(row for row in cut if row != ("",) and not row[0].startswith("#"))


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic. names: the main one first; tips: pairs of a tip and its reason."""

    names: tuple[str, ...]
    area: str
    gist: str
    tips: tuple[tuple[str, str], ...]


@cache
def topics() -> tuple[Topic, ...]:
    found: list[Topic] = []
    tips: list[tuple[str, str]] = []
    for row in reversed(rows("topics")):
        if row[0].startswith("- "):
            tips.insert(0, (row[0][2:], row[1]))
        else:
            found.insert(0, Topic(tuple(row[0].split(" / ")), row[1], row[2], tuple(tips)))
            tips = []
    return tuple(found)


@cache
def essay_lines(kind: str, dimension: str, level: str) -> tuple[str, ...]:
    """Sentences for a dimension and level. kind: "e" for an essay's, "j" for judgments."""
    return tuple(row[3] for row in rows("essays") if row[:3] == (dimension, level, kind))


@dataclass(frozen=True, slots=True)
class Person:
    first: str
    last: str
    is_woman: bool
    job: str
    does: str
    city: str
    born: tuple[int, int, int]
    pet: str
    food: str
    color: str
    phone: str

    @property
    def name(self) -> str:
        return f"{self.first} {self.last}"

    @property
    def email(self) -> str:
        return f"{self.first}.{self.last}@mail.org".lower()

    @property
    def iso(self) -> str:
        year, month, day = self.born
        return f"{year}-{month:02}-{day:02}"

    @property
    def they(self) -> str:
        return "she" if self.is_woman else "he"

    @property
    def their(self) -> str:
        return "her" if self.is_woman else "his"


@dataclass(frozen=True, slots=True)
class World:
    """Draws from the world; combinations come from one side of the split.

    stage: the stage of training (`corpus.py`); later ones have more of what is hard to learn.
    """

    split: Split = "train"
    stage: int = 0

    def pick(self, r: Random, kind: str, *options: Sequence[Any]) -> tuple[Any, ...]:
        """One item of each option, such that their combination is in this split."""
        for _ in range(MAX_TRIES):
            drawn = tuple(r.choice(option) for option in options)
            if is_held_out(kind, *drawn) == (self.split == "test"):
                return drawn
        raise AssertionError(f"no combination of {kind!r} is in the split {self.split!r}")

    def name(self, r: Random) -> tuple[str, str, bool]:
        """First and last name, and whether it is a woman's. Three in ten are invented words."""
        is_woman = r.random() < 0.5
        firsts = (WOMEN if is_woman else MEN) if r.random() < 0.7 else [word(r)]
        while True:
            lasts = LAST if r.random() < 0.7 else [word(r)]
            first, last = r.choice(firsts), r.choice(lasts)
            if is_held_out("name", first, last) == (self.split == "test"):
                return first, last, is_woman
            firsts = firsts if len(firsts) > 1 else [word(r)]

    def person(self, r: Random) -> Person:
        first, last, is_woman = self.name(r)
        job, does = job_of(r)
        return Person(
            first,
            last,
            is_woman,
            job,
            does,
            city=city(r),
            born=(r.randint(1920, 2009), r.randint(1, 12), r.randint(1, 28)),
            pet=r.choice(PETS),
            food=r.choice(FOODS),
            color=r.choice(COLORS),
            phone=f"{r.randint(100, 999)}-{r.randint(1000, 9999)}",
        )


def word(r: Random) -> str:
    """An invented name of one to three syllables."""
    n = r.choice((1, 2, 2, 2, 3))
    text = "".join(r.choice(ONSETS) + r.choice(NUCLEI) + r.choice(CODAS) for _ in range(n))
    return text.capitalize()


def city(r: Random) -> str:
    if r.random() < 0.6:
        return r.choice(CITIES)
    if r.random() < 0.3:
        return r.choice(rows("countries"))[1]
    return word(r)


def job_of(r: Random) -> tuple[str, str]:
    """A job, and what such a person does. One in eight is an invented trade."""
    if r.random() < 0.125:
        thing, trade = r.choice(GOODS), r.choice(TRADES)
        return f"{thing} {trade}", f"works as a {thing} {trade}"
    job, does, _ = r.choice(rows("people"))
    return job, does


def a(noun: str) -> str:
    """The noun with its indefinite article."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def cap(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def listed(items: Sequence[str], last: str = "and") -> str:
    """ "a, b and c"."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + f" {last} {items[-1]}"
