"""Programs on several engines as one."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

import sgc
from sgc.errors import BackendError, EngineUnavailable, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import Engines, connect
from sgc.runtime.executor.backends.routed import Routed
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.interface.backend import Sampling, TextRun, Usage


class Engine(ScriptedBackend):
    """Replies with the number of letters. It fails from its nth request on, or while `is_down`."""

    def __init__(self, fails_from: int | None = None, model: str = "m", says: str = "") -> None:
        super().__init__(lambda prompt, sampling: says or f"{len(prompt[0].text)} letters")
        self.asked: list[str] = []
        self.answered: list[str] = []
        self.fails_from, self.model, self.is_down = fails_from, model, False
        self.tokenizer = "one"

    def _answers(self) -> None:
        if self.is_down or (self.fails_from is not None and len(self.asked) > self.fails_from):
            raise EngineUnavailable("no engine at here")

    async def capabilities(self):
        self._answers()
        prints = {"tokenizer": self.tokenizer}
        return replace(CAPABILITIES, model=self.model, pool_tokens=4096, fingerprints=prints)

    async def generate(self, prompt, sampling, on_delta=None):
        asked = "".join(run.text for run in prompt)
        self.asked.append(asked)
        await asyncio.sleep(0)
        if on_delta is not None and self.fails_from is not None:
            on_delta("5 l")
        self._answers()
        self.answered.append(asked)
        reply = await super().generate(prompt, sampling, on_delta)
        return replace(reply, usage=Usage(prompt_tokens=100, cached_tokens=100))


@sgc.function
def two_steps(s, subject: str):
    s += "You count letters. " * 20 + subject + sgc.gen("n")
    s += " and then" + sgc.gen("more")


ROWS = [{"subject": f"subject number {n}"} for n in range(40)]


def texts(backend) -> list[str]:
    return [result.text() for result in two_steps.run_batch(ROWS, backend=Endpoint(backend))]


def test_rows_are_those_of_one_engine_and_each_is_asked_once():
    engines = [Engine(), Engine(), Engine()]
    assert texts(Routed(dict(zip("abc", engines, strict=True)))) == texts(Engine())
    asked = [text for engine in engines for text in engine.asked]
    assert len(asked) == len({*asked}) == 2 * len(ROWS)


@pytest.mark.parametrize("fails_from", [0, 1, 7])
def test_an_engine_that_ends_loses_no_row(fails_from):
    engines = [Engine(), Engine(fails_from), Engine()]
    assert texts(Routed(dict(zip("abc", engines, strict=True)))) == texts(Engine())
    answered = [text for engine in engines for text in engine.answered]
    assert len(answered) == len({*answered}) == 2 * len(ROWS)


def test_the_requests_of_one_run_stay_on_its_engine():
    engines = [Engine(), Engine()]
    routed = Endpoint(Routed(dict(zip("ab", engines, strict=True))))
    for row in ROWS[:10]:
        before = [len(engine.asked) for engine in engines]
        two_steps.run(**row, backend=routed).text()
        took = [len(engine.asked) - n for engine, n in zip(engines, before, strict=True)]
        assert sorted(took) == [0, 2]


def test_none_answers():
    routed = Routed({"grpc://one": Engine(0), "grpc://two": Engine(0)})
    with pytest.raises(EngineUnavailable, match="none of 2 engines answers") as caught:
        two_steps.run("tea", backend=Endpoint(routed)).text()
    assert "grpc://one" in str(caught.value)


def test_engines_that_were_there_are_waited_for():
    engine = Engine()
    routed = Routed({"a": engine}, reconnect_s=30)
    two_steps.run("tea", backend=Endpoint(routed)).text()
    engine.is_down = True
    threading.Timer(0.3, lambda: setattr(engine, "is_down", False)).start()
    assert "letters" in two_steps.run("milk", backend=Endpoint(routed)).text()


def test_engines_of_two_models_are_refused():
    with pytest.raises(UsageError, match="b are not of one model: m and other"):
        texts(Routed({"a": Engine(), "b": Engine(model="other")}))


def test_engines_of_two_tokenizers_are_refused():
    other = Engine()
    other.tokenizer = "two"
    with pytest.raises(UsageError, match="b are not of one model: they differ in tokenizer"):
        texts(Routed({"a": Engine(), "b": other}))


def test_one_that_comes_later_is_asked_for_its_model_first():
    async def run() -> None:
        late = Engine(model="other")
        late.is_down = True
        routed = Routed({"a": Engine(), "b": late})
        await routed.capabilities()
        late.is_down = False
        prompts = [(TextRun(letter * 200),) for letter in "abcdefgh"]
        try:
            for prompt in prompts:
                await routed.generate(prompt, Sampling(max_tokens=4))
        finally:
            assert not late.asked

    with pytest.raises(UsageError, match="not of one model"):
        asyncio.run(run())


def test_a_request_that_ends_engines_does_not_end_them_all():
    engines = {name: Engine(0) for name in "abcdef"}
    with pytest.raises(EngineUnavailable, match="no engine at here"):
        two_steps.run("tea", backend=Endpoint(Routed(engines, reconnect_s=30))).text()
    assert sum(len(engine.asked) for engine in engines.values()) == 3


@pytest.mark.parametrize(
    ("says", "told"), [("5 letters", None), ("five", "another one"), ("5", "another one")]
)
def test_a_text_that_was_begun_goes_on_as_it_was_or_is_an_error(says, told):
    async def run() -> list[str]:
        first, second = Engine(fails_from=0, says=says), Engine(says=says)
        first.fails_from = None
        routed = Routed({"a": first})
        await routed.capabilities()
        first.fails_from = 0
        routed._engines["b"] = second
        router = routed._shared.router
        assert router is not None
        parts: list[str] = []
        prompt, sampling = (TextRun("a" * 5),), Sampling(max_tokens=9)
        asking = asyncio.ensure_future(routed.generate(prompt, sampling, parts.append))
        await asyncio.sleep(0)
        router.add("b", 100)
        await asking
        return parts

    if told is None:
        assert asyncio.run(run()) == ["5 l", "etters"]
    else:
        with pytest.raises(BackendError, match=told):
            asyncio.run(run())


def test_addresses_are_separated_by_commas():
    with connect("unix:/nowhere/a,b,unix:/nowhere/c") as endpoint:
        assert isinstance(endpoint, Engines)
        assert [*endpoint.backend._engines] == ["unix:/nowhere/a,b", "unix:/nowhere/c"]
        with pytest.raises(EngineUnavailable, match="none of 2 engines"):
            two_steps.run("tea", backend=endpoint).text()
    with connect("unix:/nowhere/a,unix:/nowhere/c", reconnect_s=0, request_timeout_s=1) as endpoint:
        assert isinstance(endpoint, Engines)
    with pytest.raises(UsageError, match="named twice"):
        connect("grpc://127.0.0.1:1,grpc://127.0.0.1:1")
    with pytest.raises(UsageError, match="'openai:gpt' is no engine"):
        Engines(["grpc://127.0.0.1:1", "openai:gpt"])
