"""A model folder may come from anywhere: whatever its files say, it can be read, or a `LoadError`
names the file and says what to do. Nothing outside the folder is read by name, nothing waits."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from sgc.errors import LoadError
from sgc.runtime.engine.model.model_files import OTHERS
from sgc.runtime.engine.model.models import DEFAULT_FOLDER, resolve
from sgc.runtime.engine.model.weight_files import INDEX, read_header
from sgc.runtime.engine.text.json_files import (
    KINDS,
    MAX_DEPTH,
    configured_eos_ids,
    is_shallow,
    read_bytes,
    read_json,
)
from sgc.runtime.engine.text.template_child import read_template
from sgc.runtime.engine.text.tokenizer import load_tokenizer

WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    for path in DEFAULT_FOLDER.glob("*.json"):
        shutil.copy(path, made)
    config = {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 4}
    (made / "config.json").write_text(json.dumps(config))
    save_file({"a": np.zeros(9, np.float32), "b": np.ones((2, 2), np.int8)}, made / WEIGHTS)
    return made


def read_all(folder: Path) -> None:
    """As the server and the step process do, but for the weights."""
    source = resolve(str(folder))
    configured_eos_ids(source.tokenizer_folder)
    read_template(source.tokenizer_folder)
    tokenizer = load_tokenizer(source.tokenizer_folder)
    assert tokenizer.encode_continuation("tea")


def refused(folder: Path, path: Path | None = None) -> str:
    """The message; it names the file, and says what to do."""
    with pytest.raises(LoadError) as caught:
        read_all(folder)
    assert str(path or folder) in str(caught.value)
    assert caught.value.hint
    assert len(str(caught.value)) < 2000
    return str(caught.value)


def read_or_refused(read: Callable[[Path], object], path: Path, named: Path) -> None:
    said = str(named)
    try:
        read(path)
    except LoadError as error:
        said = str(error)
    assert str(named) in said


def nested(depth: int, opening: str = "[", closing: str = "]") -> bytes:
    return b'{"a": ' + (opening * depth).encode() + b"1" + (closing * depth).encode() + b"}"


BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "cut off": b'{"a": 1',
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "not UTF-8": b'{"a": "\xff"}',
    "another encoding": '{"a": 1}'.encode("utf-16"),
    "zero bytes": bytes(64),
    "lists in lists": nested(100_000),
    "objects in objects": nested(100_000, '{"a": ', "}"),
    "a bit too deep": nested(MAX_DEPTH),
    "too deep for most": nested(900),
    "a number without end": b'{"a": ' + b"9" * 10_000 + b"}",
}
NAMES = sorted({*KINDS, *OTHERS})


@pytest.mark.sweep
@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("name", NAMES)
def test_a_broken_file_is_named(folder: Path, name: str, what: str) -> None:
    (folder / name).write_bytes(BROKEN[what])
    refused(folder, folder / name)


VALUES: list[Any] = [
    0, -1, 1.5, True, "x", "\ud800", [], [1], [[1]], ["x"], {}, {"a": 1}, {"1": 1}, {"1": {}},
    [None], {"1": {"content": 3}}, [{"name": []}], {"x": {"content": "x", "lstrip": []}}, 10**30,
]  # fmt: skip


FIELDS = {
    **{name: sorted(kinds) for name, kinds in KINDS.items()},
    "tokenizer_config.json": [*KINDS["tokenizer_config.json"], "tokenizer_class", "legacy",
                              "add_prefix_space", "split_special_tokens"],
    "tokenizer.json": [*KINDS["tokenizer.json"], "version", "post_processor", "truncation"],
}  # fmt: skip


EVERY = [(name, field) for name, fields in FIELDS.items() for field in fields]


@pytest.mark.parametrize(
    "share", [pytest.param(1, marks=pytest.mark.slow), 10], ids=["all", "a tenth"]
)
@pytest.mark.parametrize(("name", "field"), EVERY)
def test_a_field_of_another_kind_is_read_or_named(
    folder: Path, name: str, field: str, share: int
) -> None:
    path = folder / name
    values = json.loads(path.read_text()) if path.exists() else {}
    for value in VALUES[EVERY.index((name, field)) % share :: share]:
        path.write_text(json.dumps({**values, field: value}))
        read_or_refused(read_all, folder, folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_key_value_heads", 0),
        ("num_attention_heads", -1),
        ("head_dim", 0),
        ("hidden_size", 0),
        ("vocab_size", 0),
        ("max_position_embeddings", 0),
        ("max_position_embeddings", -1),
        ("max_position_embeddings", 10**12),
    ],
)
def test_a_size_that_no_model_has_is_named(folder: Path, field: str, value: int) -> None:
    config = {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 4}
    for values in (config | {field: value}, config | {"text_config": {field: value}}):
        (folder / "config.json").write_text(json.dumps(values))
        assert f"{field} is {value}" in refused(folder, folder / "config.json")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_nothing(path: Path) -> None:
    path.symlink_to(path.parent / "nothing")


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def circle(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.sweep
@pytest.mark.parametrize("put", [pipe, link_to_nothing, endless, circle, Path.mkdir])
@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer.json", INDEX,
                                  "chat_template.jinja", WEIGHTS])  # fmt: skip
def test_what_is_no_file_is_named_and_not_waited_for(
    folder: Path, name: str, put: Callable[[Path], None]
) -> None:
    (folder / name).unlink(missing_ok=True)
    put(folder / name)
    with pytest.raises(LoadError) as caught:
        read_all(folder)
    assert str(folder / name) in str(caught.value)


def test_the_hubs_links_are_followed(folder: Path, tmp_path: Path) -> None:
    """Its cache has a folder of links to files that have other names and lie elsewhere."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    folder.rename(blobs)
    for i, path in enumerate(sorted(blobs.iterdir())):
        name = path.name
        path.rename(blobs / f"{i:064x}")
        (snapshot / name).symlink_to(Path("..") / ".." / "blobs" / f"{i:064x}")
    read_all(snapshot)
    (snapshot / WEIGHTS).rename(snapshot / "model-1.safetensors")
    (snapshot / INDEX).write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))
    read_all(snapshot)


@pytest.mark.sweep
@pytest.mark.parametrize("weight_map", [
    [], "x", 3, ["a.safetensors"],
    *({"a": name} for name in (
        "../outside.safetensors", "/tmp/outside.safetensors", "sub/../../outside.safetensors",
        "..\\outside.safetensors", "C:\\outside.safetensors", "C:outside.safetensors", "model.bin",
        "a\0.safetensors", "", ".", None, 3, [], {}, ["a.safetensors"], "x" * 5000 + ".bin")),
])  # fmt: skip
def test_an_index_names_files_of_the_folder_only(folder: Path, weight_map: Any) -> None:
    (folder / WEIGHTS).rename(folder.parent / "outside.safetensors")
    save_file({"a": np.zeros(9, np.float32)}, folder / "model-1.safetensors")
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    refused(folder, folder / INDEX)


def test_an_index_may_name_a_folder_below(folder: Path) -> None:
    (folder / "sub").mkdir()
    shutil.copy(folder / WEIGHTS, folder / "sub" / WEIGHTS)
    (folder / INDEX).write_text(json.dumps({"weight_map": {"a": f"sub/{WEIGHTS}"}}))
    read_all(folder)
    (folder / "sub" / WEIGHTS).write_bytes(b"")
    assert f"sub/{WEIGHTS} is cut off" in refused(folder)
    (folder / INDEX).write_text("{}")
    assert "no weight_map" in refused(folder, folder / INDEX)


def with_header(path: Path, header: bytes, length: int | None = None) -> None:
    n = len(header) if length is None else length
    path.write_bytes(n.to_bytes(8, "little") + header + bytes(40))


def tensor(**changes: Any) -> bytes:
    fields = {"dtype": "F32", "shape": [10], "data_offsets": [0, 40]}
    return json.dumps({"a": {**fields, **changes}}).encode()


HEADERS: dict[str, bytes] = {
    **BROKEN,
    **{f"tensor {value!r:.30}": json.dumps({"a": value}).encode() for value in (1, [], None, {})},
    "an unknown type": tensor(dtype="F7"),
    "a type that is none": tensor(dtype=[]),
    "a shape that is none": tensor(shape="x"),
    "sizes below 0": tensor(shape=[-2, -5]),
    "sizes that are no whole numbers": tensor(shape=[10.0]),
    "true as a size": tensor(shape=[True, 10]),
    "many dimensions": tensor(shape=[1] * 100_000 + [10]),
    "dimensions of thousands of digits": tensor(shape=[10**3000] * 1000),
    "another shape than its bytes": tensor(shape=[9]),
    "offsets out of order": tensor(data_offsets=[40, 0]),
    "offsets as texts": tensor(data_offsets=["0", "40"]),
    "one offset": tensor(data_offsets=[40]),
    "a gap": tensor(data_offsets=[4, 44]),
    "past the end": tensor(shape=[11], data_offsets=[0, 44]),
    "far past the end": tensor(shape=[2**60], data_offsets=[0, 2**62]),
    "one over another": json.dumps({
        "a": {"dtype": "F32", "shape": [5], "data_offsets": [0, 20]},
        "b": {"dtype": "F32", "shape": [6], "data_offsets": [16, 40]},
    }).encode(),
}  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("what", HEADERS)
def test_a_header_that_lies_is_named(folder: Path, what: str) -> None:
    with_header(folder / WEIGHTS, HEADERS[what])
    refused(folder, folder / WEIGHTS)


@pytest.mark.parametrize("length", [0, 1, 41, 2**31, 100_000_001, 2**63, 2**64 - 1])
def test_a_length_that_lies_is_named(folder: Path, length: int) -> None:
    with_header(folder / WEIGHTS, tensor(), length=length)
    refused(folder, folder / WEIGHTS)


def test_a_header_longer_than_the_format_allows_is_not_read(folder: Path) -> None:
    with (folder / WEIGHTS).open("wb") as file:
        file.write((200_000_000).to_bytes(8, "little"))
        file.truncate(8 + 200_000_000)  # which takes no room on the disk
    assert "200000000 bytes" in refused(folder, folder / WEIGHTS)


def test_a_file_larger_than_any_is_not_read(folder: Path) -> None:
    with (folder / "config.json").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(LoadError, match="is larger than 99 bytes"):
        read_bytes(folder / "config.json", 99)


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2))])
def test_bytes_that_were_changed_are_read_or_named(folder: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    right = (folder / WEIGHTS).read_bytes()
    n_header = 8 + int.from_bytes(right[:8], "little")
    for _ in range(150):
        data = bytearray(right)
        for at in rng.integers(0, n_header, rng.integers(1, 4)):
            data[at] = rng.choice([0, 32, 34, 44, 48, 57, 91, 93, 123, 125, rng.integers(0, 256)])
        (folder / WEIGHTS).write_bytes(data)
        read_or_refused(read_header, folder / WEIGHTS, folder / WEIGHTS)


def test_every_right_header_is_read(tmp_path: Path) -> None:
    tensors = {f"t{i}": np.zeros(shape, kind) for i, (shape, kind) in enumerate(
        [((), "f4"), ((0,), "f8"), ((3, 4), "f2"), ((2, 1, 2), "i8"), ((5,), "u1"), ((3,), "?")]
    )}  # fmt: skip
    save_file(tensors, tmp_path / WEIGHTS, {"format": "pt"})
    found = read_header(tmp_path / WEIGHTS)
    assert {name: each.shape for name, each in found.items()} == {
        name: each.shape for name, each in tensors.items()
    }


@pytest.mark.parametrize("values", [
    {"num_hidden_layers": 10**9}, {"n_layer": 10**30}, {"vocab_size": 10**12},
    {"text_config": {"num_hidden_layers": 50}}, {"hidden_size": 10}, {"num_experts": 10**6},
])  # fmt: skip
def test_sizes_out_of_all_proportion_are_refused(folder: Path, values: dict[str, Any]) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **values}))
    assert "but the" in refused(folder, folder / "config.json")


@pytest.mark.parametrize("ids", ["2", [2, "3"], [[2]], True, 1.0, {"a": 2}])
def test_ends_that_are_no_tokens_are_named(folder: Path, ids: Any) -> None:
    """They would be left out, and texts would not end."""
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ids}))
    assert "eos_token_id" in refused(folder, folder / "generation_config.json")


def test_depth_is_counted_in_lists_and_objects() -> None:
    assert is_shallow(json.loads(nested(MAX_DEPTH - 1)))
    assert not is_shallow(json.loads(nested(MAX_DEPTH)))
    assert is_shallow({"vocab": {str(i): i for i in range(1000)}, "merges": [["a", "b"]] * 1000})


def test_a_template_is_bounded_and_text(folder: Path) -> None:
    (folder / "chat_template.jinja").write_bytes(b"\xff\xfe")
    refused(folder, folder / "chat_template.jinja")
    (folder / "chat_template.jinja").write_bytes(b"x" * (2 * 1024**2))
    with pytest.raises(LoadError, match="is larger than"):
        read_template(folder)


def test_a_file_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read_json(tmp_path / "config.json") == {}
