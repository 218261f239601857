"""An engine with two adapters: chosen by request on each of its faces, side by side in one batch,
and with nothing cached in common."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import transformers
from lora_folders import merged, save_adapter
from waiting import BOUND_S

import sgc
from sgc.cli import main
from sgc.errors import BackendError, NotRecorded, UsageError
from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Generated, Prompt, Sampling, TextRun

TEXT = "The lighthouse stood at the end of a long pier, and every evening"
PROMPT: Prompt = (TextRun(TEXT),)
GREEDY = Sampling(max_tokens=12, temperature=0.0)
NAMES = ("", "sql", "team/chat")


@dataclass(frozen=True)
class Served:
    """folders: of the adapters. texts: what transformers says after `TEXT` with each of them."""

    engine: EmbeddedEngine
    url: str
    folders: dict[str, Path]
    texts: dict[str, str]

    def http(self, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=BOUND_S) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("adapters")
    model = transformers.AutoModelForCausalLM.from_pretrained(DEFAULT_FOLDER, dtype="float32")
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEFAULT_FOLDER)
    ids = tokenizer(TEXT, return_tensors="pt")
    files = {
        "sql": save_adapter(model, path / "one", seed=1, strength=0.12),
        "team/chat": save_adapter(
            model, path / "two", seed=2, rank=8, strength=0.12, adapts=lambda name: "q_" in name
        ),
    }
    texts = {}
    for name, each in {"": model, **{n: merged(model, f) for n, f in files.items()}}.items():
        found = each.generate(**ids, max_new_tokens=12, do_sample=False, eos_token_id=None)
        new = found[0][ids["input_ids"].shape[1] :]
        texts[name] = tokenizer.decode(new, skip_special_tokens=True)
    assert len(set(texts.values())) == 3
    folders = {name: each.folder for name, each in files.items()}
    options = [f"--adapter={name}={folder}" for name, folder in folders.items()]
    arguments = ["--check", "--dtype", "float32", "--pool-tokens", "4096", "--http", "0"]
    with EmbeddedEngine(None, [*options, *arguments]) as engine:
        said = engine.stderr_tail.splitlines()
        assert "adapters: sql (rank 4), team/chat (rank 8)" in said
        url = next(line.removeprefix("HTTP on ") for line in said if line.startswith("HTTP on "))
        yield Served(engine, url, folders, texts)


def asked(served: Served, work: Any) -> Any:
    async def run() -> Any:
        async with EngineBackend(served.engine.uri) as backend:
            await backend.flush_cache()
            return await work(backend)

    return asyncio.run(asyncio.wait_for(run(), BOUND_S))


def adapted(backend: EngineBackend, name: str) -> EngineBackend:
    return backend.with_adapter(name) if name else backend


GREEDY_ON = Sampling(max_tokens=12, temperature=0.0, ignore_eos=True)


@pytest.mark.slow
def test_each_text_is_the_merged_models_also_beside_others(served: Served) -> None:
    async def work(backend: EngineBackend) -> list[Generated]:
        names = [*NAMES, *NAMES]  # two rows of each in one batch
        asks = [adapted(backend, name).generate(PROMPT, GREEDY_ON) for name in names]
        return await asyncio.gather(*asks)

    texts = [reply.text for reply in asked(served, work)]
    assert texts == [served.texts[name] for name in (*NAMES, *NAMES)]


def test_no_hit_crosses_adapters(served: Served) -> None:
    async def work(backend: EngineBackend) -> list[tuple[int, int]]:
        found = []
        for name in ("", "sql", "team/chat", "sql", "", "team/chat"):
            usage = (await adapted(backend, name).generate(PROMPT, GREEDY)).usage
            found.append((usage.cached_tokens, usage.computed_tokens))
        return found

    first, *later = asked(served, work)
    n = sum(first)
    assert [first, *later] == [(0, n)] * 3 + [(n - 1, 1)] * 3


def test_scores_commits_and_embeddings_are_the_adapters(served: Served) -> None:
    async def work(backend: EngineBackend) -> list[Any]:
        found = []
        for name in NAMES:
            view = adapted(backend, name)
            committed = await view.commit_prefix(PROMPT)
            scored = await view.score(PROMPT, (" he", " the sea"))
            vectors = await view.embed([TEXT])
            assert committed.cached_tokens == 0
            assert scored.usage.cached_tokens > 10
            found.append((tuple(choice.logprobs for choice in scored.choices), vectors[0]))
        return found

    found = asked(served, work)
    assert len({scores for scores, _ in found}) == len({vector for _, vector in found}) == 3


def test_a_name_that_is_none(served: Served) -> None:
    async def work(backend: EngineBackend) -> None:
        view = backend.with_adapter("other")
        with pytest.raises(UsageError, match="no adapter 'other'; it has: sql, team/chat"):
            await view.capabilities()
        with pytest.raises(BackendError, match="no adapter 'other'; this engine has: sql, te"):
            await view.generate(PROMPT, GREEDY)

    asked(served, work)


class TestPrograms:
    @staticmethod
    def program() -> Any:
        @sgc.function
        def goes_on(s: Any, text: str) -> None:
            s += text + sgc.gen("more", max_tokens=12, temperature=0, ignore_eos=True)

        return goes_on

    def test_a_runs_option(self, served: Served, tmp_path: Path) -> None:
        program = self.program()
        with sgc.RemoteEngine(served.engine.uri) as endpoint:
            for name in NAMES:
                given = {"backend": endpoint, "adapter": name}
                assert program(TEXT, **given)["more"] == served.texts[name]
                assert program.run(TEXT, **given)["more"] == served.texts[name]
                found = program.run_batch([{"text": TEXT}] * 2, **given)
                assert [state["more"] for state in found] == [served.texts[name]] * 2
                compiled = program.compile().run(TEXT, **given)
                assert compiled["more"] == served.texts[name]
            with pytest.raises(UsageError, match="no adapter 'other'"):
                program(TEXT, backend=endpoint, adapter="other").sync()
            with pytest.raises(UsageError, match="adapter must be a name, found 3"):
                program.run(TEXT, backend=endpoint, adapter=3)

    def test_what_is_kept_knows_the_adapter(self, served: Served, tmp_path: Path) -> None:
        program = self.program()
        kept = sgc.cached(sgc.RemoteEngine(served.engine.uri), tmp_path / "cache")
        with sgc.record(kept, tmp_path / "file") as recorded:
            for _ in range(2):
                for name in ("", "sql"):
                    state = program(TEXT, backend=recorded, adapter=name)
                    assert state["more"] == served.texts[name]
        with sgc.replay(tmp_path / "file") as again:
            for name in ("sql", ""):
                assert program(TEXT, backend=again, adapter=name)["more"] == served.texts[name]
            with pytest.raises(NotRecorded):
                program(TEXT, backend=again, adapter="team/chat").sync()

    def test_the_command_line(
        self, served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "goes_on.py"
        path.write_text(
            "import sgc\n\n@sgc.function\ndef goes_on(s, text):\n"
            "    s += text + sgc.gen('more', max_tokens=12, temperature=0, ignore_eos=True)\n"
        )
        arguments = ["run", str(path), "--engine", served.engine.uri, "--arg", f"text={TEXT}"]
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--adapter", "sql", "--json"])
        assert ended.value.code in (0, None)
        assert json.loads(capsys.readouterr().out)["variables"]["more"] == served.texts["sql"]
        with pytest.raises(SystemExit):
            main([*arguments, "--adapter", f"sql={tmp_path}"])
        assert "is for an engine to start" in capsys.readouterr().err


class TestHttp:
    def test_models_and_completions(self, served: Served) -> None:
        listed = served.http("/v1/models")[1]["data"]
        base = listed[0]["id"]
        assert [(each["id"], each["parent"]) for each in listed] == [
            (base, None), ("sql", base), ("team/chat", base),
        ]  # fmt: skip
        assert served.http("/v1/models/team/chat")[1]["id"] == "team/chat"
        body = {"prompt": TEXT, "max_tokens": 12, "temperature": 0, "ignore_eos": True}
        for model, name in ((base, ""), ("sql", "sql"), ("team/chat", "team/chat")):
            reply = served.http("/v1/completions", {**body, "model": model})[1]
            assert (reply["model"], reply["choices"][0]["text"]) == (model, served.texts[name])
        status, reply = served.http("/v1/completions", {**body, "model": "other"})
        assert (status, reply["error"]["code"]) == (404, "model_not_found")
        assert "serves 'sgc-tiny' and 'sql' and 'team/chat'" in reply["error"]["message"]

    def test_chats_and_embeddings(self, served: Served) -> None:
        body = {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 4, "temperature": 0}
        vectors = []
        for model in ("sgc-tiny", "sql"):
            assert served.http("/v1/chat/completions", {**body, "model": model})[0] == 200
            reply = served.http("/v1/embeddings", {"model": model, "input": TEXT})[1]
            assert reply["model"] == model
            vectors.append(reply["data"][0]["embedding"])
        assert vectors[0] != vectors[1]
        asked = {"model": "sql", "input": TEXT, "max_output_tokens": 4, "temperature": 0}
        assert served.http("/v1/responses", asked)[1]["model"] == "sql"
        ranked = served.http("/v1/rerank", {"model": "sql", "query": "a", "documents": ["b", "c"]})
        assert ranked[1]["model"] == "sql"

    def test_sglangs_generate(self, served: Served) -> None:
        params = {"max_new_tokens": 12, "temperature": 0, "ignore_eos": True}
        body = {"text": [TEXT] * 3, "sampling_params": params, "lora_path": [None, "sql", ""]}
        found = [each["text"] for each in served.http("/generate", body)[1]]
        assert found == [served.texts[""], served.texts["sql"], served.texts[""]]
        status, reply = served.http("/generate", {**body, "lora_path": "other"})
        assert status == 400
        assert "no adapter 'other'" in reply["error"]["message"]


def test_info_tells_them(served: Served) -> None:
    async def work(backend: EngineBackend) -> pb.Info:
        return await backend.info()

    told = asked(served, work).adapters
    assert [(each.name, each.rank) for each in told] == [("sql", 4), ("team/chat", 8)]
    assert len({each.fingerprint for each in told}) == 2


@pytest.mark.slow
def test_what_is_on_disk_is_of_one_adapter(served: Served, tmp_path: Path) -> None:
    """Another folder under the same name finds nothing; the same folder under another, all."""
    long: Prompt = (TextRun(TEXT * 20),)

    def cached_tokens(adapters: dict[str, str]) -> list[int]:
        """adapters: which folder is given which name."""
        named = [f"--adapter={name}={served.folders[which]}" for name, which in adapters.items()]

        async def run(uri: str) -> list[int]:
            async with EngineBackend(uri) as backend:
                views = [backend.with_adapter(name) for name in adapters]
                replies = [await view.generate(long, GREEDY) for view in views]
                return [reply.usage.cached_tokens for reply in replies]

        arguments = [*named, "--dtype", "float32", "--kv-dir", str(tmp_path / "kv")]
        with EmbeddedEngine(None, arguments) as engine:
            return asyncio.run(asyncio.wait_for(run(engine.uri), BOUND_S))

    assert cached_tokens({"a": "sql"}) == [0]
    other, same = cached_tokens({"a": "team/chat", "b": "sql"})
    assert other == 0
    assert same >= 64
