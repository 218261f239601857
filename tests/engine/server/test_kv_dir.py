"""`sgc serve --kv-dir`: an engine starts with what another left, and folders are private."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from waiting import BOUND_S

from sgc.cli import main
from sgc.errors import UsageError
from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.config import ServerConfig, check, worker_config
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.names import size_of
from sgc.runtime.engine.serve import parse_arguments
from sgc.runtime.engine.worker.disk import Disk
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Generated, Prompt, Sampling, TextRun

PROMPT: Prompt = (TextRun("A long way to say one thing, and again. " * 40),)


def asked(model: str, folder: Path, *arguments: str) -> tuple[Generated, pb.Stats]:
    """The prompt's reply, of an engine that is started for it and then stopped."""

    async def run(uri: str) -> tuple[Generated, pb.Stats]:
        async with EngineBackend(uri) as backend:
            reply = await backend.generate(PROMPT, Sampling(max_tokens=8, temperature=0.0))
            return reply, await backend.stats()

    with EmbeddedEngine(model, ["--kv-dir", str(folder), "--check", *arguments]) as engine:
        return asyncio.run(asyncio.wait_for(run(engine.uri), BOUND_S))


@pytest.mark.sweep
@pytest.mark.parametrize("model", ["fake", "default"])
def test_an_engine_starts_with_what_another_left(model: str, tmp_path: Path) -> None:
    arguments = () if model == "fake" else ("--dtype", "float32", "--pool-tokens", "2048")
    cold, _ = asked(model, tmp_path / "kv", *arguments)
    warm, stats = asked(model, tmp_path / "kv", *arguments)
    n_chunks = cold.usage.prompt_tokens // 64
    assert cold.usage.cached_tokens == 0
    assert (warm.ids, warm.text) == (cold.ids, cold.text)
    assert warm.usage.cached_tokens == min(64 * n_chunks, cold.usage.prompt_tokens - 1)
    assert (stats.disk_loads, stats.disk_loaded_tokens) == (1, 64 * n_chunks)
    assert stats.disk_bytes > 0


def test_a_folder_that_others_can_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(UsageError, match=r"others can use .*0755.*\n.*chmod 700"):
        check(ServerConfig(model="fake", listen="127.0.0.1:0", kv_dir=str(tmp_path / "open")))
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"):
        check(ServerConfig(model="fake", listen="127.0.0.1:0", kv_dir=str(tmp_path / "file")))


def test_a_model_that_is_shared_or_elsewhere_has_no_folder(tmp_path: Path) -> None:
    config = ServerConfig(
        model="fake", listen="127.0.0.1:0", kv_dir=str(tmp_path / "kv"), tensor_parallel=2
    )
    with pytest.raises(UsageError, match="tensor-parallel"):
        check(config)
    runner = SimpleNamespace(pool=SimpleNamespace(device="cuda:0"), device="cuda:0")
    with pytest.raises(Exception, match="this model is on cuda:0"):
        Disk(config, None).tier_of(runner)  # type: ignore[arg-type]


def test_options_are_passed_on(tmp_path: Path) -> None:
    folder = tmp_path / "kv"
    config = parse_arguments(["--model", "fake", "--kv-dir", str(folder), "--kv-dir-size", "2GiB"])
    assert (config.kv_dir, config.kv_dir_bytes) == (str(folder), 2 << 30)
    assert parse_arguments(["--kv-dir", "~/kv"]).kv_dir == str(Path("~/kv").expanduser())
    told = worker_config(config, check(ServerConfig(model="fake", listen="127.0.0.1:0")).source)
    assert (told["kv_dir"], told["kv_dir_bytes"]) == (str(folder), 2 << 30)


def test_sizes() -> None:
    assert [size_of(text) for text in ("8GiB", "1.5 gb", "100", "64k", "2MiB")] == [
        8 << 30, 1_500_000_000, 100, 64_000, 2 << 20,
    ]  # fmt: skip
    for text in ("", "8 apples", "-1", "0", "1e9", "nan", "9" * 20):
        with pytest.raises(ValueError, match="size"):
            size_of(text)


class TestCommands:
    """`sgc kv`"""

    @staticmethod
    def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(["kv", *argv])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out + err

    def test_what_is_kept_is_shown_and_cleared(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        folder = tmp_path / "kv"
        asked("fake", folder)
        (folder / "notes.safetensors").write_text("the user's own")
        n_files = len(list(folder.glob("*.kv.safetensors")))
        code, out = self.run(capsys, "info", str(folder))
        assert code == 0
        assert out.startswith(f"{n_files} files, 0.0 MiB in {folder}\nused from 20")
        code, out = self.run(capsys, "info", str(folder), "--json")
        assert json.loads(out)["n_files"] == n_files
        code, out = self.run(capsys, "clear", str(folder))
        assert (code, out) == (0, f"removed {n_files} files, 0.0 MiB from {folder}\n")
        assert [path.name for path in folder.iterdir()] == ["notes.safetensors"]
        assert self.run(capsys, "info", str(folder)) == (0, f"0 files, 0.0 MiB in {folder}\n")

    @pytest.mark.parametrize("command", ["info", "clear"])
    def test_a_folder_that_is_none_is_a_mistake(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
    ) -> None:
        code, out = self.run(capsys, command, str(tmp_path / "none"))
        assert code == 2
        assert "is no folder" in out
