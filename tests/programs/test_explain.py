"""`sgc explain`: what it points out, what it leaves alone, and where."""

from __future__ import annotations

import pytest
from waiting import cpu_below

import sgc
from sgc.ir.analysis.text_boundaries import MAX_TAIL_CHARS, borders
from sgc.ir.text.parser import parse
from sgc.passes.pipeline import optimize
from sgc.programs.explain import Finding, findings
from sgc.tracing.tracer import trace


def found(text: str, **params) -> list[Finding]:
    @sgc.function
    def program(s):
        s += text
        s += sgc.gen("a", **params)

    return list(findings(trace(program)))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Answer: ", "ends with a space"),
        ("- ", "ends with a space"),
        ("def f():\n    ", "ends with a space"),
        ("name\t", "ends with a tab"),
        ("The link is http:", "ends inside a URL"),
        ("The link is <https:/", "ends inside a URL"),
        ("The link is https://", "ends inside a URL"),
        ("git+ssh://", "ends inside a URL"),
        ("The capital of France is Par", "may end inside a word"),
        ("It was in 19", "may end inside a word"),
        ("def test_", "may end inside a word"),
        ("Die Hauptstadt heißt Düs", "may end inside a word"),
    ],
)
def test_a_border_that_a_token_could_go_over_is_pointed_out(text, what):
    (finding,) = found(text)
    assert finding.loc.file == "test_explain.py"
    assert finding.loc.line == found.__code__.co_firstlineno + 4
    assert what in finding.what
    assert 'gen "a"' in finding.what
    assert "heal=True" in finding.advice


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", "Answer:", "Q: who?\nA:", "Dear Sir,\n", "1.", "In summary,", "He said:\n\"",
        "The capital of France is", "Write a poem about", "I don't know what it's", "It’s", "(",
        "def f(x):\n", "File:", "From: a\nTo:", "Time 12:", "日本の首都は", "مرحبا", "```python\n",
        "<think>", "{", "...", "100%",
    ],
)  # fmt: skip
def test_a_good_prompt_is_left_alone(text):
    assert found(text) == []


@pytest.mark.parametrize("heal", [True, False])
def test_who_says_whether_to_heal_has_thought_of_it(heal):
    assert found("Answer: ", heal=heal) == []

    @sgc.function(heal=heal)
    def program(s):
        s += "Answer: " + sgc.gen()

    assert findings(trace(program)) == ()


def test_only_the_known_end_of_a_prompt_is_looked_at():
    @sgc.function
    def program(s, x):
        s += "Answer: " + x + sgc.gen("after_value")
        s += sgc.gen("after_generated")
        s += "s" + sgc.gen("goes_on_from_generated")
        s += " a cat" + sgc.gen("has_a_space_before_it")
        s += "Is it " + sgc.select("pick", ["a", "b"]) + sgc.gen("after_chosen")
        s += "Answer: " + sgc.user("") + sgc.gen("after_role")
        s += " " + sgc.assistant(sgc.gen("in_role"))
        s += x + " " + sgc.gen("after_value_and_space")

    names = [finding.what.split('"')[1] for finding in findings(trace(program))]
    assert names == ["has_a_space_before_it", "after_value_and_space"]


def test_what_is_shown_says_where_it_was_cut():
    assert found("x" * 50 + " ")[0].what.endswith(': "…' + "x" * 29 + ' "')
    assert found('say "a ')[0].what.endswith(r': "say \"a "')

    @sgc.function
    def program(s, x):
        s += x + ": " + sgc.gen(n=2)

    (finding,) = findings(trace(program))
    assert finding.what == 'the prompt of gen ends with a space: "…: "'


def test_a_fork_goes_on_from_its_trunk_and_is_pointed_out_once():
    @sgc.function
    def program(s):
        s += "Answer: "
        forks = s.fork(3)
        for fork in forks:
            fork += sgc.gen("a")
        s += "x."
        for child in s.fork(2):
            child += sgc.gen("b")

    assert [str(each).partition(": ")[2] for each in findings(trace(program))] == [
        'the prompt of gen "a" ends with a space: "Answer: "\n'
        "  a model's tokens bring their own: leave it out, or generate with heal=True"
    ]


def test_passes_change_nothing_of_it():
    @sgc.function
    def program(s, x):
        s += "You are " + x + ". "
        s += "Answer" + ": "
        s += sgc.gen("a") + " and " + sgc.gen("b")

    graph = trace(program)
    assert findings(optimize(graph, 3)) == findings(graph)
    assert len(findings(graph)) == 2


def test_a_fixed_argument_is_known_text():
    @sgc.function
    def program(s, x):
        s += x + sgc.gen("a")

    assert len(findings(trace(program, {"x": "Answer: "}))) == 1


def test_a_stream_of_another_block_is_unknown():
    graph = parse(
        'sgir 1\nprogram @p() {\n %s0 = stream "p"\n %s1, %a = gen %s0 name="a"\n return\n'
        '^b(%s2: stream):\n %s3, %b = gen %s2 name="b"\n return\n}'
    )
    assert [(b.node.text("name"), b.tail.text, b.tail.is_cut) for b in borders(graph)] == [
        ("a", "", False),
        ("b", "", True),
    ]


@pytest.mark.slow
def test_a_long_prompt_costs_linear_work():
    @sgc.function
    def program(s):
        for i in range(2000):
            s += f"line {i} of many. "
        for child in s.fork(500):
            child += sgc.gen("a")

    graph = trace(program)
    with cpu_below(2):
        (finding,) = findings(graph)
    assert all(len(border.tail.text) <= MAX_TAIL_CHARS for border in borders(graph))
    assert "line 1999 of many. " in finding.what
