"""Generators of the program that are left before their end, with something to do then.

The compiler says that it cannot tell when that would be; other generators are the same compiled.
"""

from __future__ import annotations

import linecache
import textwrap
from functools import partial
from typing import Any

import pytest
from control_flow import outcome, replying

from sgc.errors import TraceError
from sgc.runtime.executor.run.options import RunOptions

POOL = ("a", "b", "no", "a,b,c", "")
HEAD = """
import contextlib
import sgc

@sgc.function
def program(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    a, log = s["a"], []
    class Block:
        def __enter__(self): log.append("in")
        def __exit__(self, *error): log.append("out")
    @contextlib.contextmanager
    def block():
        try:
            yield 1
        finally:
            log.append("out")
    def items(xs):
"""
# Whether something is left to do where the generator waits, and the generator.
GENERATORS = {
    "finally": (True, "try:\n    yield from xs\nfinally:\n    log.append('done')"),
    "with": (True, "with Block():\n    for x in xs:\n        yield x"),
    "except": (True, "for x in xs:\n    try:\n        yield x\n    except GeneratorExit:\n"
               "        log.append('left')\n        raise"),
    "before": (False, "with block():\n    log.append(1)\nyield from xs"),
    "plain": (False, "for x in xs:\n    yield x"),
}  # fmt: skip
# Whether the generator is left before its end, and how it is used.
USES = {
    "break": (True, "for x in items('abc'):\n    if x == 'b':\n        break\nlog.append(a)"),
    "next": (True, "log.append(next(items('abc')))\nlog.append(a)"),
    "held": (True, "it = items('abc')\nlog.append(next(it))\nlog.append(a)"),
    "closed": (True, "it = items('abc')\nlog.append(next(it))\nit.close()\nlog.append(a)"),
    "zip": (True, "log += zip([1], items('abc'))\nlog.append(a)"),
    "gen": (True, "for x in items('abc'):\n    s += sgc.gen('b', max_tokens=3)\n"
            "    if s['b'] == 'b':\n        break"),
    "return": (True, "for x in items('abc'):\n    return log"),
    "all": (False, "for x in items('abc'):\n    log.append(x)\nlog.append(a)"),
    "list": (False, "log += items('abc')\nlog.append(a)"),
    "all gen": (False, "for x in items('abc'):\n    s += sgc.gen('b', max_tokens=3)\nlog += [a]"),
    "unpack": (False, "x, *y = items('abc')\nlog += [y, a]"),
}  # fmt: skip


def _program(generator: str, use: str) -> Any:
    lines = f"{textwrap.indent(generator, '        ')}\n{textwrap.indent(use, '    ')}"
    source = f"{HEAD}{lines}\n    return log\n"
    file = f"left_{abs(hash((generator, use)))}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "left"}
    exec(compile(source, file, "exec"), names)
    return names["program"]


CASES = [(generator, use) for generator in GENERATORS for use in USES]
LEFT = [(generator, use) for generator, use in CASES if GENERATORS[generator][0] and USES[use][0]]


@pytest.mark.parametrize(("generator", "use"), LEFT)
def test_a_generator_with_something_left_to_do_is_refused(generator: str, use: str) -> None:
    program = _program(GENERATORS[generator][1], USES[use][1])
    with pytest.raises(TraceError, match=r"is left before its end[\s\S]*go through all its items"):
        program.compile(check=False)


@pytest.mark.parametrize(("generator", "use"), [case for case in CASES if case not in LEFT])
def test_other_generators_are_the_same_compiled(generator: str, use: str) -> None:
    program = _program(GENERATORS[generator][1], USES[use][1])
    compiled = program.compile(check=False)
    for seed in range(6):
        runs = [
            outcome(partial(each.run_once, {"q": "x"}, RunOptions(seed=seed), replying(seed, POOL)))
            for each in (program, compiled)
        ]
        assert repr(runs[0]) == repr(runs[1]), seed
