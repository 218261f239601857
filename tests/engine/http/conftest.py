"""An engine on the fake model with its HTTP face, and a plain client for what no SDK would send."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from openai import OpenAI
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers
from waiting import BOUND_S

from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.text.tokenizer import Tokenizer, load_tokenizer

ARGUMENTS = ["--check", "--max-context", "4096", "--pool-tokens", "20000", "--http", "0"]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> Any:
        return self.json["error"]

    @property
    def events(self) -> list[Any]:
        """Of a stream that ended as it should."""
        lines = [line for line in self.text.split("\n\n") if line]
        assert lines.pop() == "data: [DONE]"
        return [json.loads(line.removeprefix("data: ")) for line in lines]


class HttpEngine:
    """A running engine: `url`, gRPC's `uri`, and `ask`."""

    def __init__(self, engine: EmbeddedEngine, token: str | None = None) -> None:
        said = engine.stderr_tail.splitlines()
        self.engine = engine
        self.uri = engine.uri
        self.url = next(x.removeprefix("HTTP on ") for x in said if x.startswith("HTTP on "))
        self.token = token

    @property
    def host(self) -> str:
        """As `Host` has it."""
        return urlsplit(self.url).netloc

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def ask(self, path: str, body: Any = None, method: str | None = None, **headers: str) -> Answer:
        """body: bytes as they are, anything else as JSON."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.host, timeout=BOUND_S)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method or ("GET" if data is None else "POST"), path, data, named)
        answer = connection.getresponse()
        found = Answer(answer.status, dict(answer.getheaders()), answer.read().decode())
        connection.close()
        return found

    def client(self, **options: Any) -> OpenAI:
        return OpenAI(base_url=self.url + "/v1", api_key="none", max_retries=0, **options)


@pytest.fixture(scope="session")
def shared_engine() -> Iterator[HttpEngine]:
    with EmbeddedEngine("fake", ARGUMENTS) as engine:
        yield HttpEngine(engine)


@pytest.fixture(scope="module")
def http_engine(shared_engine: HttpEngine) -> HttpEngine:
    """With an empty cache: each step checks all that is in it."""
    assert shared_engine.ask("/flush_cache", method="POST").status == 200
    return shared_engine


@pytest.fixture(scope="module")
def ask(http_engine: HttpEngine) -> Callable[..., Answer]:
    return http_engine.ask


@pytest.fixture(scope="session")
def client(shared_engine: HttpEngine) -> Iterator[OpenAI]:
    with shared_engine.client() as made:
        yield made


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return load_tokenizer(DEFAULT_FOLDER)


@pytest.fixture(scope="session")
def sentencepiece_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """A folder with a tokenizer like Llama 2's, whose tokens by themselves lose a leading space."""

    def make() -> Path:
        folder = tmp_path_factory.mktemp("spm")
        backend = Backend(models.BPE(unk_token="<unk>", fuse_unk=True))
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
        replace = decoders.Replace("▁", " ")
        backend.decoder = decoders.Sequence([replace, decoders.Fuse(), decoders.Strip(" ", 1, 0)])
        trainer = trainers.BpeTrainer(
            vocab_size=60, special_tokens=["<unk>", "</s>"], show_progress=False
        )
        backend.train_from_iterator(["the dog and the dog"] * 3, trainer)
        (folder / "tokenizer.json").write_text(backend.to_str(), encoding="utf-8")
        (folder / "tokenizer_config.json").write_text('{"eos_token": "</s>"}', encoding="utf-8")
        return folder

    return make
