"""Reads the JSON files of a model folder. It imports no library, because the server calls it before
it starts the step process.

A folder may come from anywhere. So only regular files are read, their size and depth are bounded,
and their fields must have the expected types; else a `LoadError` names the file. Links are
followed: the hub's cache is made of links.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from sgc.errors import LoadError

Json = dict[str, Any]
MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_DEPTH = 64
AGAIN = "copy or download the model's files again"

_TOKEN = (str, dict)
# The types of fields, if present; null counts as absent.
KINDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "config.json": {"architectures": list, "model_type": str},
    "generation_config.json": {"eos_token_id": (int, list)},
    "model.safetensors.index.json": {"weight_map": dict},
    "tokenizer.json": {"model": dict, "added_tokens": list, "normalizer": dict,
                       "pre_tokenizer": dict, "decoder": dict},
    "tokenizer_config.json": {
        "added_tokens_decoder": dict, "extra_special_tokens": (list, dict),
        "additional_special_tokens": (list, dict), "chat_template": (str, list),
        "bos_token": _TOKEN, "eos_token": _TOKEN, "unk_token": _TOKEN, "pad_token": _TOKEN},
    "chat_template.json": {"chat_template": (str, list, dict)},
}  # fmt: skip


def read_json(path: Path) -> Json:
    """The JSON object in a file, {} if there is no such file; `LoadError` if malformed."""
    data = read_bytes(path)
    if data is None:
        return {}
    value = parse_object(data, path)
    for name, kinds in KINDS.get(path.name, {}).items():
        found = value.get(name)
        if found is not None and not isinstance(found, kinds):
            listed = kinds if isinstance(kinds, tuple) else (kinds,)
            expected = " or ".join(_NAMES[kind] for kind in listed)
            refuse(path, f"{name} must be {expected}, not {_NAMES[type(found)]}")
    return value


def read_objects(path: Path) -> list[Json] | None:
    """The JSON objects of a list in a file, None if there is no such file; raises `LoadError`."""
    data = read_bytes(path)
    if data is None:
        return None
    value = _parsed(data, path)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        refuse(path, "it does not hold a list of JSON objects")
    return value


def read_bytes(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes | None:
    """A file's content, None if there is no such file; raises `LoadError`."""
    try:
        with open_file(path) as file:
            data = file.read(max_bytes + 1)
    except FileNotFoundError as error:
        if path.is_symlink():
            raise LoadError(f"{path} is a link to nothing", hint=AGAIN) from error
        return None
    except OSError as error:
        raise LoadError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > max_bytes:
        raise LoadError(f"{path} is larger than {max_bytes} bytes")
    return data


def open_file(path: Path) -> BinaryIO:
    """Opens a regular file for reading bytes; refuses a pipe or a device, which might never end."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise LoadError(f"{path} is not a file", hint=AGAIN)
    return os.fdopen(descriptor, "rb")


def parse_object(data: bytes, path: Path) -> Json:
    """The JSON object in a file's bytes; raises `LoadError`."""
    value = _parsed(data, path)
    if not isinstance(value, dict):
        refuse(path, "it does not hold a JSON object")
    return value


def _parsed(data: bytes, path: Path) -> Any:
    try:
        value = json.loads(data.decode("utf-8"))
    except RecursionError as error:
        raise _too_deep(path) from error
    except ValueError as error:
        raise LoadError(f"{path} is not valid JSON ({error})", hint=AGAIN) from error
    if isinstance(value, dict | list) and not is_shallow(value):
        raise _too_deep(path)
    return value


def is_shallow(value: Json | list[Any]) -> bool:
    """Whether it is nested no more than `MAX_DEPTH` levels deep."""
    objects: list[Json] = [value] if isinstance(value, dict) else []
    lists: list[list[Any]] = [value] if isinstance(value, list) else []
    for _ in range(MAX_DEPTH):
        below = list(chain(chain.from_iterable(lists), *(each.values() for each in objects)))
        if _NESTING.isdisjoint(map(type, below)):  # no Python loop, as a vocabulary is large
            return True
        objects = [each for each in below if type(each) is dict]
        lists = [each for each in below if type(each) is list]
    return False


def refuse(path: Path, why: str) -> NoReturn:
    raise LoadError(f"{path} cannot be used: {why}", hint=AGAIN)


def configured_eos_ids(folder: Path) -> list[int]:
    """The end-of-sequence ids of generation_config.json, else of config.json."""
    for name in ("generation_config.json", "config.json"):
        value = read_json(folder / name).get("eos_token_id")
        if value is not None:
            listed = value if isinstance(value, list) else [value]
            if not all(type(item) is int for item in listed):
                refuse(folder / name, "eos_token_id must be a token id or a list of token ids")
            return [item for item in listed if item >= 0]
    return []


def content_of(token: Any) -> str | None:
    """The text of a token that a configuration gives as a string or an object."""
    if isinstance(token, Mapping):
        token = token.get("content")
    return token if isinstance(token, str) else None


def sequence_parts(part: Any, inner: str) -> Iterator[Mapping[str, Any]]:
    """The parts of a component of tokenizer.json, with sequences flattened. inner: the field that
    holds a sequence's parts."""
    if isinstance(part, Mapping):
        if part.get("type") == "Sequence":
            for each in part.get(inner) or ():
                yield from sequence_parts(each, inner)
        else:
            yield part


_NAMES = {dict: "an object", list: "a list", str: "a text", int: "a whole number",
          float: "a number", bool: "true or false"}  # fmt: skip
_NESTING = {dict, list}


def _too_deep(path: Path) -> LoadError:
    return LoadError(f"{path} is nested more than {MAX_DEPTH} levels deep", hint=AGAIN)
