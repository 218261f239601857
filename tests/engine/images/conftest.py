"""Tiny vision-language models, and their engines in this process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from vision_engine import Engine
from vision_folders import TOKENS, save


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    @cache
    def made(name: str) -> Path:
        return save(name, tmp_path_factory.mktemp("vision") / name)

    return made


@pytest.fixture(scope="session")
def engine_of(folder_of: Callable[[str], Path]) -> Callable[..., Engine]:
    def made(name: str, **options: Any) -> Engine:
        return Engine(folder_of(name), TOKENS[name], **options)

    return made
