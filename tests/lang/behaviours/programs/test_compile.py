"""`compile`, `explain` and `cache` of a function."""

from __future__ import annotations

import pytest
from lang.behaviours.shared import by_text, greet

import sgc
from sgc import errors


def test_compile_gives_a_program_with_run_run_batch_and_a_text(recorded):
    """SGLang's `CompiledFunction` takes keywords only, knows no defaults, loses what is returned,
    and runs nothing that its last node does not need."""
    program = greet.compile(backend=recorded())
    result = program.run("ann", backend=recorded(by_text))
    assert (result.text(), result["reply"]) == ("hello ann!<hello ann!>", "<hello ann!>")
    assert result.ret_value == "ann"
    assert program.run(name="ann", backend=recorded(), max_new_tokens=3).text().endswith("reply")
    rows = program.run_batch([{"name": "ann"}, ("bob", "?")], backend=recorded(by_text))
    assert [row["reply"] for row in rows] == ["<hello ann!>", "<hello bob?>"]
    assert "gen" in program.text()


def test_explain_tells_what_was_compiled(recorded):
    @sgc.function
    def program(s, x):
        s += x + sgc.gen("g")

    assert "has not been called" in program.explain()
    program("a", backend=recorded()).sync()
    program("b", backend=recorded()).sync()
    assert program.explain() == "program(x: text): compiled"

    @sgc.function(jit=False)
    def never(s):
        s += "x"

    assert "always interpreted" in never.explain()


def test_explain_tells_why_something_is_interpreted(recorded):
    @sgc.function
    def program(s, x):
        s += "a" if x.startswith("b") else "c"
        s += "z" if x in globals() else ""

    state = program("bb", backend=recorded())
    assert state.text() == "a"
    assert state.how.startswith("interpreted: ")
    assert "test_compile.py:" in program.explain()


def test_full_graph_makes_it_an_error(recorded):
    @sgc.function(full_graph=True)
    def program(s, x):
        s += "z" if hash(x) is None else ""

    with pytest.raises(errors.TraceError, match="full_graph is set"):
        program("x", backend=recorded())


LONG = "a constant beginning of more than sixty-four characters, which every run has; "


def test_cache_has_the_backend_keep_the_constant_beginning(recorded):
    endpoint = recorded()

    @sgc.function
    def program(s, x):
        s += sgc.system(LONG)
        s += sgc.user(x)

    program.cache(endpoint)
    assert endpoint.backend.commits == [f"<|system|>{LONG}<|end|><|user|>"]
    assert endpoint.asked == []


def test_cache_at_a_server_is_a_request_of_no_tokens(served, server):
    @sgc.function
    def program(s, x):
        s += LONG + x

    program.cache(backend=served())
    (body,) = server.requests
    assert body["text"] == LONG
    assert body["sampling_params"]["max_new_tokens"] == 0


def test_cache_of_a_program_without_a_constant_beginning(recorded):
    endpoint = recorded()

    @sgc.function
    def program(s, x):
        s += x

    program.cache(endpoint)
    assert endpoint.backend.commits == []
