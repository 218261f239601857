"""An engine in eight bits: who starts it is told what they cost, and so is every client."""

from __future__ import annotations

import asyncio

import pytest
from engine.server.test_serve import refused

from sgc.kernels.cpu import library
from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend

needs_kernels = pytest.mark.skipif(library.find() is None, reason=library.reason())


def info_of(*arguments: str) -> pb.Info:
    """What an engine of the default model tells of itself."""

    async def ask() -> pb.Info:
        async with (
            EmbeddedEngine(None, arguments) as engine,
            EngineBackend(engine.uri) as backend,
        ):
            return await backend.info()

    return asyncio.run(ask())


@pytest.mark.slow
@needs_kernels
def test_an_engine_tells_what_eight_bits_cost(capfd) -> None:
    info = info_of("--weights", "int8", "--kv", "int8")
    assert (info.weights, info.kv) == ("int8", "int8")
    assert info.dtype == "float32"
    found = info.accuracy
    assert found.tokens == 256
    assert 0 < found.divergence < 0.05
    assert abs(found.cross_entropy - found.own_cross_entropy) < 0.1
    assert 0.9 < found.equal_share <= 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(
        "sgc: in eight bits: weights, K and V; on 256 tokens of text a cross-entropy"
    )


@pytest.mark.slow
@needs_kernels
def test_an_engine_in_the_models_dtype_measures_nothing(capfd) -> None:
    info = info_of()
    assert (info.weights, info.kv) == ("float32", "float32")
    assert not info.HasField("accuracy")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("option", ["--weights", "--kv"])
def test_the_fake_model_has_neither(option) -> None:
    status, said = refused(option, "int8")
    assert status == 2
    assert "are for real models" in said
