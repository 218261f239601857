"""Members of enumerations that are known only at run time: in lists that grow, in objects, as keys,
in code; they are Python's own members wherever the program reads them."""

from __future__ import annotations

from collections import Counter, defaultdict, namedtuple
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum, auto, unique

import pytest
from control_flow import agree

import sgc
from sgc.errors import TraceError
from sgc.tracing.pieces.text.classes import NoClass, user_class

POOL = ("a", "b c", "", "x\ny", "é")


class Kind(Enum):
    BUG = "bug"
    IDEA = "idea"
    OTHER = "other"
    DEFECT = "bug"  # an alias

    @property
    def label(self):
        return f"[{self.value.upper()}]"

    def is_urgent(self):
        return self is Kind.BUG

    @classmethod
    def _missing_(cls, value):
        return cls.OTHER


@unique
class Level(IntEnum):
    LOW = auto()
    MID = auto()
    HIGH = auto()


class Team(str, Enum):  # noqa: UP042
    CORE = "core"
    WEB = "web"


class Mood(StrEnum):
    GOOD = auto()
    BAD = auto()


class Made(Enum):
    A = 1

    def __init__(self, n):
        self.twice = 2 * n


class Patched(Enum):
    A = 1


Patched.twice = lambda self: 2 * self.value


@dataclass
class Ticket:
    text: str
    kind: Kind
    level: Level = Level.LOW


Row = namedtuple("Row", "name team")
ICONS = {Kind.BUG: "!", Kind.IDEA: "?", Kind.OTHER: "-"}
URGENT = {Level.MID, Level.HIGH}


def collected(s, q):
    found = []
    for text in q:
        s += text + sgc.select("k", choices=["bug", "idea", "what"])
        found.append(Ticket(text, Kind(s["k"])))
    return found


@sgc.function
def triage(s, q: str):
    found = []
    for text in q:
        s += text + sgc.select("k", choices=["bug", "what"])
        s += sgc.select("l", choices=["low", "high"])
        found.append(Ticket(text, Kind(s["k"]), Level[s["l"].upper()]))
    found.sort(key=lambda t: (-t.level, t.text))
    worst = max((t.level for t in found), default=Level.LOW)
    s += "\n".join(f"{t.kind.label} {t.level.name} {t.text}" for t in found)
    s += f"{sum(t.kind is Kind.DEFECT for t in found)} {worst.name}" + sgc.gen("z", max_tokens=2)
    if worst >= Level.MID:
        s += "page" + sgc.gen("y", max_tokens=2)


@sgc.function
def by_kind(s, q: str):
    found = collected(s, q)
    by = {k: [t.text for t in found if t.kind == k] for k in Kind}
    counts = Counter(t.kind for t in found)
    s += f"{by[Kind.BUG]} {counts[Kind.IDEA]} {counts.get(Kind.OTHER, 0)}"
    for kind, n in counts.most_common():
        s += f"{kind.name}{n}{ICONS[kind]}"
    for t in found:
        match t.kind:
            case Kind.BUG:
                s += "fix" + sgc.gen("fix", max_tokens=2)
            case _:
                s += "urgent" if t.kind.is_urgent() else "skip " + t.text


@sgc.function
def in_rows(s, q: str):
    rows, todo, moods = [], [], []
    for name in q:
        s += name + sgc.select("t", choices=["core", "web"]) + sgc.select("l", choices=["1", "3"])
        rows.append(Row(name, Team(s["t"])))
        todo.append((Level(int(s["l"])), name))
        moods.append(Mood.GOOD if s["t"] == "web" else Mood.BAD)
    s += ",".join(f"{r.name}:{r.team.value}" for r in rows) + ", ".join(moods)
    s += str([name for level, name in todo if level in URGENT]) + str(sum(n for n, _ in todo))
    s += "".join(r.name for r in rows if r.team == "core") + sgc.gen("z", max_tokens=2)
    s += f"{moods.count(Mood.BAD)} {Mood.GOOD in moods} {sorted(todo, reverse=True)}"


@sgc.function
def in_dicts(s, q: str):
    said, by = {}, defaultdict(list)
    for text in q:
        s += text + sgc.select("k", choices=["bug", "idea"])
        said[text] = Kind(s["k"])
        by[Kind(s["k"])].append(text)
    for text, kind in said.items():
        s += f"{text} is {kind.value}\n"
    s += sgc.gen("z", max_tokens=2) + str([by[kind] for kind in Kind])
    return [t for t, kind in said.items() if kind is Kind.BUG], {k.name: n for k, n in by.items()}


@sgc.function
def few(s, q: str):
    found = []
    for text in q:
        s += text + sgc.select("k", choices=["bug", "what"])
        found.append((Kind(s["k"]), text))
    by = {k: [text for kind, text in found if kind is k] for k in Kind}
    s += f"{by[Kind.BUG]} {ICONS[found[-1][0]]}" + sgc.gen("z", max_tokens=2)


def test_as_interpreted():
    agree(few, POOL, n=8, q="xyzw")


PROGRAMS = (triage, by_kind, in_rows, in_dicts)


@pytest.mark.slow
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda each: each.name)
def test_so_is_more(function):
    agree(function, POOL, q="xyzw")


@pytest.mark.slow
def test_a_member_that_leaves_the_program_is_refused():
    @sgc.function
    def program(s, q: list[str]):
        found = []
        for text in q:
            s += text + sgc.select("k", choices=["bug", "idea"])
            found.append(Kind(s["k"]))
        return found

    with pytest.raises(TraceError, match="of Kind leaves the program"):
        program.compile()


@pytest.mark.parametrize("kind", [Made, Patched])
def test_what_is_more_than_members_and_methods_is_no_code(kind):
    with pytest.raises(NoClass, match=kind.__name__):
        user_class(kind)
