"""Is a model folder whole? Found before anything is loaded, and named by file.

Reads JSON and the headers of safetensors files, no weights. Called by `models.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

from sgc.errors import LoadError
from sgc.runtime.engine.json_files import AGAIN, read_json

MAX_HEADER_BYTES = 100_000_000  # the format's own limit
TOKENIZERS = ("tokenizer.json", "*.model", "*.tiktoken", "vocab.*", "tekken.json")


def check_files(folder: Path) -> None:
    """Raises `LoadError` for the first file that is missing, cut off or malformed."""
    if not read_json(folder / "config.json"):
        raise LoadError(f"{folder / 'config.json'} is empty", hint=AGAIN)
    shards = set(read_json(folder / "model.safetensors.index.json").get("weight_map", {}).values())
    for name in sorted(shards):
        if not (folder / str(name)).is_file():
            raise LoadError(
                f"{folder / str(name)} is missing; the model's index names it", hint=AGAIN
            )
    for path in sorted(folder.glob("*.safetensors")):
        _check_weights(path)
    if not any(True for pattern in TOKENIZERS for _ in folder.glob(pattern)):
        raise LoadError(
            f"{folder} has no tokenizer: {folder / 'tokenizer.json'} is missing",
            hint="save the model's tokenizer there with transformers' save_pretrained",
        )
    read_json(folder / "tokenizer.json")


def _check_weights(path: Path) -> None:
    """The header's offsets must cover the file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            n_header = int.from_bytes(file.read(8), "little")
            is_cut = size < 8 or n_header > size - 8
            header = b"" if is_cut or n_header > MAX_HEADER_BYTES else file.read(n_header)
        if is_cut:
            raise LoadError(f"{path} is cut off: it has {size} bytes", hint=AGAIN)
        ends = [int(t["data_offsets"][1]) for n, t in json.loads(header).items() if n[:2] != "__"]
    except OSError as error:
        raise LoadError(f"cannot read {path}: {error.strerror}", hint=AGAIN) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LoadError(f"{path} is not a safetensors file, or damaged", hint=AGAIN) from error
    expected = 8 + n_header + max(ends, default=0)
    if size != expected:
        raise LoadError(
            f"{path} is cut off or damaged: it has {size} bytes, and its header says {expected}",
            hint=AGAIN,
        )
