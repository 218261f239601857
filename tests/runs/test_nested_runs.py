"""Runs that are started inside of programs, callbacks and other threads."""

from __future__ import annotations

import threading

import pytest
from tests_support import run_both
from waiting import BOUND_S

import sgc
from sgc.errors import SgcError, TraceError, UsageError


def test_another_run_inside_a_program_is_refused_while_tracing(scripted):
    @sgc.function
    def inner(s, x):
        s += x

    compiled = inner.compile()
    endpoint = scripted()

    @sgc.function
    def program(s, x):
        s += compiled.run(x=x, backend=endpoint).text()

    with pytest.raises(TraceError, match="another run is started"):
        program.compile()


def test_a_nested_call_in_another_thread_is_refused(scripted):
    @sgc.function
    def inner(s, x):
        s += x

    @sgc.function
    def program(s):
        import contextvars

        context = contextvars.copy_context()
        errors = []

        def work():
            try:
                context.run(inner, "x")
            except UsageError as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(timeout=BOUND_S)
        raise errors[0]

    with pytest.raises(UsageError, match="another thread"):
        program.run(backend=scripted())


@pytest.mark.parametrize("way", ["compiled", "interpreted"])
def test_a_callback_that_waits_for_a_run_is_told(scripted, way):
    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g")

    endpoint = scripted()
    compiled = program.compile()

    def callback(node, path, text):
        (compiled if way == "compiled" else program).run(backend=endpoint)

    with pytest.raises(SgcError, match="same thread"):
        compiled.run(backend=endpoint, on_text=callback)


def test_a_nested_run_is_a_call_and_takes_no_options(scripted):
    @sgc.function
    def inner(s, x):
        s += x + sgc.gen("g")

    @sgc.function
    def calls_run(s, x):
        s += inner.run(x=x)["g"]

    @sgc.function
    def sets_options(s, x):
        s += inner.run(x=x, temperature=0.0)["g"]

    assert len(run_both(calls_run, scripted(), x="a").streams) == 2
    with pytest.raises(UsageError, match="the whole program is one run"):
        sets_options.run(x="a", backend=scripted())
