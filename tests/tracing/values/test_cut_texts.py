"""Texts that f-strings, `%`, `format` and `join` make of values, and all that Python does to texts.

Each of some 900 expressions, an operation on a text, gives compiled what it gives interpreted, on
short and on long values and on equal ones, or does not compile. Nothing here relies on the trace
check, which could guess the right values. `pytest -m slow -k cut_texts` does all of them.
"""

from __future__ import annotations

import csv
import io
import linecache
import operator
from collections import Counter, defaultdict
from functools import partial
from itertools import product
from typing import Any

import pytest
from tests_support import by_c, results

import sgc
from sgc.errors import SgcError, TraceError
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.checking.rounds import text_of_length

MADE = (
    "f'{x}'", "f'{x}{y}'", "f'Doc: {x} end'", "f'{x:>7}'", "f'{x!r}'", "f'{n}'", "f'{x}{n:04d}'",
    "f\"{s['g']}, {x}\"", "'%s' % x", "'%s-%s' % (x, y)", "'%.3s' % x", "'%-8s|' % x", "'%d' % n",
    "'{}'.format(x)", "'{1}{0:.4}'.format(x, y)", "'{a:>5}'.format(a=x)", "', '.join([x, y])",
    "''.join((x, 'z'))", "x + '!'", "'Doc: ' + x", "str(x)", "(f'{x} ' * 2)", "helped(x)",
)  # fmt: skip
DONE = (
    "{}[:1]", "{}[:20]", "{}[:200]", "{}[-6:]", "{}[3]", "{}[::-1]", "{}[2:-2]", "{} == 'abc!'",
    "{} == f'{{y}}.'", "{} != x", "{} < 'm'", "{} >= y", "'ab' in {}", "{} in 'xabc def'",
    "{} not in x", "{} in ['abc', x]", "{} in {{'abc'}}", "{{'abc': 1}}.get({})",
    "'t' if {} else 'f'", "not {}", "[c for c in {}]", "len({})", "{}.strip()", "{}.upper()",
    "{}.split(',')[0]", "{}.replace('a', y)", "{}.startswith(x)", "'abcab'.replace('b', {})",
    "'abc'.find({})", "'abc'.startswith({})", "{} * 2", "max({}, 'm')", "sorted([{}, 'm'])",
    "hash({})", "{}.join(['a', y])", "(lambda t: f'{{t:>9}}')({})", "'%.4s' % ({},)", "int({})",
    "{} and 't'", "tuple({})", "{}.partition(',')[2]", "ascii({})", "str.title({})",
    "(lambda t: t[:2])({})",
)  # fmt: skip
SHORT = (("abc", "abc"), ("", ""), ("a", "b"), ("12", "abc"))
LONG = tuple((text_of_length(n), text_of_length(n)) for n in (300, 5000, 50_000))

SOURCE = """
def helped(text):
    return f"<{{text}}>"

def program(s, x, y, n: int):
    s += "q" + sgc.gen("g")
    try:
        v = {}
    except Exception as error:
        v = type(error).__name__
    s += f"{{v}}"
    return v
"""


def made(expression: str) -> Any:
    source = SOURCE.format(expression)
    file = f"cut_{abs(hash(expression))}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {"__name__": "cut_texts", "sgc": sgc}
    exec(compile(source, file, "exec"), namespace)
    return sgc.function(namespace["program"])


def outcome(run: Any) -> str:
    try:
        return repr(results(run()))
    except SgcError as error:
        return f"fails: {error.message}"


def expressions() -> list[str]:
    return [done.format(f"({text})") for text, done in product(MADE, DONE)]


def compare(expression: str, endpoint: Any, values: Any) -> str:
    program = made(expression)
    try:
        compiled = program.compile(check=False)
    except TraceError:
        return "refused"
    for number, (x, y) in enumerate(values):
        arguments = {"x": x, "y": y, "n": (3, 120)[number % 2]}
        options = RunOptions(seed=3)
        ours = outcome(partial(compiled.run_once, arguments, options, endpoint))
        theirs = outcome(partial(program.run_once, arguments, options, endpoint))
        assert ours == theirs, (expression, arguments)
    return "equal"


def test_a_sample_of_operations_on_made_texts(scripted):
    sample = expressions()[::31]
    found = Counter(compare(each, scripted(), SHORT + LONG[:2]) for each in sample)
    assert found["equal"] > len(sample) * 0.65
    assert found.total() == len(sample) > 30


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_operations_on_made_texts(scripted):
    found = Counter(compare(each, scripted(), SHORT + LONG) for each in expressions())
    print(found)
    assert found.total() > 900


@pytest.mark.full_check
def test_the_check_tries_equal_texts():
    """Where C compares, no hook and no conversion sees it: the check has to find equal texts."""

    def program(s, x, y):
        marked = [defaultdict(partial("".join, ["<", each]))[0] for each in (x, y)]
        s += "same" if by_c(operator.eq, *marked) else "other"

    with pytest.raises(TraceError):
        sgc.function(program).compile()


def read_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@sgc.function
def cut_by_a_library(s, table: str):
    for row in read_rows("name,age\n" + table):
        s += row["name"] or "" + sgc.gen("a", max_tokens=2)


@sgc.function
def cut_and_handled(s, table: str):
    for row in read_rows("name,age\n" + table):
        try:
            age = int(row["name"])
        except ValueError:
            age = 0
        s += f"{age}" + sgc.gen("a", max_tokens=2)


@pytest.mark.parametrize("function", [cut_by_a_library, cut_and_handled])
def test_a_text_that_a_library_has_cut_is_not_taken(function: Any) -> None:
    """Not by an error that the program's own `except` takes, nor by one of the tracer's."""
    assert "evaluate" in {node.op for node in function.compile().graph.nodes()}
