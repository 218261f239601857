"""Prefetches: where they are inserted, where not, and that nothing else is changed.

In these texts `LONG`, `OTHER` and `SHORT` stand for constants of 1200, 1500 and 300 characters.
"""

from __future__ import annotations

import textwrap

import pytest

from sgc.ir.graph import Graph
from sgc.ir.text.parser import parse
from sgc.ir.verify import verify
from sgc.passes.hints.insert_prefetch import MAX_PREFETCHES, PASS
from sgc.passes.pipeline import LEVELS, run_pass

TEXTS = {"LONG": "long text. " * 109 + "!", "OTHER": "other text. " * 125, "SHORT": "x" * 300}


def program(body: str) -> Graph:
    body = textwrap.dedent(body).strip()
    for word, text in TEXTS.items():
        body = body.replace(word, text)
    main, *called = body.split("called ")
    blocks = "\n".join(f"  {line}" for line in main.strip().splitlines())
    tail = "".join(f"called {each}" for each in called)
    return parse(f"sgir 1\nprogram @p(%x: text, %xs: list[text]) {{\n{blocks}\n}}\n{tail}")


FIRST = """
%s0 = stream "p"
%s1 = const %s0 "go"
%s2, %a = gen %s1 max_tokens=8
"""
CALLED = """
%j0 = stream "judge" caller=%s0
%j1 = role_begin %j0 "system"
%j2 = const %j1 "LONG"
%j3 = append %j2 %x
%j4 = const %j3 "then"
%j5 = append %j4 %a
%j6, %b = gen %j5 max_tokens=8
"""
WANTED = """prefetch kinds=["role_begin", "const", "value", "const"] \
pieces=["system", "LONG", %x, "then"]
"""
TOOL = '%hit: text = tool "m:f" [%x] effect="pure" signature="(x: str) -> str"\n'

# A name, the program, and what is inserted before which line; nothing: it is left alone.
CASES: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "the text of a function that is called with what was generated": (
        FIRST + CALLED + "return %b",
        (("%s0 = ", WANTED),),
    ),
    "of one that is called twice, once": (
        FIRST + CALLED + CALLED.replace("%j", "%k").replace("%b", "%c") + "return %b",
        (("%s0 = ", WANTED),),
    ),
    "a request is made with it at once": (
        '%s0 = stream "p"\n' + CALLED.replace("append %j4 %a", 'const %j4 "go"') + "return %b",
        (),
    ),
    "another request is made with it at once": (
        FIRST.replace('"go"', '"LONG"') + CALLED.replace("%j1 = role_begin %j0", "%j1 = cache %j0")
        .replace(' "system"', "") + "return %b",
        (),
    ),
    "nothing is ever asked with it": (
        FIRST + CALLED.replace("%j6, %b = gen %j5 max_tokens=8\n", "") + "return %a",
        (),
    ),
    "it is short": (FIRST + CALLED.replace("LONG", "SHORT") + "return %b", ()),
    "what follows directly after a generation": (
        FIRST + '%s3 = const %s2 "LONG"\n%s4, %b = gen %s3 max_tokens=8\nreturn %b',
        (),
    ),
    "what stands between a generation and the result of a tool": (
        FIRST + TOOL + '%s3 = const %s2 "LONG"\n%s4 = append %s3 %hit\n%s5, %b = gen %s4\n'
        "return %b",
        (("%hit", 'prefetch kinds=["const"] pieces=["LONG"] stream=%s2\n'),),
    ),
    "what only the tool's result comes before": (
        FIRST + TOOL + '%s3 = append %s2 %hit\n%s4 = const %s3 "LONG"\n%s5, %b = gen %s4\n'
        "return %b",
        (),
    ),
    "both arms of a branch that a tool decides": (
        """
        ^entry:
          %s0 = stream "p"
          %s1, %a = gen %s0 max_tokens=8
          %hit: text = tool "m:f" [%a] effect="pure" signature="(x: str) -> str"
          %t: bool = compute "in" ["y", %hit]
          branch %t then="yes" orelse="no"
        ^yes:
          %s2 = const %s1 "LONG"
          %s3, %b = gen %s2 max_tokens=8
          return %b
        ^no:
          %s4 = const %s1 "OTHER"
          %s5, %c = gen %s4 max_tokens=8
          return %c
        """,
        (("%hit", 'prefetch kinds=["const"] pieces=["LONG"] stream=%s1\n'
          'prefetch kinds=["const"] pieces=["OTHER"] stream=%s1\n'),),
    ),
    "arms that the generation before them decides": (
        """
        ^entry:
          %s0 = stream "p"
          %s1, %a = gen %s0 max_tokens=8
          %t: bool = compute "in" ["y", %a]
          branch %t then="yes" orelse="no"
        ^yes:
          %s2 = const %s1 "LONG"
          %s3, %b = gen %s2 max_tokens=8
          return %b
        ^no:
          return %a
        """,
        (),
    ),
    "a loop, whose turns call a function: before the loop": (
        """
        ^entry:
          %s0 = stream "p"
          %s1, %a = gen %s0 max_tokens=8
          jump "turn" args=[%a]
        ^turn(%t: text):
          %j0 = stream "judge" caller=%s0
          %j1 = const %j0 "LONG"
          %j2 = append %j1 %t
          %j3, %b = gen %j2 max_tokens=8
          %more: bool = compute "in" ["y", %b]
          branch %more then="again" orelse="end"
        ^again:
          jump "turn" args=[%b]
        ^end:
          return %b
        """,
        (("%s0 = ", 'prefetch kinds=["const"] pieces=["LONG"]\n'),),
    ),
    "a loop whose first turn asks at once": (
        """
        ^entry:
          %s0 = stream "p"
          jump "turn" args=[%x]
        ^turn(%t: text):
          %j0 = stream "judge" caller=%s0
          %j1 = const %j0 "LONG"
          %j2 = append %j1 %t
          %j3, %b = gen %j2 max_tokens=8
          %more: bool = compute "in" ["y", %b]
          branch %more then="again" orelse="end"
        ^again:
          jump "turn" args=[%b]
        ^end:
          return %b
        """,
        (),
    ),
    "of a program that is mapped over what was generated": (
        FIRST + """
        %l: list[text] = compute "split" [%a, ","]
        %n: list[text] = map 0 %l caller=%s0 keys=["k"] args=[%x] names=["note"]
        return %n
        called @note(%k: text, %item: text) {
          %s0 = stream "note"
          %s1 = const %s0 "LONG"
          %s2 = append %s1 %k
          %s3 = append %s2 %item
          %s4, %note = gen %s3 name="note"
          publish %s4 "note" keys=["note"] items=[%note]
          return none
        }
        """,
        (("%s0 = ", 'prefetch kinds=["const", "value"] pieces=["LONG", %x]\n'),),
    ),
    "of one that is mapped at once": (
        """
        %s0 = stream "p"
        %n: list[text] = map 0 %xs caller=%s0 names=["note"]
        return %n
        called @note(%item: text) {
          %s0 = stream "note"
          %s1 = const %s0 "LONG"
          %s2 = append %s1 %item
          %s3, %note = gen %s2 name="note"
          publish %s3 "note" keys=["note"] items=[%note]
          return none
        }
        """,
        (),
    ),
    "the longest, where one begins like another": (
        FIRST + CALLED + CALLED.replace("%j", "%k").replace("%b", "%c").replace(
            '"then"', '"then SHORT"') + "return %b",
        (("%s0 = ", WANTED.replace('"then"', '"then SHORT"')),),
    ),
}  # fmt: skip


def lines_of(body: str) -> str:
    return "\n".join(line.strip() for line in textwrap.dedent(body).strip().splitlines())


def with_inserted(body: str, inserted: dict[str, str]) -> str:
    lines: list[str] = []
    for line in body.splitlines():
        mark = next((mark for mark in inserted if line.startswith(mark)), None)
        lines += [] if mark is None else inserted.pop(mark).splitlines()
        lines.append(line)
    assert not inserted, "no line begins like that"
    return "\n".join(lines)


@pytest.mark.parametrize("name", CASES)
def test_where_prefetches_are_inserted(name: str) -> None:
    body, inserted = CASES[name]
    before = program(lines_of(body))
    after = run_pass(PASS, before)
    assert after == program(with_inserted(lines_of(body), dict(inserted)))
    assert (after is before) == (not inserted)
    assert run_pass(PASS, after) is after, "it fetches twice"


def test_the_receipt_says_what_is_fetched_and_from_when_on() -> None:
    (receipt,) = run_pass(PASS, program(lines_of(FIRST + CALLED + "return %b"))).receipts
    assert receipt.details == ("a line unknown: 1204 characters, from the start on",)


def test_there_are_a_few_and_the_longest_go_first() -> None:
    calls = "".join(
        f'%c{i} = stream "f"\n%d{i} = const %c{i} "{i:02}{"y" * (1000 + i)}"\n'
        f"%e{i} = append %d{i} %a\n%f{i}, %g{i} = gen %e{i}\n"
        for i in range(MAX_PREFETCHES + 4)
    )
    graph = run_pass(PASS, program(lines_of(FIRST) + "\n" + calls + "return %a"))
    found = [node for node in graph.nodes() if node.op == "prefetch"]
    starts = [str(node.get("pieces"))[12:14] for node in found]
    assert len(found) == MAX_PREFETCHES
    assert starts == [f"{i:02}" for i in range(4, MAX_PREFETCHES + 4)], "as the program asks"
    assert run_pass(PASS, graph) is graph


def test_it_is_a_pass_of_the_default_level_and_keeps_what_is_fetched_apart_from_requests() -> None:
    assert PASS in LEVELS[1]
    graph = run_pass(PASS, program(lines_of(FIRST + CALLED + "return %b")))
    verify(graph)
    kept = [node for node in graph.nodes() if node.op != "prefetch"]
    assert kept == list(program(lines_of(FIRST + CALLED + "return %b")).nodes())
