"""Imports inside of programs, and stacks of whole modules."""

from __future__ import annotations

import argparse
import asyncio.base_events
import inspect
import tarfile
from pathlib import Path
from types import CodeType

import pytest
from control_flow import agree

import sgc
from sgc.tracing.code.bytecode import CodeInfo
from sgc.tracing.code.stacks import stack_after

YES_NO = ["yes", "no"]


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


@pytest.mark.slow
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
                    after = stack_after(op, stack, following != n + 1, False)
                    assert len(after) == len(stacks[following]), (code, op)
                    n_ways += 1
    assert n_ways > 20_000


def codes_of(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from codes_of(const)


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
