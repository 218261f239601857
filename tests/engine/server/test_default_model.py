"""The default model, served for real."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backend import Sampling, TextRun
from sgc.runtime.executor.engine_backend import EngineBackend


@pytest.mark.slow
def test_default_model_gives_varied_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGC_CACHE_DIR", str(tmp_path))

    async def main() -> None:
        async with EmbeddedEngine() as engine, EngineBackend(engine.uri) as backend:
            capabilities = await backend.capabilities()
            assert (capabilities.model, capabilities.max_context) == ("default", 8192)
            greedy = Sampling(max_tokens=100, temperature=0.0, ignore_eos=True)
            result = await backend.generate((TextRun("Hello"),), greedy)
            assert len(set(result.ids)) > 50
            assert "\ufffd" not in result.text

    asyncio.run(main())
