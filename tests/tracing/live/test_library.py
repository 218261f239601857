"""Live objects of Python's library, managers of `with` blocks, and functions out of tables. Nothing
here relies on the trace check."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial, reduce
from typing import Any

import pytest
from control_flow import agree, replying
from traced_at_once import live_at_once

import sgc
from sgc.errors import ProgramError
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing import tracer

REPLIES = ("b", "a,bb", "", "3", "Ann  Lee", "bb,a,ccc")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)


class Store:
    def __init__(self, words: list[str]) -> None:
        self.stock = dict.fromkeys(words, 1)

    def apply(self, word: str) -> None:
        if word == "":
            raise ValueError("no word")
        self.stock[word] = self.stock.get(word, 0) + 1

    @contextmanager
    def transaction(self) -> Iterator[None]:
        before = deepcopy(self.stock)
        try:
            yield
        except ValueError:
            self.stock = before
            raise


@sgc.function
def undone(s):
    store = Store(["a", "b"])
    for word in ("x", "y"):
        s += word + sgc.gen("g", stop="\n")
        try:
            with store.transaction():
                store.apply("a")
                store.apply(s["g"])
        except ValueError as error:
            s += f"undone: {error}"
    return store.stock


@contextmanager
def counted(stats: dict[str, int], key: str) -> Iterator[None]:
    stats[key] = stats.get(key, 0) + 1
    try:
        yield
    except ValueError:
        stats["failed"] = stats.get("failed", 0) + 1


@sgc.function
def counting(s):
    stats: dict[str, int] = {}
    for word in ("x", "y"):
        s += word + sgc.gen("g", stop="\n")
        with counted(stats, s["g"]):
            s += str(int(s["g"]))
    return stats


@sgc.function
def table(s):
    rows = []
    for n in range(3):
        s += f"{n}" + sgc.gen("g", stop="\n")
        rows.append({"name": s["g"].title(), "n": n})
    with io.StringIO() as out:
        writer = csv.DictWriter(out, ["name", "n"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()


@sgc.function
def drawn(s):
    rng = random.Random(7)
    words = ["x", "y", "z"]
    for _ in range(3):
        rng.shuffle(words)
        s += words[0] + sgc.gen("g", stop="\n") + str(rng.randint(1, 6))
        if s["g"] == "b":
            words.append(rng.choice(words))
    return words, rng.random()


def squeeze(text: str) -> str:
    return " ".join(text.split())


def compose(*functions: Any) -> Any:
    return lambda x: reduce(lambda value, f: f(value), functions, x)


def cut(text: str, n: int) -> str:
    return text[:n]


CLEANERS = {"name": compose(squeeze, str.title), "city": compose(str.strip, partial(cut, n=3))}
FOLDS = {"SUM": sum, "MAX": max, "MEAN": lambda xs: sum(xs) / len(xs)}


@sgc.function
def cleaned(s):
    row: dict[str, str] = {}
    for column, clean in CLEANERS.items():
        s += column + sgc.gen("g", stop="\n")
        row[column] = clean(s["g"])
    numbers = [len(value) for value in row.values()]
    s += str(row) + sgc.select("fold", choices=["SUM", "MAX", "MEAN"])
    return row, FOLDS[s["fold"]](numbers)


@sgc.function
def of_a_type(s):
    found = []
    for _ in range(2):
        s += "n" + sgc.gen("n", dtype=int)
        found.append(int(s["n"]))
    return found


WORDS = {"short": {"b", "a"}, "long": {"ccc"}}
ASKED = {"one": (of_a_type, frozenset({"b", "3"}))}  # a part of what holds a program


@sgc.function
def in_constants(s):
    s += "q" + sgc.gen("g", stop="\n")
    given = s["g"].split(",")
    found = {name: words.issuperset(given) for name, words in WORDS.items()}
    s += str(ASKED["one"][1].issuperset(given))
    return found


def cleaned_cell(column: str, value: str) -> tuple[str, bool]:
    fixed = CLEANERS[column](value)
    return fixed, fixed == value


@sgc.function
def known_then_held(s):
    """A dict of a comprehension, which converted code has a name for too, in a list of the run."""
    kept: list[dict[str, str]] = []
    rest: list[dict[str, str]] = []
    for word in ("x", "y"):
        s += word + sgc.gen("g", stop="\n")
        both = {key: cleaned_cell(key, s["g"]) for key in CLEANERS}
        row = {key: text for key, (text, _) in both.items()}
        (kept if "b" in s["g"] else rest).append(row)
        row["name"] += "!"
    return kept, rest


@sgc.function
def functions_that_are_set_again(s):
    def shown(word: str) -> str:
        return f"<{word}>"

    found = ["a"]
    s += "q" + sgc.gen("g", stop="\n")
    if "a" in s["g"]:
        found.append(shown(s["g"]))
        shown = lambda word: f"[{word}]"  # noqa: E731
        found.append(shown(s["g"]))
    found += [word for word in s["g"].split(",") if word not in found]
    return found, shown("b")


SHORT = {"f": "France", "fr": "France", "de": "Germany"}


def read(text: str, delimiter: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


read_semicolons = partial(read, delimiter=";")


@sgc.function
def ask_country(s, value: str):
    s += value + sgc.select("country", choices=["France", "unknown"])
    return s["country"]


@sgc.function
def called_from_loops(s, table: str, fixes: bool):
    rows = read_semicolons(table) if ";" in table else read(table)
    cache: dict[str, str] = {}
    asked, clean = 0, []
    for row in rows:
        raw = (row.get("country") or "").strip()
        country = SHORT.get(raw.lower(), raw)
        if country not in SHORT.values():
            if raw not in cache:
                cache[raw] = ask_country(raw).ret_value
                asked += 1
            country = cache[raw]
        age = len(row["age"])
        if age > 3 and fixes:
            s += sgc.gen("age", dtype=int) + "."
            age = min(abs(int(s["age"])), 119)
        clean.append({"name": row["name"].strip().title(), "country": country, "age": age})
    return clean, asked


PROGRAMS = (undone, counting, table, drawn, cleaned, in_constants, known_then_held,
            functions_that_are_set_again)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_as_interpreted(program: Any) -> None:
    agree(program, REPLIES, n=8)


def test_a_call_in_a_loop_has_one_caller() -> None:
    table = "name,country,age\na,FR,31\nb,,four\nc,,1234"
    agree(called_from_loops, ("41", "-7"), n=6, table=table, fixes=True)


def test_a_type_is_given_to_a_word_as_it_is() -> None:
    agree(of_a_type, ("3", "-4", "12"), n=4)


@sgc.function
def beside_a_fork(s):
    s += "q" + sgc.gen("g", stop="\n")
    words = s["g"].split(",")
    forks = s.fork(len(words))
    try:
        for fork, word in zip(forks, words[1:], strict=False):
            fork += word + sgc.gen("a", stop="\n")
    except ValueError:
        s += "never"


def test_fewer_items_than_streams_end_a_run_past_its_handlers() -> None:
    compiled = sgc.Program(tracer.trace(beside_a_fork, is_full=True))
    with pytest.raises(ProgramError, match="beside a fork"):
        compiled.run_once({}, RunOptions(seed=1), replying(1, ("a,b",)))
