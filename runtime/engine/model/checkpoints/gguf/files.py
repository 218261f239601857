"""The files of a GGUF model, one file or the parts of a split, and their combined header.

Parts are named by their numbers; the first one has the settings. Imports no library.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgc.errors import LoadError
from sgc.runtime.engine.model.checkpoints.gguf.header import (
    FLOATS,
    KINDS,
    GgufTensor,
    damaged,
    read_header,
)
from sgc.runtime.engine.model.weight_files import TensorHeader
from sgc.runtime.engine.text.json_files import AGAIN, open_file

SUFFIX = ".gguf"
MAX_PARTS = 1024
_MAX_FACTORS = 4096
_MAX_NAMED = 5
_PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")


@dataclass(frozen=True, slots=True)
class Gguf:
    """path: the file, or its first part. values: its settings."""

    path: Path
    values: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]

    @property
    def n_bytes(self) -> int:
        """The bytes of its tensors."""
        return sum(tensor.n_bytes for tensor in self.tensors.values())

    @property
    def kinds(self) -> dict[str, int]:
        """The bytes of tensors of each quantized kind."""
        found: dict[str, int] = {}
        for tensor in self.tensors.values():
            if tensor.kind not in FLOATS:
                name = KINDS[tensor.kind].name
                found[name] = found.get(name, 0) + tensor.n_bytes
        return found

    @property
    def dtype(self) -> str:
        """The dtype that it was written in; bfloat16 for a quantized model."""
        kinds = {KINDS[tensor.kind].name for tensor in self.tensors.values()}
        if self.kinds or "BF16" in kinds:
            return "bfloat16"
        return "float16" if "F16" in kinds else "float32"

    def headers(self) -> dict[str, TensorHeader]:
        """As those of safetensors."""
        return {name: TensorHeader("F32", tensor.shape, 0, 0)
                for name, tensor in self.tensors.items()}  # fmt: skip

    def factors(self, name: str) -> list[float] | None:
        """A short list of numbers among the tensors, None if there is none of that name."""
        tensor = self.tensors.get(name)
        if tensor is None:
            return None
        if KINDS[tensor.kind].name != "F32" or len(tensor.shape) != 1 or (
            tensor.shape[0] > _MAX_FACTORS
        ):  # fmt: skip
            damaged(tensor.path, f"its {name} is no list of at most {_MAX_FACTORS} numbers")
        with open_file(tensor.path) as file:
            file.seek(tensor.start)
            data = file.read(tensor.n_bytes)
        if len(data) != tensor.n_bytes:
            raise LoadError(f"{tensor.path} is cut off: it ends in {name}", hint=AGAIN)
        return list(struct.unpack(f"<{tensor.shape[0]}f", data))


def is_gguf(folder: Path) -> bool:
    """Whether a folder has GGUF files, and no other weights that are loaded."""
    return any(folder.glob(f"*{SUFFIX}")) and not any(folder.glob("*.safetensors"))


def files_of(path: Path) -> list[Path]:
    """The files of the model that a path names, a file or a folder; raises `LoadError`."""
    if not path.is_dir():
        return _parts(path)
    names = sorted(each.name for each in path.iterdir() if each.suffix == SUFFIX)
    models = {_PART.sub(r"\1-of-\3", name): name for name in reversed(names)}
    if len(models) > 1:
        listed = ", ".join(sorted(models.values())[:_MAX_NAMED])
        more = ", …" if len(models) > _MAX_NAMED else ""
        raise LoadError(
            f"{path} holds {len(models)} GGUF models: {listed}{more}",
            hint="give the path of one of them",
        )
    return _parts(path / next(iter(models.values())))


def read(paths: Sequence[Path]) -> Gguf:
    """The combined header of the files; raises `LoadError`. paths: as returned by `files_of`."""
    headers = [read_header(path) for path in paths]
    first = headers[0]
    tensors: dict[str, GgufTensor] = {}
    for number, header in enumerate(headers):
        told = (header.values.get("split.no", 0), header.values.get("split.count", 1) or 1)
        if told != (number, len(paths)) and (told[1] != 1 or len(paths) > 1):
            damaged(header.path, f"it is part {told[0]!r:.20} (from 0) of "
                    f"{told[1]!r:.20}, and its name says {number} of {len(paths)}")  # fmt: skip
        for name in header.tensors.keys() & tensors.keys():
            damaged(header.path, f"a part before it has {name!r}, too")
        tensors |= header.tensors
    n = first.values.get("split.tensors.count", len(tensors)) if len(paths) > 1 else len(tensors)
    if n != len(tensors):
        damaged(first.path, f"its parts have {len(tensors)} tensors, of {n!r:.20}")
    return Gguf(first.path, first.values, tensors)


def _parts(path: Path) -> list[Path]:
    found = _PART.fullmatch(path.name)
    if found is None:
        return [path]
    n = int(found[3])
    if not 1 <= int(found[2]) <= n <= MAX_PARTS:
        raise LoadError(
            f"{path} is named as part {int(found[2])} of {n}, of 1 to {MAX_PARTS}",
            hint="give the file the name that it came with",
        )
    paths = [path.with_name(f"{found[1]}-{i:05}-of-{found[3]}{SUFFIX}") for i in range(1, n + 1)]
    for each in paths:
        if not each.exists():
            raise LoadError(
                f"{each} is missing: the model is in {n} parts", hint="put all of them there"
            )
    return paths
