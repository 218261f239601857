"""Programs whose data are live objects: all that have one see its changes, as in Python."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pytest
from control_flow import agree, agree_saved
from traced_at_once import live_at_once

import sgc
from sgc.errors import SgcError, TraceError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.tracing import tracer
from sgc.tracing.tracer import trace

REPLIES = ("yes", "no", "a b c", "3", '{"a": [{"n": 1}, {"n": 2}]}')
TABLE = [{"a": 1}, {"a": 1}, {"a": 2}]


@pytest.fixture(autouse=True)
def _alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)


def test_rows_out_of_json_change_where_they_are() -> None:
    import json

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("out", max_tokens=9)
        try:
            data = json.loads(s["out"])
        except ValueError as e:
            s += f"bad: {e}" + sgc.gen("why", max_tokens=3)
            return None
        for item in data["a"] if isinstance(data, dict) else []:
            s += f"{item['n']}?" + sgc.gen("x", max_tokens=3)
            item["x"] = s["x"]
            item.setdefault("seen", []).append(s["x"])
        return data

    assert agree_saved(program, REPLIES, 12, q="x").n_nodes < 60


def test_loops_close_at_once() -> None:
    @sgc.function
    def program(s, q: str):
        seen, text, best = [], "", None
        for n in range(50):
            s += f"{n}?" + sgc.gen("x", max_tokens=3)
            text += s["x"]
            seen.append({"x": s["x"], "n": n})
            if best is None or len(s["x"]) > len(best["x"]):
                best = seen[-1]
            if s["x"] == "yes":
                break
        best["best"] = True
        return seen, text, best is seen[0]

    assert agree(program, REPLIES, q="x").n_nodes < 60


@dataclass
class Node:
    name: str
    kids: list[Node] = field(default_factory=list)
    notes: deque = field(default_factory=lambda: deque(maxlen=2))

    def add(self, name: str) -> Node:
        self.kids.append(Node(name))
        return self.kids[-1]

    def ask(self, s: Any) -> str:
        s += f"{self.name}?" + sgc.gen("x", max_tokens=3)
        self.notes.append(s["x"])
        return s["x"]

    def size(self) -> int:
        return 1 + sum(each.size() for each in self.kids)


def test_methods_that_ask_are_traced() -> None:
    @sgc.function
    def program(s, q: str):
        root = Node(q)
        queue = deque([root])
        while queue and root.size() < 5:
            node = queue.popleft()
            if node.ask(s) != "no":
                for word in s["x"].split():
                    queue.append(node.add(word))
        return root.size(), [each.name for each in root.kids], list(root.notes)

    agree(program, REPLIES, q="x")


def test_a_function_inside_another_calls_itself() -> None:
    @sgc.function
    def program(s, q: str):
        tree = {0: []}
        for n in (1, 2, 3):
            s += f"{n}?" + sgc.gen("x", max_tokens=3)
            tree.setdefault(0 if s["x"] == "yes" else n - 1, []).append(n)
            tree.setdefault(n, [])

        def depth(n):
            return 1 + max((depth(each) for each in tree[n]), default=0)

        s += str(depth(0))
        return tree

    agree(program, REPLIES, q="x")


def test_equal_constants_are_not_the_same() -> None:
    @sgc.function
    def program(s, q: str):
        best = TABLE[0]
        for row in [dict(each) for each in TABLE]:
            s += f"{row['a']}" + sgc.gen("x", max_tokens=3)
            if s["x"] == "yes":
                best = TABLE[1]
        others = [each for each in TABLE if each is not best]
        return len(others), best is TABLE[0], best is TABLE[1]

    agree(program, REPLIES, q="x")


def test_match_looks_into_live_objects() -> None:
    @sgc.function
    def program(s, q: str):
        rows = [{"kind": "a", "v": [1, 2]}, {"kind": "b"}, ["go", "to", q], Node(q), None]
        found = []
        for row in rows:
            s += "?" + sgc.gen("x", max_tokens=3)
            match row:
                case {"kind": "a", "v": [first, *rest]}:
                    s += f"{first}{rest}" + sgc.gen("y", max_tokens=2)
                    found.append(first)
                case {"kind": kind}:
                    found.append(kind + s["x"])
                case ["go", *words] if s["x"] == "yes":
                    found += words
                case Node(name=name):
                    s += name
                case None | [*_]:
                    found.append(0)
        return found

    agree(program, REPLIES, q="x")


def test_iterators_go_on() -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=9)
        words = s["x"].split()
        it = iter(words)
        for word in it:
            s += word + sgc.gen("y", max_tokens=3)
            if s["y"] == "yes":
                s += next(it, "-")
        groups = []
        for size, group in groupby(sorted(words, key=len), key=len):
            s += f"{size}: {', '.join(group)}" + sgc.gen("z", max_tokens=2)
            groups.append(size)
        words.append("end")
        return words, groups

    agree(program, REPLIES, q="x")


def test_errors_go_to_their_handlers() -> None:
    class Odd(Exception):
        pass

    @sgc.function
    def program(s, q: str):
        counts, log = defaultdict(int), []
        for n in range(3):
            s += f"{n}?" + sgc.gen("x", max_tokens=3)
            try:
                counts[s["x"]] += 1
                log.append(int(s["x"]))
                s += {"3": "three"}[s["x"]]
            except ValueError as e:
                s += f"no number: {e}"
            except KeyError as e:
                log.append(e.args[0])
        return Counter(counts).most_common(1), log

    agree(program, REPLIES, q="x")


def test_errors_are_raised_as_python_does() -> None:
    @sgc.function
    def program(s, q: str):
        log = []
        s += q + sgc.gen("x", max_tokens=3)
        log.append(s["x"])
        if log[0] == "no":
            raise RuntimeError(s["x"])
        if log[0] == "3":
            raise ValueError(f"{log}")
        return log

    agree(program, REPLIES, q="x")


def test_what_is_no_text_cannot_be_appended() -> None:
    @sgc.function
    def program(s, q: str):
        row = {"n": 1}
        s += q + sgc.gen("x", max_tokens=3)
        row["t" if s["x"] == "yes" else "n"] = s["x"]
        s += row["n"]
        return row

    agree(program, REPLIES, q="x")


def test_forks_beside_live_lists() -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=9)
        rows = [{"word": each} for each in s["x"].split()]
        forks = s.fork(len(rows))
        for f, row in zip(forks, rows, strict=False):
            f += row["word"] + sgc.gen("y", max_tokens=3)
        for f, row in zip(forks, rows, strict=False):
            row["y"] = f["y"]
        return rows

    agree(program, REPLIES, q="x")


def test_a_name_that_may_not_be_set_is_read_where_python_reads_it() -> None:
    @sgc.function
    def program(s, q: str):
        marks = []
        for n in range(3):
            s += f"{n}?" + sgc.gen("mark", max_tokens=3)
            if s["mark"] == "no":
                s += "final?" + sgc.gen("final", max_tokens=3)
            marks.append(s["final"] if s["mark"] == "no" else s["mark"])
        return marks

    agree(program, REPLIES, q="x")


def test_an_argument_is_not_changed() -> None:
    """Its caller would not see it."""

    @sgc.function
    def program(s, rows: list[dict[str, str]]):
        for row in rows:
            s += row["a"] + sgc.gen("x", max_tokens=3)
            row["x"] = s["x"]
        return rows

    rows = [{"a": "1"}, {"a": "2"}]
    endpoint = Endpoint(ScriptedBackend(lambda *_: "x"))
    with pytest.raises(SgcError, match="changes an argument"):
        sgc.Program(trace(program)).run(rows=rows, backend=endpoint)
    assert rows == [{"a": "1"}, {"a": "2"}]


def test_children_of_forks_in_data() -> None:
    @sgc.function
    def program(s, q: str):
        kept = {}
        for n in range(2):
            for f in s.fork(2):
                f += f"{n}" + sgc.gen("x", max_tokens=3)
                kept[f["x"]] = f
        s += ",".join(each["x"] for each in kept.values())
        return len(kept)

    agree(program, REPLIES, q="x")


def test_a_stream_that_goes_on_is_no_live_object() -> None:
    @sgc.function
    def program(s, q: str):
        kept = {}
        forks = s.fork(2)
        for f in forks:
            f += sgc.gen("x", max_tokens=3)
            kept[f["x"]] = f
        for f in forks:
            f += sgc.gen("y", max_tokens=3)
        return [each["y"] for each in kept.values()]

    with pytest.raises(TraceError):
        trace(program, is_full=True)


class Asking:
    def __init__(self, n: int) -> None:
        self.n = n

    def ask(self, s: Any) -> str:
        s += f"n {self.n}" + sgc.gen("a", stop="\n")
        return s["a"]


class Told(Asking):
    def __init__(self, n: int) -> None:
        self.n = n

    def ask(self, s: Any) -> str:
        return f"told {self.n}"


class TwiceTold(Told):
    def __init__(self, n: int) -> None:
        self.n = n

    def ask(self, s: Any) -> str:
        return Told.ask(self, s) + Asking.ask(self, s)


@pytest.mark.parametrize("turn", range(3))
def test_a_class_asks_in_its_own_way(turn: int) -> None:
    """Whichever of the classes is met first."""
    first, second, third = [Asking, Told, TwiceTold, Asking, Told][turn : turn + 3]

    @sgc.function
    def program(s):
        s += "words" + sgc.gen("words", stop="\n")
        found = []
        for each in s["words"].split():
            if each == "a":
                found.append(first(1))
            elif each == "b":
                found.append(second(2))
            else:
                found.append(third(3))
        found.sort(key=lambda each: -each.n)
        answers = []
        for each in found[:3]:
            each.n += 1
            answers.append(each.ask(s))
        return answers, [each.n for each in found]

    agree(program, REPLIES, 8)
