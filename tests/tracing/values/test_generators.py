"""Generators of random numbers that a program makes with a seed: draws on paths that meet, and
draws that depend on values known only at run time."""

from __future__ import annotations

import random
from random import Random

import pytest
from control_flow import agree
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.ir.graph import Graph

POOL = ("a", "b, c", "a,b,c,d", "3", "1", "", "yes", "[1, 2]")
WORDS = ["one", "two", "three"]
PAIRS = [("a", 1), ("b", 2), ("c", 3)]
LEVELS = (0, 2)


@sgc.function
def in_a_branch(s, q: str):
    rng = random.Random(7)
    for _ in range(6):
        s += q + sgc.gen("a", max_tokens=4)
        if "a" in s["a"]:
            s += rng.choice(WORDS)
        elif s["a"]:
            s += f"{rng.random():.3f}"
    s += str(rng.randint(1, 100))


@sgc.function
def as_long_as_asked(s, q: str, rounds: int = 4):
    rng = Random("seed")
    for i in range(rounds):
        first, second = rng.sample(WORDS, 2)
        s += f"{first} {second} {rng.uniform(0, i):.4f} " + sgc.gen("a", max_tokens=4)
        name, number = rng.choice(PAIRS)
        s += f"{name}{number + 1}"
    s += rng.choices(WORDS, weights=[1, 2, 3])[0] + rng.choices("xyz", k=2)[1]


@sgc.function
def of_a_seed(s, q: str, seed: int = 3):
    rng = random.Random(seed)
    items = [*WORDS]
    rng.shuffle(items)
    s += ",".join(items) + sgc.gen("a", max_tokens=4)
    if "a" in s["a"]:
        rng.shuffle(items)
        s += items[0]
    s += str(rng.randrange(0, 10, 2)) + f"{rng.gauss(0, 1):.4f}{rng.gauss(0, 1):.4f}"
    s += str(rng.getrandbits(8))


@sgc.function
def from_the_reply(s, q: str):
    rng = random.Random(s_seed(q))
    s += sgc.gen("a", max_tokens=4)
    parts = s["a"].split(",")
    s += rng.choice(parts)
    rng.shuffle(parts)
    s += "|".join(parts) + str(rng.randint(0, len(parts)))
    s += "+".join(rng.sample(parts, len(parts)))


def s_seed(q):
    return len(q)


@sgc.function
def caught(s, q: str):
    rng = random.Random(1)
    for _ in range(4):
        s += q + sgc.gen("a", max_tokens=4)
        try:
            s += str(rng.randint(5, int(s["a"])))
        except ValueError as error:
            s += f"({error})" + rng.choice("ab")
    try:
        rng.choice([])
    except IndexError as error:
        s += str(error)


class Player:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.moves = []

    def move(self, theirs):
        self.moves.append(theirs)
        return theirs if self.rng.random() < 0.5 else self.rng.choice(["rock", "paper"])


@sgc.function
def held_by_objects(s, q: str, rounds: int = 5):
    players = [Player(1), Player(2)]
    both = players[0].rng
    for _ in range(rounds):
        s += sgc.gen("a", max_tokens=4)
        for player in players:
            s += player.move(s["a"]) + " "
        if "a" in s["a"]:
            s += str(both.randint(0, 9))
    s += str(players[0].rng.randint(0, 99)) + str(len(players[1].moves))


@sgc.function
def helper(s, rng):
    s += sgc.gen("h", max_tokens=4) + rng.choice(WORDS)
    return rng.random() < 0.5


@sgc.function
def given_to_helpers(s, q: str):
    rng = random.Random(5)
    n = 0
    while n < 5:
        n += 1
        s += q
        if helper(rng).ret_value:
            s += sgc.gen("a", max_tokens=4)
        picks = [rng.randint(0, 9) for _ in range(2)]
        s += str(sum(picks))
        if s["a"] == "yes" if "a" in s else False:
            break
    isinstance(rng, random.Random)
    s += f"{n} {isinstance(rng, Random)} {type(rng) is Random}"


@sgc.function
def seeded_again(s, q: str):
    rng = random.Random(5)
    for turn in range(5):
        s += sgc.gen("a", max_tokens=4)
        if "," in s["a"]:
            rng.seed(turn)
        s += str(rng.betavariate(1 + turn, 2))[:5]


@sgc.function
def of_a_long_list(s, q: str, seed: int = 2):
    deck = [f"{n}" for n in range(1, 14)] * 4
    random.Random(seed).shuffle(deck)
    cards = iter(deck)
    hand = [next(cards), next(cards)]
    for _ in range(8):
        s += q + ",".join(hand) + sgc.gen("a", max_tokens=4)
        if "a" not in s["a"] or sum(map(int, hand)) > 40:
            break
        hand.append(next(cards))
    s += f"{len(hand)} {deck[:3]}"


@sgc.function
def in_a_key(s, q: str):
    rng = random.Random(3)
    s += q + sgc.gen("a", max_tokens=9)
    order = sorted(s["a"].split(","), key=lambda _: rng.random())
    s += " ".join(order) + sgc.gen("b", max_tokens=4)
    best = max(s["b"].split(","), key=lambda word: (len(word), rng.random()))
    s += f"{best} {rng.randint(0, 9)}"
    return order


PROGRAMS = (
    of_a_long_list, in_a_key,
    in_a_branch, as_long_as_asked, of_a_seed, from_the_reply, caught, held_by_objects,
    given_to_helpers, seeded_again,
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda each: each.name)
def test_as_interpreted(function):
    agree(function, POOL, n=16, levels=LEVELS, q="x")


def n_nodes(graph: Graph) -> int:
    return sum(len(block.nodes) for block in graph.blocks)


def test_a_loop_that_draws_is_a_loop():
    graph = agree(as_long_as_asked, POOL, levels=LEVELS, q="x")
    for rounds in (1, 9):
        agree(as_long_as_asked, POOL, n=6, levels=LEVELS, graph=graph, q="x", rounds=rounds)
    assert n_nodes(graph) < 150


def test_what_is_drawn_before_anything_is_decided_stays_known():
    @sgc.function
    def program(s, q: str):
        rng = random.Random(7)
        examples = [*WORDS]
        rng.shuffle(examples)
        s += ",".join(examples) + q
        for child in s.fork(rng.randint(2, 4)):
            child += sgc.gen("a", max_tokens=4)

    assert "evaluate" not in {
        node.op for block in agree(program, POOL, q="x").blocks for node in block.nodes
    }


@pytest.mark.parametrize("use", one_in(3, [
    "s += str(rng)", "s += f'{rng}'", "return rng", "s['x'] = rng", "rng.getstate()",
    "rng.seed(None)", "rng.randbytes(3)", "s += str(rng.sample(PAIRS, len(s['a'])))", "hash(rng)",
]))  # fmt: skip
def test_what_no_value_of_a_graph_does_is_refused(use, tmp_path):
    source = f"""
import random
import sgc

PAIRS = [("a", 1), ("b", 2)]

@sgc.function
def program(s, q: str):
    rng = random.Random(len(q))
    s += q + sgc.gen("a", max_tokens=9)
    {use}
"""
    path = tmp_path / "drawing_program.py"
    path.write_text(source)
    from sgc.cli.programs.source import load_function

    with pytest.raises(TraceError, match=r"drawing_program.py:\d+"):
        load_function(str(path)).compile()
