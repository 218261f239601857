"""What a model folder says in its JSON files. Imports no library: the server asks before it has
started the step process, which waits for nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sgc.errors import LoadError

Json = dict[str, Any]
MAX_FILE_BYTES = 256 * 1024 * 1024
AGAIN = "copy or download the model's files again"


def read_json(path: Path) -> Json:
    """The JSON object in a file, {} if there is no such file; `LoadError` if malformed."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise LoadError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise LoadError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise LoadError(f"{path} is not valid JSON ({error})", hint=AGAIN) from error
    if not isinstance(value, dict):
        raise LoadError(f"{path} does not hold a JSON object", hint=AGAIN)
    return value


def configured_eos_ids(folder: Path) -> list[int]:
    """The end-of-sequence ids of generation_config.json, else of config.json."""
    for name in ("generation_config.json", "config.json"):
        value = read_json(folder / name).get("eos_token_id")
        if value is not None:
            listed = value if isinstance(value, list) else [value]
            return [item for item in listed if isinstance(item, int) and item >= 0]
    return []


def content_of(token: Any) -> str | None:
    """The text of a token that a configuration gives as a string or as a record."""
    if isinstance(token, Mapping):
        token = token.get("content")
    return token if isinstance(token, str) else None
