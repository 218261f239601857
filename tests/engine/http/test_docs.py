"""The examples of docs/http.md say what it says they do."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from sgc.runtime.engine.launch import EmbeddedEngine

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "http.md").read_text(encoding="utf-8")
URL = "http://127.0.0.1:30000"


@pytest.fixture(scope="module")
def tiny(http_engine: Any) -> Iterator[Any]:
    with EmbeddedEngine(None, ["--http", "0"]) as engine:
        yield type(http_engine)(engine)


def followed_by(language: str, other: str) -> list[tuple[str, str]]:
    block = r"\n((?:(?!```).)*)```"
    return re.findall(f"```{language}{block}\n```{other}{block}", TEXT, flags=re.DOTALL)


def test_the_python_prints_what_is_shown(tiny: Any) -> None:
    ((code, shown),) = followed_by("python", "")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code.replace(URL, tiny.url), "docs/http.md", "exec"), {"__name__": "docs"})
    assert printed.getvalue() == shown


def test_the_commands_answer_what_is_shown(tiny: Any) -> None:
    pairs = followed_by("sh", "json")
    assert len(pairs) == 2
    for command, shown in pairs:
        words = shlex.split(command)
        path, data = words[2].removeprefix(URL), words[words.index("-d") + 1]
        assert said(tiny.ask(path, data.encode()).json) == said(json.loads(shown))


def said(reply: Any) -> Any:
    """What does not depend on when it was asked."""
    if "choices" in reply:
        return reply["object"], reply["choices"], reply["usage"]["completion_tokens"]
    return reply["text"], reply["output_ids"], reply["meta_info"]["finish_reason"]
