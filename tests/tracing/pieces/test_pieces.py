"""Pieces of a program that compute with data, and are put into the graph as code."""

from __future__ import annotations

import linecache
import re
import textwrap
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from control_flow import agree

import sgc
from sgc.errors import TraceError
from sgc.tracing.code.trees import tree_of
from sgc.tracing.paths.exploration import Budget
from sgc.tracing.tracer import trace
from sgc.tracing.watch.hook import watch

REPLIES = ("yes", "no", "a=1, b=22", "7", "", "b: x\na: y", "Zoë")
WORD = re.compile(r"[a-z]+")
TABLE = {"yes": 1, "no": 0}


def pieces_of(graph: Any) -> list[str]:
    """The code of each piece."""
    return [node.text("code") for node in graph.nodes() if node.op == "evaluate"]


def refused(body: Any) -> str:
    with pytest.raises(TraceError) as error:
        trace(sgc.function(body), is_full=True)
    assert "test_pieces.py" in error.value.where
    return str(error.value)


# -- what becomes a piece --


def _fields(text: str) -> dict[str, str]:
    """A helper, as people write them."""
    found = {}
    for part in text.split(","):
        if "=" in part:
            key, value = part.split("=", 1)
            found[key.strip()] = value.strip()
    return found


def test_a_helper_that_computes_with_data_is_one_node():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a")
        found = _fields(s["a"])
        s += str(sorted(found, key=lambda key: found[key]))
        for key, value in found.items():
            s += f"{key} is {value}; "
        return found

    graph = agree(program, REPLIES, q="x")
    assert sum("def _fields" in code for code in pieces_of(graph)) == 1


@pytest.mark.slow
def test_dicts_sets_and_deques_grow_by_keys_known_only_at_run_time():
    @sgc.function
    def program(s, q: str, n_turns: int = 6):
        counts, seen, groups = {}, set(), defaultdict(list)
        for _ in range(n_turns):
            s += "?" + sgc.gen("x")
            x = s["x"].strip()
            if x in seen:
                break
            seen.add(x)
            counts[x] = counts.get(x, 0) + len(x)
            groups[len(x) % 2].append(x)
        s += f"{counts} {sorted(seen)} {dict(groups)}"
        return max(counts, key=counts.get), counts

    agree(program, REPLIES, q="x")
    sizes = {trace(program, {"n_turns": n}, is_full=True).n_nodes for n in (8, 60)}
    assert len(sizes) == 1, sizes


@pytest.mark.slow
def test_what_grows_by_known_keys_becomes_code_where_its_loop_does_not_close():
    @sgc.function
    def program(s, q: str):
        last, rows = deque(maxlen=2), {}
        for turn in range(30):
            s += "?" + sgc.gen("x")
            last.append((turn, s["x"]))
            if s["x"] == "yes":
                rows[turn] = s["x"] + "!"
            if s["x"] == "7" and turn > 2:
                break
        return list(last), rows

    assert agree(program, REPLIES, q="x", budget=Budget()).n_nodes < 300


def test_source_that_is_read_while_the_program_runs_is_no_read_of_its_own():
    linecache.clearcache()
    with watch():
        assert tree_of(__file__) is not None


def test_libraries_of_python_are_there():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a")
        words = Counter(WORD.findall(s["a"].lower()))
        s += textwrap.fill(s["a"], 4) + str(words.most_common(1))
        first, *rest = s["a"].split(",")
        s += first + str(rest)
        for c in s["a"]:
            if c.isdigit():
                s += c
        return TABLE.get(s["a"], -1), [*reversed(s["a"])]

    agree(program, REPLIES, q="x")


@dataclass
class Memory:
    facts: dict[str, str] = field(default_factory=dict)
    n: int = 0

    def note(self, line: str) -> None:
        key, _, value = line.partition("=")
        self.facts[key.strip()] = value.strip()
        self.n += 1


@sgc.function
def doubled(s, text):
    s += text + sgc.gen("twice", max_tokens=3)
    return s["twice"] + text


def test_objects_of_the_users_and_values_of_programs():
    @sgc.function
    def program(s, q: str):
        memory, found = Memory(), {}
        for _ in range(4):
            s += "?" + sgc.gen("a")
            memory.note(s["a"])
            found[s["a"]] = doubled(s["a"]).ret_value
            s += str(memory.facts)
        return memory.facts, memory.n, found

    agree(program, REPLIES, q="x")


# -- errors --


def test_an_error_of_a_piece_is_pythons():
    @sgc.function
    def program(s, q: str):
        s += "?" + sgc.gen("a")
        try:
            value = int(s["a"].split("=")[-1].split(",")[0]) / len(TABLE)
            found = {key: TABLE[key] for key in [s["a"]]}
        except KeyError as error:
            s += f"no key {error}"
        except (ValueError, IndexError) as error:
            s += type(error).__name__ + str(error)
        else:
            s += f"{value} {found}"
        return {s["a"]: 1}[s["a"]]

    agree(program, REPLIES, q="x")


def test_an_error_that_nobody_handles_ends_the_run():
    @sgc.function
    def program(s, q: str):
        s += "?" + sgc.gen("a")
        s += str({key: TABLE[key] for key in {s["a"]}})

    agree(program, REPLIES, q="x")


# -- who else holds what a piece changes --


def test_what_several_names_hold_is_not_changed():
    def program(s, q: str):
        s += "?" + sgc.gen("a")
        counts = {}
        same = counts
        counts[s["a"]] = 1
        s += str(same)

    assert "a dict is changed that is held in several places" in refused(program)


def test_a_part_of_something_is_not_changed():
    def program(s, q: str):
        s += "?" + sgc.gen("a")
        row = {"seen": set()}
        rows = [row]
        row[s["a"]] = 1
        s += str(rows)

    assert "is changed that is held in several places" in refused(program)


def test_what_a_dict_holds_is_changed_in_it():
    @sgc.function
    def program(s, q: str):
        groups = {"yes": [], "other": []}
        for _ in range(3):
            s += "?" + sgc.gen("a")
            groups.get(s["a"], groups["other"]).append(s["a"])
        s += str(groups)

    agree(program, REPLIES, q="x")


def test_an_argument_is_not_changed():
    def program(s, q: str, rows: list[str]):
        s += "?" + sgc.gen("a")
        rows.sort(key=len)
        s += str(rows)

    assert "rows, a list of others, is changed" in refused(program)


def test_a_table_of_outside_is_not_changed():
    def program(s, q: str):
        s += "?" + sgc.gen("a")
        TABLE[s["a"]] = 2
        s += str(TABLE)

    assert "is looked up in a dict or set" in refused(program)


def test_what_is_put_somewhere_is_evaluated_once_and_first():
    @sgc.function
    def program(s, q: str):
        found, order = {}, []
        for name in ("a", "b"):
            s += "?" + sgc.gen(name)
            order.append(f"{name}{len(order)}")
            found[s[name]] = doubled(s[name]).ret_value + order[-1]
        return found, order

    agree(program, REPLIES, q="x")


def test_no_pattern_becomes_code():
    @sgc.function
    def program(s, q: str):
        counts = Counter()
        for i in range(12):
            s += f"{i}?" + sgc.gen("x", max_tokens=4)
            counts[s["x"]] += 1
            match s["x"]:
                case "yes":
                    s += "Y"
                case "no":
                    s += "N"

    for work in (4_000, 20_000):  # once it is spent, data that is decided on becomes code
        trace(program, budget=Budget(work=work))


def test_a_helper_that_sets_a_variable_around_it_is_no_piece():
    @sgc.function
    def program(s, q: str):
        kinds = None

        def note(text):
            nonlocal kinds
            kinds = len({*text})

        s += q + sgc.gen("a")
        note(s["a"])
        s += f"{kinds}"
        return kinds

    agree(program, REPLIES, q="x")
