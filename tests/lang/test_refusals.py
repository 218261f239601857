"""What no run could accept of a `gen` or a `select` is refused at the line that writes it."""

from __future__ import annotations

import sys
import types
from itertools import count

import pytest
from tests_support import run_both

import sgc
from sgc.errors import TraceError, UsageError
from sgc.lang.constraints import check_decodable
from sgc.runtime.executor.run.options import RunOptions


def of_gen(**params):
    @sgc.function
    def program(s):
        s += "x"
        s += sgc.gen("a", **params)

    return program


LINE = of_gen.__code__.co_firstlineno + 4


def refused(program, endpoint, words: str, *, line: int = LINE, only_compiled=False) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        program.compile()
    assert caught.value.where == f"test_refusals.py:{line}"
    if not only_compiled:
        with pytest.raises(UsageError, match=words) as caught:
            program.run(backend=endpoint).text()
        assert caught.value.where == f"test_refusals.py:{line}"


# -- constraints ---------------------------------------------------------------------------


@pytest.fixture
def grammar(monkeypatch):
    """The engine's module, which refuses any text that holds "bad"; gives what it was asked."""
    asked: list[tuple[str, str]] = []

    class ConstraintError(ValueError):
        pass

    def check_constraint(field: str, text: str) -> None:
        asked.append((field, text))
        if "bad" in text:
            raise ConstraintError(f"no {field} can be bad")

    name = "sgc.runtime.engine.guides.grammar"
    found = types.ModuleType(name)
    vars(found).update(ConstraintError=ConstraintError, check_constraint=check_constraint)
    monkeypatch.setitem(sys.modules, name, found)
    check_decodable.cache_clear()
    yield asked
    check_decodable.cache_clear()


@pytest.mark.parametrize(
    "params",
    [
        {"regex": "bad"},
        {"json_schema": '{"const": "bad"}'},
        {"json_schema": {"const": "bad"}},
        {"ebnf": 'root ::= "bad"'},
        {"stop_regex": "bad"},
        {"stop_regex": ["a", "bad"]},
        {"regex": "bad", "n": 2},
    ],
)
def test_a_constraint_that_cannot_be_decoded_under(scripted, grammar, params):
    words = f"no {next(iter(params))} can be bad"
    refused(of_gen(**params), scripted(), words, only_compiled=True)


def test_each_constraint_is_looked_at_once_and_only_when_compiling(scripted, grammar):
    program = of_gen(regex="a", stop_regex=["b", "c"])
    program.run(backend=scripted()).sync()
    assert grammar == []
    program.compile()
    assert grammar == [("stop_regex", "b"), ("stop_regex", "c"), ("regex", "a")]


def test_constraints_of_arguments_are_not_looked_at(scripted, grammar):
    @sgc.function
    def program(s, x):
        s += "x" + sgc.gen("a", regex=f"bad{x}", stop_regex=[x, "b"])
        s += sgc.gen("b", ebnf=x, max_tokens=3)

    program.compile(check=False)
    assert grammar == [("stop_regex", "b")]


def test_a_schema_with_an_argument_inside_is_refused_by_its_reason(scripted):
    @sgc.function
    def program(s, x):
        s += "x" + sgc.gen("a", json_schema={"const": x})

    with pytest.raises(TraceError, match="json_schema holds a value known only") as caught:
        program.compile()
    assert caught.value.where.startswith("test_refusals.py:")
    assert program.compile(x="y").run(backend=scripted())
    endpoint = scripted(lambda prompt, sampling: sampling.json_schema)
    assert program(x="y", backend=endpoint)["a"] == '{"const": "y"}'


def test_a_call_leaves_what_cannot_be_compiled_to_the_backend(scripted, grammar):
    program = of_gen(regex="bad")
    assert program(backend=scripted(lambda prompt, sampling: sampling.regex))["a"] == "bad"
    assert "no regex can be bad" in program.explain()


def test_the_engines_own_word(scripted):
    pytest.importorskip("llguidance")
    refused(of_gen(regex="(?=a)b"), scripted(), "looks ahead", only_compiled=True)
    of_gen(regex="a+", stop_regex="b").compile()
    of_gen(json_schema={"type": "integer"}).compile()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"regex": "("}, "regex is no valid pattern"),
        ({"stop_regex": ["a", "("]}, "stop_regex is no valid pattern"),
        ({"regex": 5}, "regex must be a pattern, found int 5"),
        ({"ebnf": 5}, "ebnf must be a text, found int 5"),
        ({"min_tokens": 4, "max_tokens": 3}, "min_tokens=4 is more than max_tokens=3"),
    ],
)
def test_parameters_that_cannot_be(scripted, params, words):
    refused(of_gen(**params), scripted(), words)


# -- lengths -------------------------------------------------------------------------------


def test_lengths_known_only_when_it_runs_are_looked_at_then(scripted):
    @sgc.function
    def program(s, n: int):
        s += "x" + sgc.gen("a", min_tokens=2, max_tokens=n)

    assert run_both(program, scripted(), n=2)
    compiled = program.compile()
    with pytest.raises(UsageError, match="min_tokens=2 is more than max_tokens=1") as caught:
        compiled.run(n=1, backend=scripted())
    assert caught.value.where.startswith("test_refusals.py:")


def test_lengths_of_the_run_count_too(scripted):
    for options in (RunOptions(max_tokens=3), RunOptions(min_tokens=4, max_tokens=3)):
        program = of_gen(min_tokens=4)
        with pytest.raises(UsageError, match="min_tokens=4 is more than max_tokens=3"):
            program.run_once({}, options, scripted())
        with pytest.raises(UsageError, match="min_tokens=4 is more than max_tokens=3"):
            program.compile().run_once({}, options, scripted())


# -- choices -------------------------------------------------------------------------------


def of_choices(choices, word=sgc.select, **params):
    @sgc.function
    def program(s):
        s += "x"
        s += word("a", choices=choices, **params)

    return program


CHOICES_LINE = of_choices.__code__.co_firstlineno + 4


@pytest.mark.parametrize("word", [sgc.select, sgc.gen])
@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (["a", ""], "choices must be non-empty texts, found ''"),
        (["a", 5], "choices must be non-empty texts, found 5"),
        (["a", "b", "a"], "choices must differ, found 'a' twice"),
    ],
)
def test_choices_that_cannot_be(scripted, word, choices, words):
    refused(of_choices(choices, word), scripted(), words, line=CHOICES_LINE)


def test_choices_known_only_when_it_runs_are_looked_at_then(scripted):
    @sgc.function
    def program(s, x):
        s += "x" + sgc.select("a", ["yes", x])

    assert run_both(program, scripted(), x="no")["a"] == "yes"
    compiled = program.compile()
    for run in (compiled.run, lambda **given: program.run(**given).sync()):
        for x, words in (("yes", "found 'yes' twice"), ("", "found ''")):
            with pytest.raises(UsageError, match=words) as caught:
                run(x=x, backend=scripted())
            assert caught.value.where.startswith("test_refusals.py:")


def test_a_method_of_the_users_may_be_given_one_twice(scripted):
    class Last(sgc.ChoicesSamplingMethod):
        def __call__(self, *, choices, **scores):
            return sgc.ChoicesDecision(choices[-1]) if len(choices) == 3 else None

    program = of_choices(["a", "b", "a"], choices_method=Last())
    assert program.run(backend=scripted())["a"] == "a"


def test_an_error_that_tells_of_a_reply_shows_its_name():
    @sgc.function
    def program(s):
        s += sgc.gen("x")
        raise KeyError(s["x"])

    with pytest.raises(TraceError, match="raised KeyError while being traced: x"):
        program.compile()


@pytest.mark.parametrize("word", ["messages", "get_meta_info"])
def test_what_only_a_run_knows_says_where_it_can_be_read(word):
    @sgc.function
    def program(s):
        s += sgc.user("x") + sgc.assistant(sgc.gen("a"))
        getattr(s, word)(*(["a"] if word == "get_meta_info" else []))

    with pytest.raises(TraceError, match=r"from the state when the run is over, or .*--interpret"):
        program.compile()


def test_a_trace_that_fits_no_longer_may_be_of_a_program_that_depends_on_time():
    clock = count().__next__

    @sgc.function
    def program(s):
        s += ("early" if clock() < 6 else "late") + sgc.gen("a")

    with pytest.raises(TraceError, match="or the program depends on time or randomness"):
        program.compile()
