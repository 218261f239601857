"""Reads a tokenizer folder into `tokenizers` objects without importing transformers or torch.

Mirrors what transformers' AutoTokenizer does to a `tokenizer.json`: special tokens of the
configuration are added, and a Llama tokenizer that is not byte-level gets the pre-tokenizer
its class sets. Runs no code from the folder. Called by `tokenizer.py` and the model's users.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from sgc.errors import LoadError
from sgc.runtime.engine.text.json_files import Json, configured_eos_ids, content_of, read_json

TOKEN_KEYS = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """A tokenizer folder's content; `spec` is the (adjusted) content of `tokenizer.json`."""

    spec: Json
    config: Json
    eos_ids: tuple[int, ...]


def read_files(folder: Path) -> TokenizerFiles:
    """Reads a tokenizer's files; without a tokenizer.json, transformers converts the others."""
    config = read_json(folder / "tokenizer_config.json")
    spec = read_json(folder / "tokenizer.json") or _convert_slow(folder)
    if _is_sentencepiece_llama(spec, config):
        spec = _as_llama_class(spec, config)
    return TokenizerFiles(spec, config, tuple(configured_eos_ids(folder)))


def _convert_slow(folder: Path) -> Json:
    try:
        from transformers import AutoTokenizer

        slow = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
        spec = json.loads(slow.backend_tokenizer.to_str())
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise LoadError(
            f"{folder} has no tokenizer.json, and converting its other files failed: {reason}",
            hint="save the tokenizer with transformers' save_pretrained first",
        ) from error
    assert isinstance(spec, dict)
    return spec


def _is_sentencepiece_llama(spec: Json, config: Json) -> bool:
    name = str(config.get("tokenizer_class") or "").removesuffix("Fast")
    return name == "LlamaTokenizer" and "ByteLevel" not in json.dumps(spec.get("pre_tokenizer"))


def _as_llama_class(spec: Json, config: Json) -> Json:
    """The spec that transformers' LlamaTokenizer builds around the file's vocabulary."""
    add_prefix_space = config.get("add_prefix_space")
    if add_prefix_space is False:
        scheme = "never"
    else:
        scheme = "always" if config.get("legacy", False) else "first"
    metaspace = {
        "type": "Metaspace",
        "replacement": "▁",
        "prepend_scheme": scheme,
        "split": False,
    }
    return {**spec, "normalizer": None, "pre_tokenizer": metaspace}


def build(files: TokenizerFiles, spec: Json) -> Backend:
    """A `tokenizers.Tokenizer` of `spec` with the configuration's special tokens added."""
    backend = Backend.from_str(json.dumps(spec))
    backend.no_truncation()
    backend.no_padding()
    _add_missing_tokens(backend, files.config)
    backend.encode_special_tokens = bool(files.config.get("split_special_tokens", False))
    return backend


def _add_missing_tokens(backend: Backend, config: Json) -> None:
    known = {token.content for token in backend.get_added_tokens_decoder().values()}
    table: Json = config.get("added_tokens_decoder") or {}
    declared = [table[key] for key in sorted(table, key=int)]
    declared += [config.get(f"{name}_token") for name in TOKEN_KEYS]
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    declared += list(extra.values() if isinstance(extra, Mapping) else extra)
    for token in declared:
        content = content_of(token)
        if content is None or content in known:
            continue
        known.add(content)
        options = dict(token) if isinstance(token, Mapping) else {"special": True}
        names = ("lstrip", "rstrip", "single_word", "normalized", "special")
        flags = {name: bool(options[name]) for name in names if name in options}
        backend.add_tokens([AddedToken(content, **flags)])


def continuation_spec(spec: Json) -> Json:
    """The same tokenizer without adding a leading space; equal to `spec` if it adds none."""
    return {
        **spec,
        "normalizer": _without_prefix(spec.get("normalizer")),
        "pre_tokenizer": _without_prefix(spec.get("pre_tokenizer")),
    }


def _without_prefix(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    kind = part.get("type")
    if kind == "Prepend":
        return None
    if kind == "Sequence":
        return _sequence_without_prefix(dict(part))
    if kind == "Metaspace":
        changed = {k: v for k, v in part.items() if k != "add_prefix_space"}
        return {**changed, "prepend_scheme": "never"}
    if kind == "ByteLevel" and part.get("add_prefix_space"):
        return {**part, "add_prefix_space": False}
    return part


def _sequence_without_prefix(part: Json) -> Json | None:
    for key in ("normalizers", "pretokenizers"):
        if key in part:
            inner = [_without_prefix(item) for item in part[key]]
            part[key] = [item for item in inner if item is not None]
    return part
