"""Loops, forks, handlers, calls and imports that once compiled to something else, or might."""

from __future__ import annotations

import argparse
import asyncio.base_events
import inspect
import tarfile
from pathlib import Path
from types import CodeType

import pytest
from control_flow import agree, replying

import sgc
from sgc.errors import ProgramRaised, TraceError
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.code.bytecode import CodeInfo, _after
from sgc.tracing.paths.explore import BUILT, Budget, Report
from sgc.tracing.tracer import trace

YES_NO = ["yes", "no"]


def plus(a, b):
    return a + b


def test_a_loop_after_a_comprehension_over_turns():
    @sgc.function
    def program(s, q: str):
        s += q
        first = next(i for i in sgc.turns(2))
        for _ in range(3):
            s += sgc.gen("x")
            if s["x"] == "yes":
                s += "!"
        s += f"{first}" + sgc.gen("z")

    agree(program, YES_NO, q="x")


def ask(s, q):
    s += q
    s += sgc.gen("x")
    if s["x"] == "yes":
        s += "!"
    s += "."


def test_a_loop_on_one_line_over_forks():
    @sgc.function
    def program(s, q: str):
        s += q
        for f in s.fork(3): ask(f, q)  # noqa: E701  # fmt: skip
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


def forks_of(s, n):
    for i in range(n):
        (child,) = s.fork(1)
        s += f"{i}"
        yield child
        child += "back" + sgc.gen("late")


def test_forks_that_a_generator_makes():
    @sgc.function
    def program(s, q: str):
        s += q
        for f in forks_of(s, 2):
            ask(f, q)
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


@pytest.mark.parametrize("kind", [zip, enumerate])
def test_forks_in_iterators_of_pythons(kind):
    @sgc.function
    def program(s, q: str):
        s += q
        for pair in kind(s.fork(3)):
            f = pair[-1]
            f += "a" + sgc.gen("x")
            if f["x"] == "yes":
                f += "!"
            f += "."
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_a_child_that_is_used_after_the_join():
    @sgc.function
    def program(s, q: str):
        s += q
        group = s.fork(2)
        for f in group:
            f += sgc.gen("x")
            if f["x"] == "yes":
                f += "!"
        group.join()
        s += "joined"
        if group[1]["x"] == "yes":
            group[0] += "late" + sgc.gen("late")
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_another_name_of_a_stream():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        (f,) = s.fork(1)
        if s["x"] == "yes":
            at = s
        else:
            at = f
        at += "then"
        at += sgc.gen("y")
        s += "."
        f += "," + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_a_handler_of_everything_in_a_loop():
    @sgc.function
    def program(s, q: str):
        s += q
        n = 0
        while True:
            try:
                s += sgc.gen("x")
                if s["x"] == "yes":
                    break
                n = 1 - n
            except:  # noqa: E722
                pass
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_a_finally_that_returns():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        try:
            if s["x"] == "yes":
                return "left"
            s += "then"
        finally:
            s += "finally"
            if s["x"] == "no":
                return "right"  # noqa: B012
        s += sgc.gen("z")
        return "end"

    agree(program, [*YES_NO, "other"], q="x")


def test_closures_that_capture_what_differs():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        word = "left"
        if s["x"] == "yes":
            word = "right"

        def show():
            return word

        tell = lambda end=word: end  # noqa: E731
        s += "then"
        s += show() + tell() + sgc.gen("z")

    agree(program, YES_NO, q="x")


def down(s, n):
    if n == 0:
        return "end"
    s += f"{n}" + sgc.gen("x")
    if s["x"] == "yes":
        s += "!"
        found = down(s, n - 1)
    else:
        found = down(s, n - 1) + "-"
    s += "."
    return found


def test_recursion_with_a_static_bound():
    @sgc.function
    def program(s, q: str):
        s += q
        s += down(s, 3) + sgc.gen("z")

    agree(program, YES_NO, q="x")


@sgc.function
def counting(t, n: int):
    t += f"{n}" + sgc.gen("x")
    if n == 0 or t["x"] == "yes":
        return "end"
    inner = counting(n - 1)
    t += inner.text()
    return inner.ret_value + "-"


def test_functions_that_call_themselves():
    @sgc.function
    def program(s, q: str):
        s += q
        s += counting(3).ret_value + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_chains_walruses_and_guards():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        if 1 < (n := len(s["x"])) < 4:
            s += f"short {n}"
        match s["x"]:
            case "a" | "ab" if len(q) > 3:
                s += "never"
            case word if len(word) > 2:
                s += "long"
            case _:
                s += "else"
        words = ("b", "ab") if s["x"] in ("a", "abc") else ("c",)
        s += words[0] + ("L" if s["x"] in words else "R") + sgc.gen("z")

    agree(program, ["a", "ab", "abc", "abcd"], q="x", n=20)


def test_star_arguments():
    def told(s, *words, **more):
        for word in words:
            s += word
        if s["x"] == "yes":
            s += more["end"]
        s += "."
        return words

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        words = ["a", "b"] if s["x"] == "yes" else ["a"]
        s += "then"
        got = told(s, *words, **{"end": q})
        s += f"{len(got)}" + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_the_order_of_a_dict():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        found = {}
        if s["x"] == "yes":
            found["a"] = 1
            found["b"] = 2
        else:
            found["b"] = 2
            found["a"] = 1
        s += "then"
        s += ",".join(found) + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_an_error_kept_after_its_handler():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        kept = None
        try:
            if s["x"] == "yes":
                raise ValueError("left")
            raise KeyError("right")
        except (ValueError, KeyError) as error:
            kept = error
        s += "then"
        s += kept.args[0] + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_nonlocal_and_del():
    @sgc.function
    def program(s, q: str):
        n = 0

        def bump():
            nonlocal n
            n += 1

        s += q + sgc.gen("x")
        word = "w"
        if s["x"] == "yes":
            bump()
            del word
        s += "then"
        try:
            s += word
        except UnboundLocalError:
            s += "gone"
        s += f"{n}" + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_decisions_inside_expressions():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        s += f"<{'L' if s['x'] == 'yes' else 'R'}>" + sgc.gen("y")
        s += plus("l" if s["y"] == "yes" else "r", q)
        words = [w for w in ("a", "yes", "b") if s["y"] == w or w == "b"]
        s += "".join(words) + sgc.gen("z")

    agree(program, YES_NO, q="x", n=20)


def test_an_import_in_an_arm():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        if s["x"] == "yes":
            import string as found
        else:
            import keyword as found
        s += "then"
        s += found.__name__ + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_a_loop_whose_body_is_long():
    @sgc.function
    def program(s, q: str):
        s += q
        for _ in range(3):
            s += sgc.gen("x")
            if s["x"] == "yes":
                s += "!"
            s += s["x"] + "0" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "1" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "2" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "3" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "4" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "5" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "6" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "7" + s["x"] + s["x"] + s["x"]
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_a_run_that_would_not_end():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        n = 0
        while s["x"] != "yes":
            n += 1
            s += sgc.gen("x")
        s += f"{n}"

    graph = trace(program, budget=Budget(nodes=200))
    assert any(node.op == "deopt" for node in graph.nodes())


def test_a_way_that_knows_more_closes_its_loop():
    """It comes to a statement where a way that knows less has been, which it does not fit."""

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a")
        if len(s["a"]) > 2:
            word = s["a"]
        else:
            s += "how many" + sgc.gen("b", regex="[0-9]+", max_tokens=3)
            word = s["b"]
        for _ in sgc.turns(2):
            s += "pick" + sgc.select("c", choices=["yes", "no"])
        s += word

    report = Report()
    trace(program, report=report, is_full=True)
    assert report.n_runs < 10
    agree(program, ("yes", "no", "7", "12"), q="ab")


def test_what_grows_in_a_loop_is_work():
    """Each turn goes over all that has grown, so a few nodes may cost as much as ever so many."""

    @sgc.function
    def text_that_grows(s, q: str):
        text = ""
        for _ in sgc.turns(3):
            s += q + sgc.gen("x")
            text += s["x"] + ","
        s += text

    @sgc.function
    def list_that_grows(s, q: str):
        texts = []
        for _ in sgc.turns(3):
            s += q + sgc.gen("x")
            texts.append(s["x"])
        s += sgc.join("/", texts)

    for program in (text_that_grows, list_that_grows):
        report = Report()
        graph = trace(program, budget=Budget(work=50_000), report=report)
        assert "steps of tracing" in report.deopt
        assert graph.n_nodes * BUILT < 0.8 * report.work
        assert report.work < 80_000


def test_a_while_with_a_call_in_its_condition():
    def more(s):
        s += sgc.gen("x")
        return s["x"] != "yes"

    @sgc.function
    def program(s, q: str):
        s += q
        while more(s):
            s += "again"
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_every_way_to_an_instruction_leaves_a_stack_of_one_depth():
    """What Python's own compiler makes of the standard library is understood."""
    n_ways = 0
    for module in (argparse, asyncio.base_events, inspect, tarfile):
        source = Path(module.__file__).read_text(encoding="utf-8")
        for code in codes_of(compile(source, module.__file__, "exec")):
            info = CodeInfo(code)
            stacks = info._stacks()
            for n, stack in stacks.items():
                op = info._ops[n]
                for following in info._next[n]:
                    after = _after(op, stack, following != n + 1, False)
                    assert len(after) == len(stacks[following]), (code, op)
                    n_ways += 1
    assert n_ways > 20_000


def codes_of(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from codes_of(const)


def test_a_loop_after_a_handler():
    @sgc.function
    def program(s):
        s += sgc.gen("a") + "/" + sgc.gen("b")
        try:
            w = str(int(s["a"]) + 1)
        except ValueError as error:
            w = "none: " + str(error)
        for x in s["b"].split():
            s += x + w

    agree(program, ["12", "no", "a b c"])


def test_a_module_that_only_the_first_run_imports(tmp_path, monkeypatch):
    source = "def shout(text):\n    return text + '!'\n\nWORDS = []\nfor n in range(99):\n"
    (tmp_path / "imported_late.py").write_text(source + "    WORDS.append(n)\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    @sgc.function(max_turns=20)
    def program(s):
        s += sgc.gen("x")
        if s["x"] == "yes":
            from imported_late import shout

            s += shout("once") + sgc.gen("z")
        s += "and"
        while s["x"] == "no":
            s += "again" + sgc.gen("x")
            if s["x"] == "maybe":
                s += sgc.gen("y")

    agree(program, YES_NO)


def test_streams_of_one_block_that_was_explored():
    """Only a called program decides, whether it fails: the forks end where nothing reaches them."""

    @sgc.function
    def called(t, word: str):
        t += word + sgc.gen("deep")
        t += t["deep"][-1]

    @sgc.function
    def nested(t):
        t += sgc.gen("y")

    @sgc.function
    def program(s):
        s += sgc.gen("x")
        s += sgc.join("/", sgc.map(called, s["x"].split())["deep"])
        for fork in s.fork(2):
            fork += "child" + sgc.gen("y")
        s += nested()["y"] + sgc.gen("last")

    graph = agree(program, ["yes no", "yes", "no"])
    assert len(graph.blocks) == 1


def test_one_block_that_ends_in_an_error():
    @sgc.function
    def called(t, word: str):
        t += word + sgc.gen("deep")
        t += t["deep"][-1]

    @sgc.function
    def program(s):
        s += sgc.gen("x")
        s += sgc.join("/", sgc.map(called, s["x"].split())["deep"])
        s += s["never set"]

    graph = trace(program, is_full=True)
    assert len(graph.blocks) == 1
    with pytest.raises(ProgramRaised, match="UnknownVariable: no variable 'never set'"):
        Program(graph).run_once({}, RunOptions(), replying(0, YES_NO))


def test_a_handler_around_a_with_block_is_seen():
    @sgc.function
    def called(t, word: str):
        t += word + sgc.gen("deep")
        if t["deep"] == "no":
            raise RuntimeError("no")

    @sgc.function
    def program(s):
        s += sgc.gen("x")
        try:
            with s.copy() as copy:
                copy += sgc.join("/", sgc.map(called, s["x"].split())["deep"])
        except RuntimeError:
            s += "handled"
        s += sgc.gen("last")

    with pytest.raises(TraceError, match="an error that called may raise"):
        trace(program, is_full=True)
