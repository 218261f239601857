"""Reads the header of a GGUF file, strictly: its settings, and which tensors it has.

It reads no weights and imports no library. A file may come from anywhere: what it says is bounded
before anything is read or allocated for it, and tensors lie inside the file, apart from each other.
`gguf`'s own reader, and transformers', take the file at its word.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from sgc.errors import LoadError
from sgc.runtime.engine.text.json_files import AGAIN, open_file

MAX_HEADER_BYTES = 64 * 1024 * 1024
MAX_KEYS, MAX_TENSORS, MAX_DIMENSIONS = 4096, 1 << 16, 4
MAX_ITEMS = 1 << 21  # of all lists together: a vocabulary of 262,144 has 1.3 million
MAX_NAME_BYTES, MAX_TEXT_BYTES, MAX_ITEM_BYTES = 256, 1024**2, 4096
MAX_SIZE = 1 << 40
MAX_ALIGNMENT = 1 << 20
_VERSIONS = (2, 3)
_TEXT, _LIST = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
            12: "d"}  # fmt: skip
_ONE = {code: struct.Struct(f"<{code}") for code in _NUMBERS.values()}


@dataclass(frozen=True, slots=True)
class Kind:
    """How numbers are stored: in blocks of so many, each of so many bytes."""

    name: str
    n_numbers: int
    n_bytes: int


KINDS: Mapping[int, Kind] = {
    0: Kind("F32", 1, 4), 1: Kind("F16", 1, 2), 30: Kind("BF16", 1, 2),
    2: Kind("Q4_0", 32, 18), 3: Kind("Q4_1", 32, 20), 6: Kind("Q5_0", 32, 22),
    7: Kind("Q5_1", 32, 24), 8: Kind("Q8_0", 32, 34),
    10: Kind("Q2_K", 256, 84), 11: Kind("Q3_K", 256, 110), 12: Kind("Q4_K", 256, 144),
    13: Kind("Q5_K", 256, 176), 14: Kind("Q6_K", 256, 210),
    16: Kind("IQ2_XXS", 256, 66), 17: Kind("IQ2_XS", 256, 74), 18: Kind("IQ3_XXS", 256, 98),
    19: Kind("IQ1_S", 256, 50), 20: Kind("IQ4_NL", 32, 18), 21: Kind("IQ3_S", 256, 110),
    22: Kind("IQ2_S", 256, 82), 23: Kind("IQ4_XS", 256, 136), 29: Kind("IQ1_M", 256, 56),
    34: Kind("TQ1_0", 256, 54), 35: Kind("TQ2_0", 256, 66), 39: Kind("MXFP4", 32, 17),
}  # fmt: skip
FLOATS = (0, 1, 30)  # those that are not quantized


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """kind: a key of `KINDS`. shape: as torch writes it, the last dimension running fastest. start:
    where its bytes begin in the file at `path`."""

    path: Path
    kind: int
    shape: tuple[int, ...]
    start: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Header:
    path: Path
    values: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]


def read_header(path: Path) -> Header:
    """Raises `LoadError` for what is no GGUF file, is cut off, or lies."""
    try:
        with open_file(path) as file:
            return _Reader(path, file).header()
    except FileNotFoundError as error:
        raise LoadError(f"no file at {path}", hint="give the path of a GGUF file") from error
    except OSError as error:
        raise LoadError(f"cannot read {path}: {error.strerror}", hint=AGAIN) from error


def damaged(path: Path, why: str) -> NoReturn:
    raise LoadError(f"{path} is not a GGUF file, or damaged: {why}", hint=AGAIN)


class _Reader:
    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._size = file.seek(0, 2)
        self._at = file.seek(0)
        self._n_items = 0

    def header(self) -> Header:
        if self._take(4) != b"GGUF":
            damaged(self._path, "it does not begin with GGUF")
        version = self._number("I")
        if version not in _VERSIONS:
            damaged(self._path, f"it is of version {version}, and {_VERSIONS} are read")
        n_tensors = self._count("Q", MAX_TENSORS, "tensors")
        n_keys = self._count("Q", MAX_KEYS, "settings")
        values: dict[str, Any] = {}
        for _ in range(n_keys):
            key = self._text(MAX_NAME_BYTES, "the name of a setting")
            if key in values:
                damaged(self._path, f"it says {key!r} twice")
            values[key] = self._value(self._number("I"), key)
        places = [self._place() for _ in range(n_tensors)]
        return Header(self._path, values, self._tensors(places, _alignment(self._path, values)))

    def _tensors(
        self, places: list[tuple[str, int, tuple[int, ...], int]], alignment: int
    ) -> Mapping[str, GgufTensor]:
        data = -(-self._at // alignment) * alignment
        found: dict[str, GgufTensor] = {}
        for name, kind, shape, offset in places:
            if name in found:
                damaged(self._path, f"it has {name!r} twice")
            if offset % alignment:
                damaged(self._path, f"{name!r} does not begin at a multiple of {alignment}")
            n_bytes = prod(shape) // KINDS[kind].n_numbers * KINDS[kind].n_bytes
            found[name] = GgufTensor(self._path, kind, shape, data + offset, n_bytes)
        end = data
        for name, tensor in sorted(found.items(), key=lambda item: item[1].start):
            if tensor.start < end:
                damaged(self._path, f"{name!r} begins where the tensor before it has not ended")
            end = tensor.start + tensor.n_bytes
        if end > self._size and found:
            raise LoadError(
                f"{self._path} is cut off: it has {self._size} bytes, and its header says {end}",
                hint=AGAIN,
            )
        return found

    def _place(self) -> tuple[str, int, tuple[int, ...], int]:
        """A tensor's name, kind, shape and offset."""
        name = self._text(MAX_NAME_BYTES, "a tensor's name")
        n = self._count("I", MAX_DIMENSIONS, f"dimensions of {name!r}")
        shape = tuple(reversed(self._numbers("Q", n)))
        kind, offset = self._number("I"), self._number("Q")
        if not shape or not all(0 < size <= MAX_SIZE for size in shape) or prod(shape) > MAX_SIZE:
            damaged(self._path, f"{name!r} is of {list(shape)}")
        if kind not in KINDS:
            raise LoadError(
                f"{self._path}: {name!r} is quantized in a way that is not known here (ggml type "
                f"{kind})",
                hint="use a file of a usual quantization, such as Q4_K_M or Q8_0",
            )
        if shape[-1] % KINDS[kind].n_numbers:
            damaged(self._path, f"{name!r} of {list(shape)} is not whole blocks of a "
                    f"{KINDS[kind].name}")  # fmt: skip
        return name, kind, shape, offset

    def _value(self, kind: int, key: str) -> Any:
        if kind == _TEXT:
            return self._text(MAX_TEXT_BYTES, f"the text of {key!r}")
        if kind == _LIST:
            return self._list(key)
        return self._number(self._format(kind, key))

    def _list(self, key: str) -> list[Any]:
        kind = self._number("I")
        n = self._count("Q", MAX_ITEMS - self._n_items, f"items up to those of {key!r}")
        self._n_items += n
        if kind == _TEXT:
            what = f"a text of {key!r}"
            return [self._text(MAX_ITEM_BYTES, what) for _ in range(n)]
        return list(self._numbers(self._format(kind, key), n))

    def _format(self, kind: int, key: str) -> str:
        if kind not in _NUMBERS:
            damaged(self._path, f"{key!r} is of a type {kind}")
        return _NUMBERS[kind]

    def _text(self, most: int, what: str) -> str:
        data = self._take(self._count("Q", most, f"bytes of {what}"))
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            damaged(self._path, f"{what} is not UTF-8 ({error.reason})")

    def _count(self, code: str, most: int, what: str) -> int:
        n: int = self._number(code)
        if n > most:
            damaged(self._path, f"{n} {what}, of at most {most}")
        return n

    def _number(self, code: str) -> Any:
        one = _ONE[code]
        return one.unpack(self._take(one.size))[0]

    def _numbers(self, code: str, n: int) -> tuple[Any, ...]:
        return struct.unpack(f"<{n}{code}", self._take(n * _ONE[code].size))

    def _take(self, n: int) -> bytes:
        self._at += n
        if self._at > MAX_HEADER_BYTES:
            damaged(self._path, f"its header has more than {MAX_HEADER_BYTES} bytes")
        data = self._file.read(n) if self._at <= self._size else b""
        if len(data) != n:
            raise LoadError(f"{self._path} is cut off: it has {self._size} bytes", hint=AGAIN)
        return data


def _alignment(path: Path, values: Mapping[str, Any]) -> int:
    found = values.get("general.alignment", 32)
    is_power = type(found) is int and 0 < found <= MAX_ALIGNMENT and found & (found - 1) == 0
    if not is_power or found % 8:
        damaged(path, f"its general.alignment is {found!r:.50}")
    return int(found)
