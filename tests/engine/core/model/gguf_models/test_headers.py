"""A GGUF file may come from anywhere: its header is read, or a `LoadError` names the file, whatever
it says, and nothing is allocated for what it only claims. Needs no package."""

from __future__ import annotations

import re
import struct
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sgc.errors import LoadError
from sgc.runtime.engine.model.checkpoints.gguf import header as reader
from sgc.runtime.engine.model.checkpoints.gguf.files import files_of, read
from sgc.runtime.engine.model.checkpoints.gguf.header import read_header

U32, TEXT, LIST = 4, 8, 9


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def setting(key: str, kind: int, data: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + data


def words(key: str, *each: str, n: int | None = None) -> bytes:
    n = len(each) if n is None else n
    return setting(key, LIST, struct.pack("<IQ", TEXT, n) + b"".join(map(text, each)))


def place(name: str, *dims: int, kind: int = 0, offset: int = 0, n: int | None = None) -> bytes:
    shape = struct.pack(f"<I{len(dims)}Q", len(dims) if n is None else n, *dims)
    return text(name) + shape + struct.pack("<IQ", kind, offset)


def file_of(
    settings: list[bytes],
    places: list[bytes],
    n_data: int = 64,
    n_settings: int | None = None,
    n_places: int | None = None,
    beginning: bytes = b"GGUF\x03\0\0\0",
) -> bytes:
    counts = (
        len(places) if n_places is None else n_places,
        len(settings) if n_settings is None else n_settings,
    )
    head = beginning + struct.pack("<QQ", *counts) + b"".join([*settings, *places])
    return head + bytes(-len(head) % 32 + n_data)


SETTINGS = [
    setting("general.architecture", TEXT, text("llama")), words("tokens", "a", "bé", ""),
    setting("general.alignment", U32, struct.pack("<I", 32)),
    setting("scores", LIST, struct.pack("<IQ2f", 6, 2, 0.5, -1.0)), setting("yes", 7, b"\1"),
]  # fmt: skip
PLACES = [place("a", 4, 2), place("b", 32, kind=8, offset=32)]
RIGHT = file_of(SETTINGS, PLACES, 66)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def refused(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(LoadError) as caught:
        read_header(path)
    assert str(path) in str(caught.value)
    assert caught.value.hint
    assert len(str(caught.value)) < 1000
    return str(caught.value)


def test_a_right_header(path: Path) -> None:
    path.write_bytes(RIGHT)
    found = read_header(path)
    assert dict(found.values) == {
        "general.architecture": "llama", "tokens": ["a", "bé", ""], "general.alignment": 32,
        "scores": [0.5, -1.0], "yes": True,
    }  # fmt: skip
    assert {name: (each.shape, each.n_bytes) for name, each in found.tensors.items()} == {
        "a": ((2, 4), 32), "b": ((32,), 34),
    }  # fmt: skip
    assert found.tensors["b"].start - found.tensors["a"].start == 32
    assert found.tensors["b"].start + 34 == len(RIGHT)


def one(*places: bytes, **more: Any) -> bytes:
    return file_of(SETTINGS, list(places), **more)


def told(*settings: bytes, **more: Any) -> bytes:
    return file_of(list(settings), [], **more)


HUGE = 2**64 - 1
LIES: Mapping[str, tuple[bytes, str]] = {
    "nothing": (b"", "cut off"),
    "another format": (b"GGML" + bytes(90), "does not begin with GGUF"),
    "a version of before": (one(beginning=b"GGUF\1\0\0\0"), "of version 1"),
    "the other order of bytes": (one(beginning=b"GGUF\0\0\0\3"), "of version 50331648"),
    "settings without end": (told(n_settings=HUGE), f"{HUGE} settings, of at most 4096"),
    "tensors without end": (one(n_places=HUGE), f"{HUGE} tensors, of at most 65536"),
    "fewer settings than it says": (told(n_settings=9), "says .. twice"),
    "a name without end": (told(struct.pack("<Q", HUGE)), "bytes of the name of a setting"),
    "a text without end": (
        told(setting("x", TEXT, struct.pack("<Q", 2**40))), "bytes of the text of 'x'"),
    "a text longer than the file": (told(setting("x", TEXT, struct.pack("<Q", 9999))), "cut off"),
    "a list without end": (told(words("x", n=2**62)), "items up to those of 'x'"),
    "numbers without end": (
        told(setting("x", LIST, struct.pack("<IQ", 12, 2**61))), "items up to those of 'x'"),
    "many lists": (
        told(*(setting(f"x{i}", LIST, struct.pack("<IQ", 0, 2**20) + bytes(2**20))
               for i in range(3))), "items up to those of 'x2'"),
    "lists of lists": (told(setting("x", LIST, struct.pack("<IQ", LIST, 1))), "of a type 9"),
    "a list longer than the file": (told(words("x", n=10**6)), "cut off"),
    "a type that is none": (told(setting("x", 13, bytes(8))), "'x' is of a type 13"),
    "a text that is none": (told(setting("x", TEXT, text(b"\xff"))), "not UTF-8"),
    "a name that is none": (told(text(b"\xff")), "not UTF-8"),
    "a setting twice": (told(SETTINGS[0], SETTINGS[0]), "says 'general.architecture' twice"),
    "a tensor twice": (one(place("a", 4), place("a", 4, offset=32)), "has 'a' twice"),
    "one over another": (one(place("a", 9), place("b", 4, offset=32)), "'b' begins where"),
    "both at one place": (one(place("a", 4), place("b", 4)), "'b' begins where"),
    "past the end": (one(place("a", 17)), "cut off"),
    "far past the end": (one(place("a", 4, offset=2**62)), "cut off"),
    "an offset that wraps around": (one(place("a", 4, offset=HUGE - 31)), "cut off"),
    "between two": (one(place("a", 4, offset=5)), "not begin at a multiple of 32"),
    "no dimension": (one(place("a")), r"'a' is of \[\]"),
    "dimensions without end": (one(place("a", 1, n=2**31)), "dimensions of 'a', of at most 4"),
    "a dimension of nothing": (one(place("a", 0, 4)), r"'a' is of \[4, 0\]"),
    "sizes whose product wraps around": (one(place("a", 2**32, 2**32)), "'a' is of"),
    "a size without end": (one(place("a", HUGE)), "'a' is of"),
    "a kind that is none": (one(place("a", 4, kind=99)), r"\(ggml type 99\)"),
    "a kind that was given up": (one(place("a", 32, kind=31)), r"\(ggml type 31\)"),
    "whole numbers": (one(place("a", 4, kind=26)), r"\(ggml type 26\)"),
    "part of a block": (one(place("a", 33, kind=8)), "not whole blocks of a Q8_0"),
    **{f"an alignment of {n}": (
        file_of([setting("general.alignment", U32, struct.pack("<I", n))], [place("a", 4)]),
        f"general.alignment is {n}") for n in (0, 1, 12, 2**31)},
    "an alignment that is a text": (
        file_of([setting("general.alignment", TEXT, text("x"))], [place("a", 4)]), "alignment is"),
}  # fmt: skip


@pytest.mark.parametrize("what", LIES)
def test_a_header_that_lies_is_named(what: str, path: Path) -> None:
    data, why = LIES[what]
    tracemalloc.start()
    try:
        said = refused(path, data)
        assert tracemalloc.get_traced_memory()[1] < len(data) * 40 + 500_000
    finally:
        tracemalloc.stop()
    assert re.search(why, said)


def test_a_header_cut_off_anywhere_is_named(path: Path) -> None:
    for n in range(0, len(RIGHT), 3):
        refused(path, RIGHT[:n])


def test_a_header_longer_than_any_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_HEADER_BYTES", 100)
    assert "more than 100 bytes" in refused(path, RIGHT)


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2, 3))])
def test_bytes_that_were_changed_are_read_or_named(path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_head, n_read = len(RIGHT) - 66, 0
    said: list[str] = []
    for _ in range(400 if seed else 200):
        data = bytearray(RIGHT)
        for at in rng.integers(0, n_head, rng.integers(1, 4)):
            data[at] = rng.choice([0, 1, 4, 8, 9, 127, 255, rng.integers(0, 256)])
        path.write_bytes(data)
        try:
            for each in read_header(path).tensors.values():
                assert 0 <= each.start <= each.start + each.n_bytes <= len(data)
            n_read += 1
        except LoadError as error:
            said.append(str(error))
    assert all(str(path) in each for each in said)
    assert n_read  # names and scores may be anything


def part(number: int, count: int, name: str, total: int = 2) -> bytes:
    told = {"split.no": number, "split.count": count, "split.tensors.count": total}
    settings = [setting(key, U32, struct.pack("<I", value)) for key, value in told.items()]
    return file_of([*SETTINGS, *settings], [place(name, 4)])


SPLITS: Mapping[str, tuple[list[bytes], str]] = {
    "out of order": ([part(1, 2, "a"), part(0, 2, "b")], "it is part 1"),
    "of another number": ([part(0, 3, "a"), part(1, 3, "b")], "of 3, and its name says"),
    "a tensor in both": ([part(0, 2, "a"), part(1, 2, "a")], "a part before it has 'a', too"),
    "fewer than were split": ([part(0, 2, "a", 3), part(1, 2, "b")], "2 tensors, of 3"),
    "no parts at all": ([RIGHT, RIGHT], "it is part 0"),
}


@pytest.mark.parametrize("what", SPLITS)
def test_parts_that_do_not_fit_together_are_named(what: str, tmp_path: Path) -> None:
    parts, why = SPLITS[what]
    for i, data in enumerate(parts):
        (tmp_path / f"m-{i + 1:05}-of-00002.gguf").write_bytes(data)
    with pytest.raises(LoadError, match=why):
        read(files_of(tmp_path))


def test_a_part_by_itself_is_named(path: Path) -> None:
    path.write_bytes(part(0, 2, "a"))
    with pytest.raises(LoadError, match="it is part 0"):
        read(files_of(path))


@pytest.mark.parametrize("name", ["m-00000-of-00002", "m-00003-of-00002", "m-00001-of-99999"])
def test_numbers_of_parts_are_bounded(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.gguf").write_bytes(RIGHT)
    with pytest.raises(LoadError, match="is named as part"):
        files_of(tmp_path)


def test_a_folder_of_several_models_wants_a_name(tmp_path: Path) -> None:
    for name in ("a-Q4_K_M", "a-Q8_0", "b-00001-of-00002", "b-00002-of-00002"):
        (tmp_path / f"{name}.gguf").write_bytes(RIGHT)
    with pytest.raises(LoadError, match=r"3 GGUF models: a-Q4_K_M.gguf, a-Q8_0.gguf, b-00001"):
        files_of(tmp_path)


@pytest.mark.parametrize("put", [Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_named(put: Callable[[Path], None], path: Path) -> None:
    put(path)
    with pytest.raises(LoadError, match=r"is not a file|cannot read"):
        read_header(path)


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(LoadError, match="no file at"):
        read_header(path)
