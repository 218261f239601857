"""An exit, an interrupt or a cancel in somebody else's code fails that run alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from executor.free_backend import Free, simple, within

import sgc
from sgc.errors import ProgramError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.interface.backend import Usage

EXITS = [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()]


def assert_failed_by(failed: Any, error: BaseException, file: str = "test_exits.py") -> None:
    assert type(failed) is ProgramError
    assert type(failed.__cause__) is type(error)
    assert failed.where.startswith(f"{file}:")
    # Other runs go on, which need the same event loop.
    endpoint = Endpoint(Free("r"))
    assert within(lambda: simple.run(backend=endpoint).text()) == "ar"


@pytest.mark.parametrize("error", EXITS, ids=repr)
@pytest.mark.parametrize("shown", ["a", "r"])
def test_an_exit_in_a_callback_fails_the_run_alone(error, shown):
    def on_text(node: Any, path: str, text: str) -> None:
        if text == shown:
            raise error

    endpoint = Endpoint(Free("r"))
    failed = within(lambda: simple.run(backend=endpoint, on_text=on_text).error())
    assert_failed_by(failed, error, "free_backend.py")


@pytest.mark.parametrize("error", EXITS, ids=repr)
def test_an_exit_in_a_choices_method_fails_the_run_alone(error):
    class Method(sgc.ChoicesSamplingMethod):
        def __call__(self, **scores: Any) -> Any:
            raise error

    @sgc.function
    def choose(s):
        s += sgc.select("c", ["a", "b"], choices_method=Method())

    endpoint = Endpoint(ScriptedBackend(lambda prompt, sampling: ""))
    assert_failed_by(within(lambda: choose.run(backend=endpoint).error()), error)


@pytest.mark.parametrize("error", EXITS, ids=repr)
def test_an_exit_in_a_commit_fails_the_run_alone(error):
    class Leaving(Free):
        async def commit_prefix(self, prompt, heads=()) -> Usage:
            raise error

    @sgc.function
    def forked(s):
        s += "a"
        group = s.fork(2)
        group += sgc.gen("x")

    assert_failed_by(within(lambda: forked.run(backend=Endpoint(Leaving("r"))).error()), error)
