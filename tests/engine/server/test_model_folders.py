"""Names become model folders; nothing but safetensors is accepted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from sgc.errors import LoadError
from sgc.runtime.engine.model.models import DEFAULT_FOLDER, ModelSource, resolve


def test_fake_needs_no_folder() -> None:
    assert resolve("fake") == ModelSource("fake", None, DEFAULT_FOLDER)


def test_the_default_is_the_model_that_ships() -> None:
    source = resolve("default")
    assert resolve(None) == source == ModelSource("sgc-tiny", DEFAULT_FOLDER, DEFAULT_FOLDER)
    assert sum(path.stat().st_size for path in DEFAULT_FOLDER.iterdir()) < 10_000_000


def test_local_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(LoadError, match="no weights"):
        resolve(str(tmp_path))
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(LoadError, match=r"only pickled weights \(pytorch_model\.bin\)"):
        resolve(str(tmp_path))
    save_file({"a": np.zeros(9, np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(LoadError, match=r"tokenizer\.json is missing"):
        resolve(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{}")
    assert resolve(str(tmp_path)).folder == tmp_path.resolve()
    (tmp_path / "config.json").unlink()
    with pytest.raises(LoadError, match=r"no config\.json"):
        resolve(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", b"{", "is not valid JSON"),
        ("tokenizer.json", b"{", "is not valid JSON"),
        ("tokenizer.json", None, "is missing"),
        ("model.safetensors", b"", "is cut off"),
        ("model.safetensors", b"\x05" + bytes(30), "not a safetensors file"),
        ("model.safetensors.index.json", b'{"weight_map": {"a": "b.safetensors"}}', "is missing"),
    ],
)
def test_damage_is_named_by_file(
    name: str, content: bytes | None, words: str, tmp_path: Path
) -> None:
    folder = _small_folder(tmp_path)
    resolve(str(folder))
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(LoadError, match=words) as caught:
        resolve(str(folder))
    assert str(folder) in str(caught.value)
    assert caught.value.hint


def test_weights_that_are_cut_off(tmp_path: Path) -> None:
    path = _small_folder(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(LoadError, match=r"model\.safetensors is cut off or damaged"):
        resolve(str(tmp_path))


def _small_folder(folder: Path) -> Path:
    for path in DEFAULT_FOLDER.glob("*.json"):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    save_file({"a": np.zeros(9, np.float32)}, folder / "model.safetensors")
    return folder


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
    with pytest.raises(LoadError, match=r"offline \(or no such model\), and not in the") as caught:
        resolve("someone/some-model")
    assert "no network" not in str(caught.value)
    assert str(caught.value.__cause__) == "no network"
    assert [options["local_files_only"] for options in asked] == [False, True]
    patterns = asked[0]["allow_patterns"]
    assert isinstance(patterns, list)
    assert not any(name in " ".join(patterns) for name in (".bin", ".py", ".pt"))
