"""Joins whose parts may be encoded side by side: what an engine that can is asked, and that others
are asked as for exact joins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests_support import asked, at_levels, results, run_both

import sgc
from sgc.errors import UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.interface.backend import Joined, Prompt, Sampling, TextRun, TokenRun
from sgc.runtime.executor.keep.request_keys import generation_key
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult


def reply(prompt: Prompt, _: Any) -> str:
    return f"<{sum(map(ord, ''.join(run.text for run in prompt))) % 97}>"


class Joining(ScriptedBackend):
    """Takes joined prompts, and notes what it is asked."""

    def __init__(self) -> None:
        super().__init__(self._noted)
        self.prompts: list[Prompt] = []

    def _noted(self, prompt: Prompt, sampling: Any) -> str:
        self.prompts.append(prompt)
        return reply(prompt, sampling)

    async def capabilities(self):
        return replace(CAPABILITIES, joins=True)


def run(kv: str, backend: ScriptedBackend) -> RunResult:
    return program_of(kv).run_once({"topic": "tea"}, RunOptions(seed=7), Endpoint(backend))


def program_of(kv: str) -> sgc.Function:
    @sgc.function
    def program(s, topic):
        s += "about " + topic + ":"
        forks = s.fork(3)
        for n, fork in enumerate(forks):
            fork += f" part {n} " + sgc.gen("part") + "."
            if n == 1:
                inner = fork.fork(2)
                inner += [" left ", " right "]
                inner += sgc.gen("deep")
                inner.join("concate_and_append", kv=kv)
        forks.join("concate_and_append", kv=kv)
        s += " so " + sgc.gen("end")
        again = s.fork(2)
        again += sgc.gen("more")
        again.join("concate_and_append", kv=kv)
        s += sgc.gen("last")
        return s["last"]

    return program


def test_an_engine_that_joins_is_told_the_parts():
    backend = Joining()
    result = run_both(program_of("approximate"), Endpoint(backend), topic="tea")
    last = next(p for p in backend.prompts if len([r for r in p if isinstance(r, Joined)]) == 2)
    trunk, first, between, end, second = last
    assert trunk == TextRun("about tea:")
    assert (between.text, type(end)) == (" so ", TokenRun)
    assert [type(run) for run in first.parts[0]] == [TextRun, TokenRun, TextRun]
    assert [type(run) for run in first.parts[1]] == [TextRun, TokenRun, TextRun, Joined]
    begins = [part[0].text for part in first.parts]
    assert begins == [" part 0 ", " part 1 ", " part 2 "]
    assert len(second.parts) == 2
    assert result.text().startswith("".join(run.text for run in last))


def test_others_are_asked_as_for_exact_joins():
    approximate, exact = (
        program_of(kv).run_once(
            {"topic": "tea"}, RunOptions(seed=7), Endpoint(ScriptedBackend(reply))
        )
        for kv in ("approximate", "exact")
    )
    assert asked(approximate) == asked(exact)
    assert results(approximate) == results(exact)


def test_texts_and_variables_do_not_depend_on_whether_an_engine_joins():
    found = [run("approximate", backend) for backend in (ScriptedBackend(reply), Joining())]
    assert results(found[0]) == results(found[1])


def test_equal_texts_with_other_parts_are_other_requests():
    a, b = TextRun("a"), TextRun("b")
    ways = [
        (Joined(((a,), (b,))),), (Joined(((a, b),)),), (TextRun("ab"),), (a, Joined(((b,),))),
        (Joined(((Joined(((a,), (b,))),),)),),
    ]  # fmt: skip
    keys = {generation_key(way, Sampling(max_tokens=1, temperature=0)) for way in ways}
    assert len(keys) == len(ways)


def test_a_generation_whose_text_is_joined_is_not_marked_last():
    """Its tokens are wanted again, as they are."""
    for kv, n_marked in (("exact", 7), ("approximate", 1)):
        program = at_levels(program_of(kv))[-1]
        marked = [node for node in program.graph.nodes() if "last" in dict(node.fields)]
        assert len(marked) == n_marked, kv


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kv": "approximate"}, "'gather_variable' takes no kv='approximate'"),
        ({"mode": "concate_and_append", "kv": "near"}, "takes no kv='near'"),
        ({"mode": "first", "kv": "approximate"}, "'first' takes no kv="),
    ],
)
def test_other_joins_take_no_kv(options, words):
    @sgc.function
    def program(s):
        s += "x"
        s.fork(2).join(**options)

    with pytest.raises(UsageError, match=words) as caught:
        program.run(backend=Endpoint(ScriptedBackend(reply)))
    assert "concate_and_append" in caught.value.hint
