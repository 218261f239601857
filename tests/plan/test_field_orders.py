"""Tables in prompts: where they are, how they are rewritten, and the order of their fields."""

from __future__ import annotations

import itertools
import random

import pytest

import sgc
from sgc.errors import SgcWarning
from sgc.passes.base import Preserves
from sgc.passes.changing.reorder_fields import find_table, reorder_fields
from sgc.passes.pipeline import run_pass
from sgc.planning.fields import (
    MAX_ORDERS,
    bounded_orders,
    fixed_order,
    group_recursion,
    order_fields,
    table_cells,
)
from sgc.planning.fields import _saved as saved

VALUES = {"a": "AAA", "b": "BBB", "c": "CCC"}


def of_text(template: str):
    """A program whose prompt is the template, {a}, {b} and {c} being its arguments."""

    @sgc.function
    def shown(s, a: str, b: str, c: str):
        s += template.format(a=a, b=b, c=c)
        s += sgc.gen("x", max_tokens=1)

    return shown.compile(check=False)


def prompt(program, scripted) -> str:
    result = program.run(**VALUES, backend=scripted())
    return "".join(run.text for run in result.requests[0].prompt)


# Each template, and its prompt with the fields in the order 2, 0, 1 (or 1, 0 where only two are).
TABLES = {
    "lines": (
        "Rate it.\nA: {a}\nB: {b}\nC: {c}\nRating:",
        "Rate it.\nC: CCC\nA: AAA\nB: BBB\nRating:",
    ),
    "labels on lines of their own": (
        "Rate.\n\nTitle:\n{a}\n\nBody:\n{b}\n\nNotes:\n{c}\n\nRating:",
        "Rate.\n\nNotes:\nCCC\n\nTitle:\nAAA\n\nBody:\nBBB\n\nRating:",
    ),
    "markup": (
        "<row>\n<a>{a}</a>\n<b>{b}</b>\n<c>{c}</c>\n</row>",
        "<row>\n<c>CCC</c>\n<a>AAA</a>\n<b>BBB</b>\n</row>",
    ),
    "json": (
        'Row:\n{{\n"a": "{a}",\n"b": "{b}",\n"c": "{c}"\n}}\nDone:',
        'Row:\n{\n"c": "CCC",\n"a": "AAA",\n"b": "BBB"\n}\nDone:',
    ),
    "commas": (
        "Is it good? name: {a}, price: {b}, shop: {c}\nAnswer:",
        "Is it good? shop: CCC, name: AAA, price: BBB\nAnswer:",
    ),
    "ends with an argument": ("Go.\nA: {a}\nB: {b}\nC: {c}", "Go.\nC: CCC\nA: AAA\nB: BBB"),
    "an argument before without a label": ("{a}\nB: {b}\nC: {c}\n", "AAA\nC: CCC\nB: BBB\n"),
    "an instruction between": (
        "A: {a}\nNow think about what follows, very carefully, and do not write more than is asked "
        "for at all.\nB: {b}\nC: {c}\nGo:",
        "A: AAA\nNow think about what follows, very carefully, and do not write more than is asked "
        "for at all.\nC: CCC\nB: BBB\nGo:",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_fields_move_with_their_labels_and_ends(name, scripted):
    template, moved = TABLES[name]
    program = of_text(template)
    table = find_table(program.graph)
    assert table is not None
    order = (2, 0, 1) if len(table.fields) == 3 else (1, 0)
    row = reorder_fields(order)
    assert row.preserves is Preserves.NOTHING
    assert prompt(program, scripted) == template.format(**VALUES)
    assert prompt(sgc.Program(run_pass(row, program.graph)), scripted) == moved


@pytest.mark.parametrize("name", TABLES)
def test_the_order_as_it_is_changes_nothing(name):
    graph = of_text(TABLES[name][0]).graph
    table = find_table(graph)
    assert table is not None
    assert run_pass(reorder_fields(tuple(range(len(table.fields)))), graph) is graph


@pytest.mark.parametrize(
    "template",
    ["{a} and {b} and {c}", "{a}\n{b}\n{c}\n", "A: {a}", "One.\nA: {a}\n\n\n{b}, {c}", "nothing"],
)
def test_prompts_that_are_no_tables(template):
    assert find_table(of_text(template).graph) is None


def test_only_what_stands_before_the_first_generation_is_a_table():
    @sgc.function
    def after(s, a: str, b: str):
        s += "Think:" + sgc.gen("x", max_tokens=1)
        s += "\nA: " + a + "\nB: " + b + "\n" + sgc.gen("y", max_tokens=1)

    assert find_table(after.compile(check=False).graph) is None


def test_a_state_that_is_used_between_fields_keeps_them_apart():
    @sgc.function
    def forked(s, a: str, b: str):
        s += "A: " + a
        child = s.fork(1)[0]
        s += "\nB: " + b + "\n" + sgc.gen("x", max_tokens=1)
        child += sgc.gen("y", max_tokens=1)

    assert find_table(forked.compile(check=False).graph) is None


# -- the order of fields ------------------------------------------------------------------------


def random_cells(seed: int, n_rows: int, n_columns: int) -> list[tuple[str, ...]]:
    draw = random.Random(seed)
    domains = [
        [f"{column}{at}".ljust(draw.randrange(2, 30), "x") for at in range(draw.randrange(1, 6))]
        for column in range(n_columns)
    ]
    return [tuple(draw.choice(domain) for domain in domains) for _ in range(n_rows)]


@pytest.mark.parametrize("seed", range(40))
def test_group_recursion_gives_each_row_all_of_its_columns(seed):
    cells = random_cells(seed, 1 + seed, 4)
    for order in group_recursion(cells, 4):
        assert sorted(order) == [0, 1, 2, 3]


def best_possible(cells) -> int:
    """What the best orders of all save, by trying all of them."""
    n_columns = len(cells[0])
    ways = [*itertools.permutations(range(n_columns))]
    return max(saved(cells, chosen) for chosen in itertools.product(ways, repeat=len(cells)))


@pytest.mark.slow
def test_group_recursion_is_near_the_best_of_all_orders_of_small_tables():
    found = best = 0
    for seed in range(60):
        cells = random_cells(seed, 4, 3)
        found += saved(cells, group_recursion(cells, 3))
        best += best_possible(cells)
    assert 0.9 * best <= found <= best


def test_group_recursion_finds_what_no_single_order_can():
    long, other = "a long text that comes again " * 3, "another one that comes again " * 3
    cells = [(long, f"{i} alone") for i in range(5)] + [(f"alone {i}", other) for i in range(5)]
    orders = group_recursion(cells, 2)
    assert orders == [(0, 1)] * 5 + [(1, 0)] * 5
    assert saved(cells, orders) >= 4 * (len(long) + len(other))
    fixed = fixed_order(cells, 2)
    assert saved(cells, [fixed] * 10) < saved(cells, orders) / 1.5


@pytest.mark.parametrize("seed", range(10))
def test_the_orders_taken_are_never_worse_than_the_prompt_as_it_is(seed):
    program = of_text("Rate.\nA: {a}\nB: {b}\nC: {c}\nGo:")
    table = find_table(program.graph)
    assert table is not None
    rows = [dict(zip("abc", cells, strict=True)) for cells in random_cells(seed, 50, 3)]
    found = order_fields(table, program.graph, rows)
    cells = table_cells(table, program.graph, rows)
    assert found.saved_after == saved(cells, found.orders)
    assert found.saved_before == saved(cells, [(0, 1, 2)] * 50) <= found.saved_after
    assert found.saved_after >= saved(cells, [fixed_order(cells, 3)] * 50)
    assert sum("rows: " in line for line in found.report()) == min(4, len(set(found.orders)))


def test_orders_are_bounded_and_rare_ones_have_the_one_for_all():
    ways = list(itertools.islice(itertools.permutations(range(6)), MAX_ORDERS + 50))
    found = bounded_orders([*ways, *ways[:10]], [ways[-1]] * (len(ways) + 10))
    assert len(set(found)) == MAX_ORDERS
    assert found[:10] == ways[:10]


class Counted(str):
    """A text that counts how often it is looked up."""

    __slots__ = ()
    n = 0

    def __hash__(self) -> int:
        Counted.n += 1
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)  # type: ignore[arg-type]


def test_group_recursion_takes_about_as_much_a_row_however_many_rows():
    costs = []
    for n in (500, 4000):
        draw = random.Random(n)
        cells = [
            tuple(Counted(f"{column} {draw.randrange(n // 5)}") for column in range(4))
            for _ in range(n)
        ]
        Counted.n = 0
        group_recursion(cells, 4)
        costs.append(Counted.n / n)
    assert costs[1] < 1.5 * costs[0]


# -- as a batch is run --------------------------------------------------------------------------


def test_a_batch_with_its_fields_reordered_asks_with_them_moved(scripted):
    program = of_text("Rate.\nA: {a}\nB: {b}\nC: {c}\nGo:")
    rows = [{"a": f"{i} is alone here", "b": "b" * (1 + i % 3), "c": "c" * 40} for i in range(12)]
    states = program.run_batch(rows, backend=scripted(), reorder_fields=True)
    for row, state in zip(rows, states, strict=True):
        text = state.text().removesuffix(state["x"])
        assert text == "Rate.\nC: {c}\nB: {b}\nA: {a}\nGo:".format(**row)


def test_a_batch_without_a_table_says_so(scripted):
    program = of_text("{a}")
    with pytest.warns(SgcWarning, match="no two labelled arguments"):
        program.run_batch([VALUES], backend=scripted(), reorder_fields=True)
