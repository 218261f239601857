"""What abstract values can do in a trace, and that all else stops it at the user's line."""

from __future__ import annotations

import inspect
import itertools
import json
import operator
import re

import pytest
from tests_support import by_c, one_in, run_both

import sgc
from sgc.errors import TraceError
from sgc.tracing.tracer import trace
from sgc.tracing.values.abstract import AbstractText


@sgc.function
def formats(s, x, n: int, y="dflt", ratio: float = 0.5, flag: bool = True):
    s += "a" + x + "b"
    s += x + "c"
    s += f"[{x}] {n} {n:>4} {ratio:.1f} {x:*>8} {flag}"
    s += "{} and {name}".format(x, name=y)  # noqa: UP032
    s += "%s%%%s" % (x, n)  # noqa: UP031
    s += ", ".join([x, y, "z"])
    text = "start"
    text += x
    text += f"-{text}-"
    s += text * 2
    s += str(x) + str(n)
    s += sgc.gen("g", stop=[f"<{x}>", "\n"], max_tokens=n)
    s += "after " + s["g"] + f"({s['g']})"
    s["joined"] = f"{x}/{s['g']}"
    return {"list": [x, s["g"], 3], "tuple": (s["joined"], None), "n": n}


def test_text_operations_reach_the_stream(scripted):
    result = run_both(formats, scripted(), x=" Ärger\n", n=3)
    assert result.text().startswith("a Ärger\nb Ärger\nc[ Ärger\n] 3    3 0.5 * Ärger\n")
    assert result.ret_value["list"] == [" Ärger\n", result["g"], 3]
    assert result["joined"] == " Ärger\n/" + result["g"]


def test_text_with_special_characters_of_formats(scripted):
    for nasty in ("", "{x}", "%s", "\ufdcf", "🙂" * 3, "\\", '"'):
        run_both(formats, scripted(), x=nasty, n=1)


def _line_of(function, needle: str) -> str:
    lines, first = inspect.getsourcelines(function.python)
    offset = next(i for i, line in enumerate(lines) if needle in line)
    return f"{inspect.getsourcefile(function.python).rsplit('/', 1)[-1]}:{first + offset}"


def branch(s, x):
    if x == "yes":  # HERE
        s += "a"
    s += x


def branch_on_generation(s, x):
    s += x + sgc.gen("g")
    while s["g"] != "stop":  # HERE
        s += "b"


def branch_on_flag(s, flag: bool):
    s += "yes" if flag else "no"  # HERE


def truth(s, x):
    s += x or "default"  # HERE


def look_up(s, x):
    s += {"a": "b"}.pop(x, "c")


def length(s, x):
    s += "x" * len(x)  # HERE


def length_of_marked(s, x):
    s += "x" * len(f"{x}!")  # HERE


def number_of(s, x):
    s += str(int(x) + 1)  # HERE


def arithmetic(s, n: int):
    s += f"{n + 1}"  # HERE


def comparison(s, n: int):
    s += "many" if n > 3 else "few"  # HERE


def stripped(s, x):
    s += x.strip()  # HERE


def stripped_marked(s, x):
    s += f"{x} ".strip()  # HERE


def split_marked(s, x):
    s += f"{x}, b".split(", ")[0]  # HERE


def swallowed(s, x):
    try:
        s += x.upper()  # HERE
    except Exception:
        s += "swallowed"


def sliced(s, x):
    s += x[1:]  # HERE


def sliced_marker(s, x):
    s += f"{x}"[1:]  # HERE


def represented(s, x):
    s += f"{x!r}"  # HERE


def parsed(s, x):
    s += str(json.loads(x)["a"])


def matched(s, x):
    s += "yes" if re.match("a", x) else "no"


def searched(s, x):
    s += "abc" + sgc.gen("g")
    s += "yes" if re.search("[a-z]", f"{s['g']}") else "no"


def raises(s, x):
    s += x + {}["missing"]  # HERE


def writes_global(s, x):
    global _state
    _state = x  # HERE
    s += x


def reads_file(s, x):
    with open("data.txt") as file:  # HERE
        s += file.read() + x


def bad_object(s, x):
    s["o"] = object()
    s += x
    return s["o"]


WORKS = [
    look_up,
    branch, branch_on_flag, truth, length, length_of_marked, number_of, arithmetic, comparison,
    stripped, swallowed, sliced, sliced_marker, represented, parsed, matched, searched,
    stripped_marked, split_marked,
]  # fmt: skip
STOPS = [
    writes_global, reads_file,
]  # fmt: skip


@pytest.mark.parametrize("body", one_in(5, WORKS), ids=lambda body: body.__name__)
def test_what_was_once_refused_is_compiled(body):
    sgc.function(body).compile()


@pytest.mark.parametrize("body", STOPS, ids=lambda body: body.__name__)
def test_what_cannot_be_traced_names_the_line_and_a_way_out(body):
    function = sgc.function(body)
    with pytest.raises(TraceError) as caught:
        trace(function)
    assert caught.value.where == _line_of(function, "# HERE")
    assert (
        "--" in caught.value.hint
        or "argument" in caught.value.hint
        or "s[name]" in caught.value.hint
    )


def test_an_error_of_the_program_names_its_line():
    function = sgc.function(raises)
    with pytest.raises(TraceError, match="raised KeyError") as caught:
        trace(function)
    assert caught.value.where == _line_of(function, "# HERE")


def test_every_str_method_on_abstract_text_is_handled():
    """A method of `str` we do not know would read the marker's digits as if they were text."""
    of_objects = {"__dir__", "__getattribute__", "__new__", "__reduce__", "__setattr__"}
    of_objects |= {"__delattr__", "__doc__", "__getnewargs__", "__getstate__", "__init__"}
    for name in set(dir(str)) - set(dir(object)) - of_objects - {"maketrans"}:
        assert name in vars(AbstractText), name


# The trace itself cannot see these, which C does to texts; the check against the interpreter must.


def contained(s, x):
    s += "found" if by_c(operator.contains, "plain, 42", x) else "missing"
    s += x


def asked_differently(s, x):
    s += x + sgc.gen("g", max_tokens=3 if by_c(operator.contains, "plain, 42", x) else 4)


def differs_on_the_last_nasty_text(s, x):
    last = bytes((9, 32, 116, 97, 98)).decode()  # not spelled, so not one of its own
    s += x + sgc.gen("g", max_tokens=3 if by_c(operator.contains, last, x) else 4)


@pytest.mark.full_check
@pytest.mark.parametrize("body", [differs_on_the_last_nasty_text, asked_differently, contained])
def test_the_check_finds_what_the_trace_cannot_see(body):
    with pytest.raises(TraceError) as caught:
        sgc.function(body).compile()
    assert "wrong" in caught.value.message or caught.value.where


# What C does to texts that a longer marker of other characters shows.


def stripped_by_c(s, x):
    s += by_c(vars(str)["strip"], f" {x} ")


def swapped_by_c(s, x):
    s += by_c(vars(str)["swapcase"], x)


def cut_by_c(s, x):
    s += by_c(vars(str)["__getitem__"], by_c("".join, [x, "!"]), slice(0, 2000))


@pytest.mark.parametrize("body", [stripped_by_c, swapped_by_c, cut_by_c])
def test_a_trace_with_other_markers_finds_what_no_hook_sees(body):
    with pytest.raises(TraceError):
        trace(sgc.function(body))


_calls = itertools.count().__next__


def ambient(s, x):
    s += f"{_calls()} {x}"


def test_two_traces_must_agree():
    with pytest.raises(TraceError, match="twice gave two different programs"):
        trace(sgc.function(ambient))


def test_values_do_not_outlive_their_trace():
    kept = []

    @sgc.function
    def leaks(s, x):
        kept.append(f"{s.text()}{x}")
        s += "".join(kept[:1])

    with pytest.raises((TraceError, sgc.SgcError)):
        leaks.compile()


def test_a_parameter_used_as_a_number_is_one():
    @sgc.function
    def program(s, n, t):
        s += "x" + sgc.gen("g", max_tokens=n, temperature=t)

    graph = trace(program)
    assert [str(p.value.type) for p in graph.params] == ["int", "float"]


def test_a_text_repeated_often_is_one_node(scripted):
    @sgc.function
    def program(s, q):
        s += q + sgc.gen("a")
        rule = (s["a"] + "-") * 200_000
        s += f"{rule.count('-')} {len(rule)}"

    compiled = program.compile()
    assert compiled.graph.n_nodes < 20
    endpoint = scripted(lambda *_: "x")
    texts = [run("q", backend=endpoint).text() for run in (compiled.run, program.run)]
    assert texts == ["qx200000 400000"] * 2
