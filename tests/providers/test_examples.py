"""Every example on scripted providers: texts as the script says, compiled as interpreted."""

from __future__ import annotations

import importlib.util
import json
import zlib
from pathlib import Path

import pytest
from tests_support import asked, one_in, results

import sgc
from sgc.errors import UnsupportedParameter
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.providers.wire.messages import conversation_of
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ARGUMENTS = {
    "tip_suggestion": {"topic": "staying healthy"},
    "essay_judge": {"essay": "Tea is older than paper."},
    "few_shot": {"question": "What do cows drink?"},
    "chat": {"first": "What is tea?", "second": "And coffee?"},
    "extract": {"text": "Ada Moor was born in 1970."},
    "react": {"question": "What is 12 times 7?"},
    "router": {"question": "What is the capital of Peru?"},
    "json_retry": {"text": "Ada Moor was born in 1970."},
    "tree_of_thought": {"question": "What is 3 and 4?"},
    "self_consistency": {"question": "What is 3 and 4?"},
    "map_reduce": {"chunks": ["Tea grows in the hills.", "Ships carry it.", "It is drunk hot."]},
}
# What a provider cannot do: continue a begun message, or heal a token.
CANNOT = {("chat", "gpt-4o"): "begun assistant message", ("extract", "*"): "cannot honour heal"}
OPTIONS = RunOptions(seed=5)


def script(text: str) -> str:
    """The reply after a text; it runs on beyond any stop."""
    if text.endswith("alone."):
        return '{"name": "Ada", "job": "baker"}'
    number = zlib.crc32(text.encode())
    return f"word {number % 7} answer. {number % 3}: more\nand END of it"


def index(text: str, choices) -> int:
    return zlib.crc32(text.encode()) % len(choices)


class Oracle(ScriptedBackend):
    """The same script with no provider between, for the same roles."""

    def __init__(self, capabilities):
        def said(prompt):
            found = conversation_of(prompt, "oracle")
            return "".join(message.text for message in found.messages) + found.prefill

        super().__init__(
            lambda prompt, sampling: script(said(prompt)),
            lambda prompt, choices: index(said(prompt), choices),
        )
        self._given = capabilities

    async def capabilities(self):
        return self._given


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(ARGUMENTS)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "model"), one_in(3, [*ARGUMENTS], ["gpt-4o", "claude-haiku-4-5", "served"])
)
def test_examples_give_what_the_script_says(serve, ask, name, model):
    server = serve(
        reply=lambda ask: script(ask.text),
        prefer=lambda ask, choices: choices[index(ask.text, choices)],
        owned_by="vllm",
    )
    endpoint = ask(server, model)
    program, arguments = getattr(load(name), name), ARGUMENTS[name]
    words = CANNOT.get((name, model)) or CANNOT.get((name, "*"))
    if words:
        with pytest.raises(UnsupportedParameter, match=words) as error:
            program.run_once(arguments, OPTIONS, endpoint)
        assert f"{name}.py:" in error.value.where
        return
    interpreted = program.run_once(arguments, OPTIONS, endpoint)
    oracle = Endpoint(Oracle(shared.run(endpoint.backend.capabilities())))
    assert results(interpreted) == results(program.run_once(arguments, OPTIONS, oracle))
    compiled = program.compile(check=False).run_once(arguments, OPTIONS, endpoint)
    assert results(compiled) == results(interpreted)
    assert asked(compiled) == asked(interpreted)


def test_a_log_goes_on_without_asking_again(serve, ask, tmp_path):
    server = serve(reply=lambda ask: script(ask.text))
    endpoint = ask(server, "gpt-4o")
    program, path = load("few_shot").few_shot, str(tmp_path / "run.log")
    with sgc.RunLog.open(path) as log:
        first = program.run(**ARGUMENTS["few_shot"], backend=endpoint, log=log, seed=3)
        text = first.text()
    with sgc.RunLog.open(path) as log:
        again = program.run(**ARGUMENTS["few_shot"], backend=endpoint, log=log)
        assert again.text() == text
    assert len(server.asks) == 1


def test_a_choice_is_in_the_log(serve, ask, tmp_path):
    server = serve(reply=lambda ask: script(ask.text))
    endpoint, path = ask(server, "gpt-4o"), str(tmp_path / "run.log")

    @sgc.function
    def program(s):
        s += "x" + sgc.select("a", ["b", "c"])

    for _ in range(2):
        with sgc.RunLog.open(path) as log:
            assert program.run(backend=endpoint, log=log, seed=3)["a"] == "b"
    assert len(server.asks) == 1
    assert json.loads(Path(path).read_text().splitlines()[-1])["reply"]["chosen"] == 0
