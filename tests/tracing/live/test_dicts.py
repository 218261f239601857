"""Dicts and sets that attributes of objects have, and objects in dicts, where it is known only at
run time which they are."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
import random_objects
from control_flow import agree
from traced_at_once import live_at_once

import sgc
from sgc.tracing import tracer
from sgc.tracing.paths import exploration

REPLIES = random_objects.REPLIES


class Node:
    def __init__(self, name):
        self.name, self.links, self.count = name, [], 0

    def link(self, other):
        self.links.append(other)
        other.count += 1


class Graph:
    def __init__(self):
        self.nodes: dict[str, Node] = {}
        self.seen = set()

    def node(self, name):
        if name not in self.nodes:
            self.nodes[name] = Node(name)
        return self.nodes[name]

    def __contains__(self, name):
        return any(node.name == name for node in self.nodes.values())

    def __iter__(self):
        return iter(self.nodes.values())

    def __str__(self):
        return " ".join(f"{name}{node.count}" for name, node in self.nodes.items())


@sgc.function
def graph_of_words(s):
    graph = Graph()
    s += "words" + sgc.gen("words", stop="\n")
    for a, b in zip(s["words"].split(","), s["words"].split(",")[1:], strict=False):
        graph.node(a).link(graph.node(b))
        graph.seen.add(b)
    if graph.nodes:
        best = max(graph.nodes.values(), key=lambda node: node.count)
        best.count += 10
    shown = f"<{graph}>"
    linked = [node.name for node in graph if node.links]
    return shown, linked, "a" in graph, sorted(graph.seen), len(graph.nodes)


def test_objects_in_a_dict_by_names_known_only_at_run_time(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(graph_of_words, REPLIES, n=5)


class Quiz:
    def __init__(self, options):
        self.options, self.tries = options, 0


@sgc.function
def dicts_of_code(s):
    s += "words" + sgc.gen("words", stop="\n")
    words = s["words"].split(",")
    quizzes = [Quiz({word: len(word) for word in words})]
    quizzes.append(Quiz(dict(zip(sorted(words), range(3), strict=False))))
    quiz = quizzes[len(words) % 2]
    quiz.options["more"] = 7
    quiz.tries += 1
    for key, n in quiz.options.items():
        s += f"{key}{n + 1}"
    return [(each.tries, sum(each.options.values())) for each in quizzes]


def test_an_attribute_takes_a_dict_that_code_has_given(monkeypatch):
    """The types of its keys and values are those of the code."""
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(dicts_of_code, REPLIES, n=5)


@dataclass
class Notes:
    facts: dict[str, str] = field(default_factory=dict)
    by_topic: dict = field(default_factory=lambda: defaultdict(list))
    counts: Counter = field(default_factory=Counter)
    turns: list = field(default_factory=list)

    def note(self, key, value):
        self.facts[key] = value
        self.by_topic[key].append(value)
        self.counts[key] += 1
        self.turns.append({"key": key, "value": value})


@sgc.function
def notes(s):
    mine, yours = Notes(), Notes()
    mine.facts = yours.facts
    s += "note" + sgc.gen("note", stop="\n")
    mine.note(s["note"], "x")
    yours.note("all", s["note"])
    mine.note("b", "y")
    last = mine.turns[-1]
    last["value"] += "!"
    if s["note"] in mine.facts:
        del mine.facts[s["note"]]
    for key, value in yours.facts.items():
        s += f"{key}={value} {len(mine.by_topic[key])}"
    try:
        s += mine.facts["b"]
    except KeyError as error:
        s += f"no {error}"
    rows = [row["key"] + row["value"] for row in mine.turns]
    top = mine.counts.most_common(1)[0][0]
    return rows, top, mine.facts, sum(mine.counts.values()), yours.facts.get("a", "none")


@pytest.mark.slow
def test_dicts_that_two_objects_have_and_what_they_hold(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(notes, REPLIES, n=4)


@dataclass
class Card:
    name: str
    n: int = 0


class Player:
    def __init__(self, name):
        self.name, self.hand = name, []


@sgc.function
def cards(s):
    player = Player("p")
    s += "cards" + sgc.gen("cards", stop="\n")
    for name in s["cards"].split(","):
        player.hand.append(Card(name, len(name)))
    s += "card" + sgc.gen("card", stop="\n")
    card = Card(s["card"], 1)
    if card in player.hand:
        s += f"{player.hand.index(card)} {player.hand.count(card)}"
        player.hand.remove(card)
    del player.hand[3:]
    return [each.name for each in player.hand]


def test_objects_are_looked_for_in_lists(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(cards, REPLIES, n=5)


@sgc.function
def by_name(s):
    players: dict[str, Player] = {}
    s += "names" + sgc.gen("names", stop="\n")
    names = s["names"].split(",")
    for name in names:
        players.setdefault(name, Player(name)).hand.append(name)
    queue = [players[names[0]]]
    found = {each: players[each] for each in names}
    queue.extend(players.values())
    queue[-1].hand.append("last")
    shown = [f"{name}{len(each.hand)}" for name, each in found.items()]
    return shown, len(queue)


@pytest.mark.slow
def test_dicts_of_variables_hold_objects(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(by_name, REPLIES, n=4)


class Sheet:
    def __init__(self):
        self.rows = [["a"], ["b"]]
        self.notes = None


@sgc.function
def sheets(s):
    sheet, kept = Sheet(), []
    s += "q" + sgc.gen("g", stop="\n")
    for word in s["g"].split(","):
        kept.append(sheet.rows[0])
        sheet.rows[-1].append(word)
    if "a" in s["g"]:
        sheet.notes = ["n"]
    if sheet.notes:
        sheet.notes.append(s["g"])
    kept[-1].append("last")
    shown = ["".join(row) for row in sheet.rows]
    return shown, len(kept[0]), sheet.notes is None, sheet.rows


def test_lists_in_lists_and_those_that_are_none_at_first(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(sheets, REPLIES, n=4)


PAIRS = re.compile(r"(\w)=(\w)")


@sgc.function
def found_pairs(s):
    s += "q" + sgc.gen("g", stop="\n")
    players = [Player(a + b) for a, b in PAIRS.findall(s["g"])]
    for each in players:
        each.hand.append(s["g"])
    return [each.name for each in players]


def test_what_a_comprehension_goes_over_may_be_code(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(found_pairs, ["a=b", "a", "a=b,b=c"], n=4)


@sgc.function
def mixed(s):
    found, player = {}, Player("p")
    kept = {}
    s += "q" + sgc.gen("g", stop="\n")
    kept[s["g"]] = [1, "x"]  # as no cell can hold
    player.hand.append(s["g"])
    found["hand"] = player.hand
    return len(kept), player.hand, len(found)


def test_a_dict_of_a_variable_that_holds_anything_stays_as_it_is(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(mixed, REPLIES, n=3)


@sgc.function
def grown(s):
    own = Notes()
    s += "q" + sgc.gen("g", stop="\n")
    own.facts["a"] = "b"
    try:
        for key in own.facts:
            own.facts[s["g"]] = key
    except RuntimeError as error:
        s += str(error)
    return own.facts


def test_a_dict_that_grows_while_a_loop_goes_over_it(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(grown, REPLIES, n=4)


@sgc.function
def order_of_set(s):
    graph = Graph()
    s += "q" + sgc.gen("g", stop="\n")
    graph.seen.add(s["g"])
    for each in graph.seen:
        s += each


@sgc.function
def shared(s):
    facts = {"a": "b"}
    own = Notes(facts)
    s += "q" + sgc.gen("g", stop="\n")
    own.facts[s["g"]] = "c"
    s += str(len(facts))


@pytest.mark.parametrize("program", [order_of_set, shared], ids=lambda each: each.__name__)
def test_the_order_of_a_set_and_what_a_variable_has_too(monkeypatch, program: Any):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(program, REPLIES, n=4)


@dataclass
class Version:
    text: str
    scores: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def total(self):
        return sum(self.scores.values())


def scored(text):
    found = {}
    for word in text.split(","):
        found[word] = found.get(word, 0) + len(word)
    return found


@sgc.function
def versions(s):
    kept, own = [], {}
    for _ in sgc.turns(3):
        s += "q" + sgc.gen("g", stop="\n")
        version = Version(s["g"].strip())
        kept.append(version)
        if "b" in version.text:
            version.scores = scored(s["g"])  # what code has given
        else:
            own[s["g"]] = 1
            version.scores = own  # what a variable goes on to have
        version.scores["all"] = len(kept)
        version.notes = kept[0].notes
        version.notes.append(s["g"])
        least = min(("a", "b", "all"), key=lambda name: version.scores.get(name, 0))
        s += least
    best = max(kept, key=lambda each: each.total)
    return {
        "best": best.text,
        "all": [each.total for each in kept],
        "notes": best.notes,
        "own": len(own),
    }


@pytest.mark.slow
def test_lists_and_dicts_go_from_one_place_to_another(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(versions, REPLIES, n=5)


@dataclass
class Mail:
    text: str
    kind: str = "other"


@sgc.function
def queues_of_mails(s):
    s += "words" + sgc.gen("words", stop="\n")
    mails = [Mail(word) for word in s["words"].split(",")]
    for mail in mails:
        if "b" in mail.text:
            mail.kind = "b"
    queues = defaultdict(list)
    for mail in mails:
        queues[mail.kind].append(mail.text)
    kept = dict(queues)
    queues["b"].append("late")
    queues["new"].append("none")
    if len(mails) > 2:
        s += "alert" + sgc.gen("alert", stop="\n")
    return {"queues": dict(queues), "kept": kept, "alert": s["alert"] if len(mails) > 2 else None}


def test_a_copy_of_a_dict_has_the_same_lists(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    monkeypatch.setattr(exploration, "PATIENCE", 0)  # what is returned is widened at once
    agree(queues_of_mails, REPLIES, n=8)
