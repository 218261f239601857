"""Values and arguments of runs from the outside: what they may hold, what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from runs.slow_runs import PNG, bounded
from tests_support import run_both

import sgc
from sgc.errors import ArgumentError, SgcError, UsageError
from sgc.interpreter.calls import finished
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.interface.backend import Generated
from sgc.runtime.executor.run.loop import shared

# -- values from outside ----------------------------------------------------------------------


class Special(ScriptedBackend):
    """Knows one special token, and keeps the prompts."""

    def __init__(self, reply: str) -> None:
        super().__init__(lambda p, s: reply)
        self.prompts: list[Any] = []

    async def capabilities(self) -> Any:
        return replace(CAPABILITIES, special_tokens=("<|end|>",))

    async def generate(self, prompt: Any, sampling: Any, on_delta: Any = None) -> Generated:
        self.prompts.append(prompt)
        return await super().generate(prompt, sampling, on_delta)


def _is_plain(backend: Special) -> bool:
    """Whether the last prompt has the special token, and only as plain text."""
    (part,) = backend.prompts[-1]
    at = part.text.index("<|end|>")
    return any(start <= at and at + 7 <= end for start, end in part.literal)


@pytest.mark.parametrize("row", [{"key": "<|end|>q"}, {"<|end|>q": 1}, {"key": ["<|end|>q"]}])
def test_special_tokens_in_mappings_stay_plain_text(row):
    @sgc.function(jit=False)
    def program(s, row):
        key, value = next(iter(row.items()))
        s += (key if value == 1 else "".join(value)) + sgc.gen("x")

    backend = Special("r")
    bounded(program.run(row, backend=Endpoint(backend)).sync)
    assert _is_plain(backend)


def test_special_tokens_in_messages_stay_plain_text():
    @sgc.function(jit=False)
    def quoted(s, text):
        s += "<" + text + ">" + sgc.gen("y")

    @sgc.function(jit=False)
    def program(s):
        s += sgc.user("q") + sgc.assistant(sgc.gen("x"))
        quoted(s.messages()[1]["content"])

    backend = Special("a<|end|>b")
    bounded(program.run(backend=Endpoint(backend)).sync)
    assert _is_plain(backend)


@pytest.mark.parametrize("way", ["name", "text", "nested", "path"])
def test_a_reply_names_no_file(scripted, tmp_path, way):
    path = tmp_path / "im.png"
    path.write_bytes(PNG)

    @sgc.function
    def inner(s):
        s += "f" + sgc.gen("x")
        return s["x"]

    @sgc.function(jit=False)
    def program(s):
        s += sgc.gen("x")
        found: Any = {"name": lambda: s["x"], "text": s.text, "nested": lambda: inner().ret_value,
                      "path": lambda: type(tmp_path)(s["x"])}[way]()  # fmt: skip
        s += sgc.image(found) + sgc.gen("y")

    end = scripted(lambda p, s: str(path))
    with pytest.raises(UsageError, match="generated") as raised:
        program.run(backend=end).sync()
    assert "test_run_values.py" in raised.value.where


def test_a_program_names_files_of_its_own(scripted, tmp_path):
    path = tmp_path / "im.png"
    path.write_bytes(PNG)

    @sgc.function(jit=False)
    def program(s, given):
        s += sgc.select("pick", [given]) + sgc.gen("x")
        s += sgc.image(given) + sgc.image(s["pick"]) + sgc.image(f"{given}")

    end = scripted(lambda p, s: "none")
    assert program.run(str(path), backend=end).error() is None


# -- arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "call"])
def test_a_default_is_no_annotation(scripted, way):
    @sgc.function
    def program(s, temperature=0, k=""):
        s += f"{temperature} {k}" + sgc.gen("x")

    end = scripted(lambda p, s: "r")
    run = program.run if way == "run" else program
    assert run(0.7, ["a"], backend=end).text() == "0.7 ['a']r"


def test_annotations_and_compiled_programs_keep_their_types(scripted):
    @sgc.function
    def annotated(s, k: int = 0):
        s += f"{k}" + sgc.gen("x")

    @sgc.function
    def inferred(s, k=0):
        s += f"{k}" + sgc.gen("x")

    end = scripted()
    with pytest.raises(ArgumentError, match="must be int"):
        annotated.run("a", backend=end)
    with pytest.raises(SgcError, match="must be int"):
        inferred.compile().run("a", backend=end)


def test_a_function_shows_its_parameters():
    @sgc.function
    def program(s, a, *rest, b=1, **options):
        s += a

    assert repr(program) == "<sgc.function program(a, *rest, b, **options)>"
    assert repr(program.bind(a="x")) == "<sgc.function program(a=…, *rest, b, **options)>"


def test_the_loop_still_runs():
    async def nothing() -> str:
        return "fine"

    assert bounded(lambda: shared.run(nothing())) == "fine"


def test_a_misspelt_option_is_told_what_it_may_be(scripted):
    @sgc.function
    def program(s, q):
        s += q + sgc.gen("a")

    with pytest.raises(ArgumentError, match="did you mean temperature instead of temprature"):
        program.run("q", temprature=1, backend=scripted())
    with pytest.raises(UsageError, match="max_errors must be 0 or more"):
        program.run_batch([("q",)], max_errors=-1, backend=scripted())


def test_runs_without_a_seed_differ_and_say_which(scripted):
    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g")

    seeds = {finished(program.run(backend=scripted())).seed for _ in range(3)}
    assert len(seeds) == 3
    compiled = program.compile()
    assert compiled.run(backend=scripted()).seed != compiled.run(backend=scripted()).seed


def test_choices_and_stops_from_arguments_compile(scripted):
    @sgc.function
    def program(s, a, b):
        s += "x" + sgc.gen("g", stop=a) + sgc.select("c", choices=[a, b])

    assert run_both(program, scripted(), a="!", b="?")["c"] == "!"


def test_a_none_default_is_static_and_says_so(scripted):
    @sgc.function
    def program(s, x, context: str = None):  # noqa: RUF013
        s += x + ("" if context is None else context)

    assert run_both(program, scripted(), x="a").text() == "a"
    assert run_both(program, scripted(), bind={"context": "c"}, x="a").text() == "ac"
    with pytest.raises(ArgumentError, match="was fixed when compiling"):
        program.compile().run(x="a", context="c", backend=scripted())


def test_objects_in_variables_do_not_hang_a_run(scripted):
    @sgc.function
    def program(s):
        s["o"] = object()
        s += "x" + sgc.gen("g")
        return s["o"]

    for _ in range(50):
        assert type(finished(program.run(backend=scripted())).ret_value) is object


def test_wrong_kinds_are_refused(scripted):
    @sgc.function
    def typed(s, n: int):
        s += f"{n}"

    with pytest.raises(ArgumentError, match="'n' must be int"):
        typed.run(n="notint", backend=scripted())
    with pytest.raises(ArgumentError, match="'n' must be int"):
        typed.compile(n=1.5)
    with pytest.raises(UsageError, match="is a method"):

        class Holder:
            @sgc.function
            def m(self, s):
                pass

    with pytest.raises(UsageError, match="positional-only"):

        @sgc.function
        def positional(s, x, /):
            pass

    @sgc.function
    def text_choices(s):
        s += sgc.select("c", "yes")

    with pytest.raises(UsageError, match="must be a list of texts"):
        text_choices.run(backend=scripted())
    with pytest.raises(UsageError, match="backend must be"):
        typed.run(n=1, backend="http://x")
    with pytest.raises(AttributeError, match="sgc has no 'audio'"):
        sgc.audio  # noqa: B018
