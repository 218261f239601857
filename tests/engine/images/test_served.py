"""Images over gRPC: programs, and what a model without images says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vision_engine import Reference
from vision_folders import SHOWN, picture, png

import sgc
from sgc.errors import SgcError
from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend


@pytest.fixture(scope="module", params=["qwen2_vl", pytest.param("llava", marks=pytest.mark.slow)])
def served(request: Any, folder_of: Callable[[str], Path]) -> Iterator[tuple[str, Any, str]]:
    arguments = ["--check", "--pool-tokens", "4000"]
    with EmbeddedEngine(str(folder_of(request.param)), arguments) as engine:
        yield request.param, sgc.connect(engine.uri), engine.uri


@sgc.function
def ask(s, path: str, question: str):
    s += sgc.user(sgc.image(path) + question)
    s += sgc.assistant(sgc.gen("answer", max_tokens=8, temperature=0, ignore_eos=True))


@sgc.function
def compare(s, one: str, two: str):
    s += "first " + sgc.image(one) + " second " + sgc.image(two)
    forks = s.fork(3)
    for i, fork in enumerate(forks):
        fork += f" question {i}: " + sgc.gen("answer", max_tokens=6, temperature=0, ignore_eos=True)
    s["all"] = "|".join(fork["answer"] for fork in forks)


def _stats(uri: str) -> pb.Stats:
    async def main() -> pb.Stats:
        async with EngineBackend(uri) as backend:
            return await backend.stats()

    return asyncio.run(main())


def _text(name: str, *contents: str) -> str:
    image = SHOWN[name]
    return "".join(image if part == "IMAGE" else part for part in contents)


@pytest.mark.slow
def test_programs_see_as_transformers_does(served, folder_of, tmp_path: Path) -> None:
    name, endpoint, _ = served
    path = tmp_path / "one.png"
    path.write_bytes(png(picture(1)))
    run = ask.run(path=str(path), question="What is it?", backend=endpoint)
    reference = Reference(name, folder_of(name))
    text = _text(name, "<|im_start|>user\n", "IMAGE", "What is it?<|im_end|>\n",
                 "<|im_start|>assistant\n")  # fmt: skip
    ids = reference.ask(text, [picture(1)])
    expected = reference.tokenizer.decode(ids, skip_special_tokens=True)
    assert run["answer"] == expected
    compiled = ask.compile().run(path=str(path), question="What is it?", backend=endpoint)
    assert compiled["answer"] == expected


@pytest.mark.slow
def test_forks_share_images(served, tmp_path: Path) -> None:
    _, endpoint, uri = served
    paths = [tmp_path / "one.png", tmp_path / "two.png"]
    for i, path in enumerate(paths):
        path.write_bytes(png(picture(3 + i)))
    before = _stats(uri)
    run = compare.run(one=str(paths[0]), two=str(paths[1]), backend=endpoint)
    assert run["all"].count("|") >= 2
    after = _stats(uri)
    assert after.encoded_images - before.encoded_images == 2
    again = compare.run(one=str(paths[0]), two=str(paths[1]), backend=endpoint)
    assert again["all"] == run["all"]
    last = _stats(uri)
    assert last.encoded_images == after.encoded_images
    assert last.cached_tokens - after.cached_tokens > 30


@pytest.mark.slow
def test_a_model_of_text_says_so(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    path.write_bytes(png(picture(1)))
    with EmbeddedEngine("default", []) as engine:
        endpoint = sgc.connect(engine.uri)
        with pytest.raises(SgcError, match="does not take images"):
            _ = ask.run(path=str(path), question="?", backend=endpoint)["answer"]
