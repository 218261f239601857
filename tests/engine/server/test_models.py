"""Names become model folders; nothing but safetensors is accepted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sgc.errors import LoadError
from sgc.runtime.engine.default_model import TOKENIZER_FOLDER
from sgc.runtime.engine.models import ModelSource, resolve


def test_fake_needs_no_folder() -> None:
    assert resolve("fake") == ModelSource("fake", None, TOKENIZER_FOLDER)


def test_default_model_is_made_once_and_always_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = []
    for name in ("one", "two"):
        monkeypatch.setenv("SGC_CACHE_DIR", str(tmp_path / name))
        source = resolve("default")
        assert source.folder is not None
        weights.append((source.folder / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]
    before = (source.folder / "model.safetensors").stat().st_mtime_ns
    assert resolve(None) == source
    assert (source.folder / "model.safetensors").stat().st_mtime_ns == before
    assert [path.name for path in source.folder.parent.iterdir()] == [source.folder.name]


def test_concurrent_makers_do_not_disturb_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGC_CACHE_DIR", str(tmp_path))
    code = "from sgc.runtime.engine.models import resolve; print(resolve(None).folder)"
    command = [sys.executable, "-P", "-c", code]
    makers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    folders = {maker.communicate()[0].strip() for maker in makers}
    assert len(folders) == 1
    assert [maker.returncode for maker in makers] == [0, 0, 0]
    assert len(list((tmp_path / "models").iterdir())) == 1


def test_unwritable_cache_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SGC_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(LoadError, match="SGC_CACHE_DIR"):
        resolve(None)


def test_local_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(LoadError, match="no weights"):
        resolve(str(tmp_path))
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(LoadError, match=r"only pickled weights \(pytorch_model\.bin\)"):
        resolve(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert resolve(str(tmp_path)).folder == tmp_path.resolve()
    (tmp_path / "config.json").unlink()
    with pytest.raises(LoadError, match=r"no config\.json"):
        resolve(str(tmp_path))


@pytest.mark.parametrize("name", ["/no/such/folder", "./nor/this", "a/b/c"])
def test_missing_folder(name: str) -> None:
    with pytest.raises(LoadError, match="no model folder"):
        resolve(name)


def test_hub_id_that_cannot_be_had_names_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked = []

    def unreachable(name: str, **options: object) -> str:
        asked.append(options)
        raise OSError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(LoadError, match=r"hub: no network; then the local cache: no network"):
        resolve("someone/some-model")
    assert [options["local_files_only"] for options in asked] == [False, True]
    patterns = asked[0]["allow_patterns"]
    assert isinstance(patterns, list)
    assert not any(name in " ".join(patterns) for name in (".bin", ".py", ".pt"))
