"""Rows that hold data of their own share a program."""

from __future__ import annotations

from typing import Any

import pytest
from control_flow import replying

import sgc
from sgc.programs import compiling
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend

N_ROWS = 1000
ROWS = [
    {
        "passages": [f"passage {i} {j}" for j in range(1 + i % 5)],
        "history": [{"role": "user", "content": f"{i} {j}"} for j in range(1 + i % 3)],
        "question": str(i),
    }
    for i in range(N_ROWS)
]


@pytest.fixture
def compiled(monkeypatch):
    """What is given for its value to each compilation."""
    found: list[dict[str, Any]] = []
    compile_function = compiling.compile_function

    def counting(function, bind, **options):
        found.append(bind)
        return compile_function(function, bind, **options)

    monkeypatch.setattr(compiling, "compile_function", counting)
    return found


def ask(s, passages, history, question):
    for number, passage in enumerate(passages):
        s += f"[{number}] {passage}\n"
    for message in history:
        s += f"{message['role']}: {message['content']}\n"
    s += question + sgc.gen("answer", max_tokens=8)


def ask_annotated(
    s, passages: list[str], history: list[dict[str, str]], question: str
):  # fmt: skip
    ask(s, passages, history, question)


@pytest.mark.sweep
@pytest.mark.parametrize("python", [ask, ask_annotated], ids=lambda python: python.__name__)
def test_a_thousand_rows_of_different_data_compile_once(compiled, python):
    function = sgc.function(python)
    endpoint = Endpoint(ScriptedBackend(lambda prompt, sampling: "a"))
    states = function.run_batch(ROWS, backend=endpoint)
    assert compiled == [{}]
    assert len(states) == N_ROWS
    assert all(state.text().startswith(f"[0] passage {i} 0\n") for i, state in enumerate(states))
    assert function.explain().endswith(
        "(passages: list[str], history: list[dict[str, str]], question: text): compiled"
    )


def test_a_value_is_part_of_the_signature_only_where_tracing_needs_it(compiled):
    @sgc.function
    def p(s, history: list[dict[str, str]], topics: list[str]):
        for message in history:
            s += message["content"]
        for topic in topics:
            s += topic + sgc.gen(topic, max_tokens=4)

    rows = [{"history": row["history"], "topics": ["a", "b"]} for row in ROWS[:100]]
    p.run_batch(rows, backend=Endpoint(ScriptedBackend(lambda prompt, sampling: "a")))
    assert compiled[-1] == {"topics": ["a", "b"]}
    assert len(compiled) <= 3
    assert "compiled for its values: test_jit_data.py" in p.explain()


def test_values_that_do_not_fit_the_annotation_are_part_of_the_signature(compiled):
    @sgc.function
    def p(s, row: dict[str, str]):
        s += str(row["a"]) + sgc.gen("r", max_tokens=4)

    for row in ({"a": "x"}, {"a": "y"}, {"a": 3}):
        state = p(row=row, backend=replying(1, ["z"]))
        assert state.text() == f"{row['a']}z"
    assert compiled == [{}, {"row": {"a": 3}}]


def test_types_of_elements_are_told_apart(compiled):
    @sgc.function
    def p(s, row):
        s += f"{row['n']}" + sgc.gen("r", max_tokens=4)

    for row in ({"n": 1, "t": "a"}, {"n": 2, "t": "b"}, {"n": "x", "t": "b"}, {"n": "y", "u": ""}):
        assert p(row=row, backend=replying(1, ["z"])).text() == f"{row['n']}z"
    assert compiled == [{}, {}]
