"""Variables whose names are known only at run time: compiled runs are equal to interpreted ones."""

from __future__ import annotations

import pytest
from control_flow import agree, agree_saved, replying

import sgc
from sgc.errors import ProgramRaised, TraceError, UnknownVariable
from sgc.ir.text.printer import to_text
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

POOL = ["yes", "no", "3", "maybe so", "1"]


@sgc.function
def quiz(s, q: str):
    """Read back where it was set, by another name, and by names that are plain."""
    s += q + " How many? " + sgc.gen("n", regex="[1-3]", max_tokens=1)
    n = int(s["n"])
    score = 0
    for i in range(n):
        number = i + 1
        s += f"Q{number}: " + sgc.gen(f"a{number}", max_tokens=3)
        if s[f"a{number}"] == "yes":
            score += 2
        else:
            s += sgc.select(f"second{number}", choices=["yes", "no"])
            if s[f"second{number}"] == "yes":
                score += 1
    found = [s[f"a{k}"] for k in range(1, n + 1)]
    s += ",".join(found) + s["a1"]
    s["score"] = score
    return score, found


@sgc.function
def numbers(s, q: str):
    """Values of several types; a name is set again, also as a plain name."""
    s += q + sgc.gen("n", regex="[1-3]", max_tokens=1)
    for i in range(int(s["n"])):
        s[f"x{i}"] = i * 2
        s[f"x{i // 2}"] = "half" if i > 1 else 7
        if i == 1:
            s["x0"] = q
    s += str(s["x0"])
    return [s[f"x{i}"] for i in range((int(s["n"]) + 1) // 2)]


@sgc.function
def unknown(s, q: str):
    s += q + sgc.gen("n", regex="[1-3]", max_tokens=1)
    n = int(s["n"])
    for i in range(n):
        s += sgc.gen(f"v{i}", max_tokens=2)
    has = f"v{n}" in s, "v1" in s
    try:
        s += s[f"v{n - 2}"]
    except KeyError:
        s += "none"
    return has


@sgc.function
def forked(s, q: str):
    """A fork's children read names of the trunk, and give their own."""
    s += q + sgc.gen("n", regex="[1-3]", max_tokens=1)
    n = int(s["n"])
    for i in range(n):
        s += sgc.gen(f"v{i}", max_tokens=2)
    found = []
    for f in s.fork(2):
        f += "more " + sgc.gen(f"w{n}", max_tokens=2)
        f += sgc.gen(f"v{n - 1}", max_tokens=2)
        found += [f[f"v{n - 1}"], f[f"w{n}"], f["v0"]]
    return found, s[f"v{n - 1}"]


@sgc.function
def asks(s, topic: str, n: int):
    for i in range(n):
        s += topic + sgc.gen(f"{topic}_{i}", max_tokens=2)
    with s.var_scope(f"all_of_{n}"):
        s += "that is all"
    return [s[f"{topic}_{i}"] for i in range(n)]


@sgc.function
def calls(s, q: str):
    """A nested call has names of its own."""
    s += q + sgc.gen("n", regex="[1-3]", max_tokens=1)
    n = int(s["n"])
    inner = asks(q, n)
    s += inner[f"{q}_0"] + inner[f"all_of_{n}"]
    return inner.ret_value


@sgc.function
def chosen(s, q: str):
    """A name that is a choice: set as one name, read as one of those that there are."""
    for i in range(3):
        s += q + sgc.gen(f"a{i}", max_tokens=2)
    s += sgc.select("which", choices=["a0", "a2", "b"])
    if s["which"] != "b":
        s += s[s["which"]]
    s += sgc.gen(s["which"], max_tokens=2)
    s += s[s["which"]] + s["a0"]
    s += sgc.gen("n", regex="[012]", max_tokens=1)
    return s["a1"], s[f"a{s['n']}"], "b" in s


@sgc.function
def titled(s, word: str):
    s += word + sgc.gen(f"of_{word}", max_tokens=2)
    s[f"n_{word}"] = len(word)


@sgc.function
def maps(s, q: str):
    """What is mapped gives such names, which are read as plain ones."""
    s += sgc.gen("how", max_tokens=2)
    words = ["x", "x"] if s["how"] == "yes" else ["x"]
    states = sgc.map(titled, words)
    s += f" {len(states['of_x'])}"
    return states["of_x"], states["n_x"]


PROGRAMS = (maps, chosen, quiz, numbers, unknown, forked, calls)


@pytest.mark.sweep
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.name)
def test_names_made_at_run_time(function):
    agree_saved(function, POOL, n=8, q="x")


def test_a_name_made_of_arguments_needs_no_decision():
    @sgc.function
    def one(s, q: str):
        s += q + sgc.gen(f"to_{q}", max_tokens=3)
        return s[f"to_{q}"]

    agree(one, POOL, q="x", levels=(0, 2))


def test_a_name_that_is_not_set_ends_the_run():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("n", regex="[1-3]", max_tokens=1)
        for i in range(int(s["n"])):
            s[f"v{i}"] = q
        return s[f"v{s['n']}"]

    compiled = Program(trace(program, is_full=True))
    with pytest.raises(UnknownVariable):
        program.run_once({"q": "x"}, RunOptions(), replying(0, POOL))
    with pytest.raises(ProgramRaised, match="UnknownVariable: no variable v"):
        compiled.run_once({"q": "x"}, RunOptions(), replying(0, POOL))


def test_results_have_the_names():
    compiled = Program(trace(asks, is_full=True))
    given = {"topic": "tea", "n": 2}
    runs = [each.run_once(given, RunOptions(), replying(0, POOL)) for each in (asks, compiled)]
    for result in runs:
        assert [request.name for request in result.requests] == ["tea_0", "tea_1"]
        assert result["all_of_2"] == "that is all"
        assert result.get_meta_info("tea_1") is not None


@sgc.function
def reads_all(s, q: str):
    s += sgc.gen(f"a_{q}")
    return s.variables()


@sgc.function
def joins(s, q: str):
    forks = s.fork(2)
    for f in forks:
        f += sgc.gen(f"w_{q}")
    forks.join()


@sgc.function
def joins_of_unknown_number(s, q: str):
    for f, word in zip(s.fork(len(q.split())), q.split(), strict=True):
        f += sgc.gen(f"w_{word}")


@sgc.function
def asks_meta_info(s, q: str):
    s += sgc.gen(f"w_{q}")
    return s.get_meta_info(f"w_{q}")


@sgc.function
def sets_a_list(s, q: str):
    s += sgc.gen(f"w_{q}", n=2)


@sgc.function
def may_be_empty(s, q: str):
    s += sgc.gen(q)


@sgc.function
def names_a_role(s, q: str):
    with s._role_scope(f"my_{q}"):
        s += sgc.gen("x")


@sgc.function
def separates(s, q: str):
    s += sgc.separate_reasoning(sgc.gen(f"w_{q}"), "qwen3")


REFUSED = (
    (separates, "where it must be known"),
    (reads_all, "all variables are read where names are made"),
    (joins, "a child of a fork is joined"),
    (joins_of_unknown_number, "its turn of a loop ends"),
    (asks_meta_info, "get_meta_info"),
    (sets_a_list, "is given a list"),
    (may_be_empty, "which may be no name"),
    (names_a_role, "where it must be known"),
)


@pytest.mark.sweep
@pytest.mark.parametrize(("function", "why"), REFUSED, ids=lambda each: getattr(each, "name", ""))
def test_refused_at_its_line(function, why):
    with pytest.raises(TraceError, match=rf"test_late_names.py:\d+: .*{why}"):
        trace(function, is_full=True)


@sgc.function
def counts_its_names(s, q: str):
    """Over few known turns the names are plain, if what the program does with them needs it."""
    for i in range(4):
        s += sgc.gen(f"x{i}", max_tokens=3)
        if s[f"x{i}"] == "no":
            s += q
    s += ",".join(f"{name}={value}" for name, value in s.variables().items())


def test_names_of_few_turns_are_plain_where_they_must_be_known():
    graph = agree(counts_its_names, ("yes", "no", "maybe"), q="x")
    assert " named=" not in to_text(graph)
