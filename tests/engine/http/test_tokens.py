"""Several tokens: whoever holds one opens everything, and sees nothing of the others' prefixes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sgc.runtime.engine.launch import EmbeddedEngine

STORY = "The whole of a long story that all of them begin with. " * 8


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, http_engine: Any) -> Iterator[Any]:
    """An engine that knows two tokens."""
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.write_text("# two of them\nalpha\nbeta\n")
    arguments = ["--http", "0", "--check", "--token-file", str(file), "--max-context", "4096"]
    with EmbeddedEngine("fake", arguments) as engine:
        yield type(http_engine)(engine)


def cached(engine: Any, path: str, token: str, salt: str = "") -> int:
    """The cached tokens of the story, asked with that token and salt."""
    if path == "/generate":
        body: dict[str, Any] = {"text": STORY, "sampling_params": {"max_new_tokens": 1}}
        name = "extra_key"
    else:
        body = {"model": "fake", "max_tokens": 1, "prompt": STORY}
        if "chat" in path:
            body |= {"messages": [{"role": "user", "content": body.pop("prompt")}]}
        name = "cache_salt"
    answer = engine.ask(
        path, body | ({name: salt} if salt else {}), Authorization=f"Bearer {token}"
    )
    assert answer.status == 200, answer.text
    if path == "/generate":
        return int(answer.json["meta_info"]["cached_tokens"])
    return int(answer.json["usage"]["prompt_tokens_details"]["cached_tokens"])


@pytest.mark.sweep
@pytest.mark.parametrize("path", ["/generate", "/v1/completions", "/v1/chat/completions"])
def test_tokens_share_no_prefix(shared: Any, path: str) -> None:
    right = {"Authorization": "Bearer alpha"}
    assert shared.ask("/flush_cache", b"", **right).status == 200
    for salt in ("", "x"):
        assert cached(shared, path, "alpha", salt) == 0
        assert cached(shared, path, "alpha", salt) > 100
        assert cached(shared, path, "beta", salt) == 0
        assert cached(shared, path, "beta", salt) > 100


def test_whoever_has_none_of_them_is_refused(shared: Any) -> None:
    for given in ("", "Bearer ", "Bearer gamma", "Bearer # two of them", "Bearer alpha\xe9"):
        assert shared.ask("/v1/models", Authorization=given).status == 401
    for token in ("alpha", "beta"):
        assert shared.ask("/v1/models", Authorization=f"Bearer {token}").status == 200
