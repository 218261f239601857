"""The examples of these pages say what they say they do."""

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

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = ("http.md", "embeddings.md", "tool_calls.md")
URL = "http://127.0.0.1:30000"


@pytest.fixture(scope="module")
def tiny(http_engine: Any) -> Iterator[Any]:
    with EmbeddedEngine(None, ["--http", "0"]) as engine:
        yield type(http_engine)(engine)


def followed_by(page: str, language: str, other: str) -> list[tuple[str, str]]:
    text = (DOCS / page).read_text(encoding="utf-8")
    block = r"\n((?:(?!```).)*)```"
    return re.findall(f"```{language}{block}\n```{other}{block}", text, flags=re.DOTALL)


@pytest.mark.sweep
@pytest.mark.parametrize("page", PAGES)
def test_the_python_prints_what_is_shown(tiny: Any, page: str) -> None:
    ((code, shown),) = followed_by(page, "python", "")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code.replace(URL, tiny.url), page, "exec"), {"__name__": "docs"})
    assert printed.getvalue() == shown


@pytest.mark.parametrize(("page", "n"), [(PAGES[0], 2), (PAGES[1], 1)])
def test_the_commands_answer_what_is_shown(tiny: Any, page: str, n: int) -> None:
    pairs = followed_by(page, "sh", "json")
    assert len(pairs) == n
    for command, shown in pairs:
        words = shlex.split(command)
        path, data = words[2].removeprefix(URL), words[words.index("-d") + 1]
        assert said(tiny.ask(path, data.encode()).json) == said(json.loads(shown))


def said(reply: Any) -> Any:
    """What does not depend on when it was asked."""
    if "choices" in reply:
        return reply["object"], reply["choices"], reply["usage"]["completion_tokens"]
    if "results" in reply:
        results = [
            {**each, "relevance_score": round(each["relevance_score"], 2)}
            for each in reply["results"]
        ]
        return results, reply["scored_by"], reply["usage"]["prompt_tokens"]
    return reply["text"], reply["output_ids"], reply["meta_info"]["finish_reason"]
