"""Random functions give what Python gives.

SEEDS=1000:5000 in the environment compares those in place of the first 400, the slow ones too.
"""

from __future__ import annotations

import os
import sys
import warnings

import pytest
from executor.code.comparing import by_python, by_us
from executor.code.random_classes import ClassWriter
from executor.code.random_code import Writer
from executor.code.random_generators import GeneratorWriter

from sgc.errors import SgcError
from sgc.runtime.executor.code import fuel

FIRST, END = map(int, os.environ.get("SEEDS", "0:400").split(":"))
N_TOGETHER = 40
in_parts = pytest.mark.parametrize(
    "first",
    [pytest.param(n, marks=pytest.mark.slow if n else ()) for n in range(FIRST, END, N_TOGETHER)],
)
ARGUMENTS = ([1, "ab"], [[3, 1, 2], {"a": 1}], ["x y", None])


@in_parts
def test_random_functions_give_what_python_gives(first: int) -> None:
    n_compared = 0
    for seed in range(first, min(first + N_TOGETHER, END)):
        source = Writer(seed).module()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for args in ARGUMENTS:
                ours = by_us(source, args)
                if ours[0] == "error" and issubclass(ours[1], SgcError):
                    continue  # no value of a graph: an iterator, or one that is too large
                python = by_python(source, args)
                if "0x" in str(python):
                    continue
                assert ours == python, f"seed {seed}, {args}\n{source}"
                n_compared += 1
    assert n_compared > 0.6 * N_TOGETHER


@in_parts
def test_random_generators_do_what_python_does(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # pytest keeps errors that Python drops, and with them generators that would be closed.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    n_compared = 0
    for seed in range(first, min(first + N_TOGETHER, END)):
        source = GeneratorWriter(seed).module()
        for args in ([1], [None]):
            ours = by_us(source, args)
            if ours[0] == "error" and issubclass(ours[1], SgcError):
                continue  # too long, or a GeneratorExit leaves it
            assert ours == by_python(source, args), f"seed {seed}, {args}\n{source}"
            n_compared += 1
    assert n_compared > N_TOGETHER


@in_parts
def test_random_classes_do_what_pythons_do(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuel, "MAX_STEPS", 20_000)
    n_compared = 0
    for seed in range(first, min(first + N_TOGETHER, END)):
        source = ClassWriter(seed).module()
        for args in ([1, "ab"], [[1], None]):
            ours = by_us(source, args)
            if ours[0] == "error" and isinstance(ours[1], type) and issubclass(ours[1], SgcError):
                continue  # it depends on identity, or is too large
            python = by_python(source, args)
            if "0x" in str(python) or python[1] is RecursionError:
                continue
            assert ours == python, f"seed {seed}, {args}\n{source}"
            n_compared += 1
    assert n_compared > N_TOGETHER
