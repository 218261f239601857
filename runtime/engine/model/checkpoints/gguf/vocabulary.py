"""A GGUF file's vocabulary as the files of a tokenizer, made by transformers' own conversion.

It imports no torch. The chat template is written as it is: whoever renders it bounds it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from sgc.errors import LoadError
from sgc.runtime.engine.model.checkpoints.gguf.files import Gguf
from sgc.runtime.engine.model.checkpoints.gguf.header import damaged
from sgc.runtime.engine.text.json_files import Json

KINDS = ("gpt2", "llama")  # byte-level BPE, and SentencePiece's
# Ways to split a text before BPE that are GPT-2's own, and those that cut out single digits first.
GPT2 = ("gpt-2", "phi-2", "olmo", "mpt")
DIGITS = ("smollm", "starcoder", "refact")
_NAMED = {"bos_token": "bos_token_id", "eos_token": "eos_token_id",
          "unk_token": "unknown_token_id", "pad_token": "padding_token_id"}  # fmt: skip
_ENDS = ("eos_token_id", "eot_token_id", "eom_token_id")
_LISTS = {"tokens": str, "merges": str, "scores": float, "token_type": int}


def end_ids(gguf: Gguf) -> list[int]:
    """The tokens that end a reply, a turn or a message."""
    tokens = _tokens(gguf)
    found = [_id(gguf, name, tokens) for name in _ENDS]
    return list(dict.fromkeys(each for each in found if each is not None))


def special_ids(gguf: Gguf) -> Json:
    """As a config.json has them."""
    tokens = _tokens(gguf)
    names = ("bos_token_id", "eos_token_id")
    found: Json = {name: _id(gguf, name, tokens) for name in names}
    return {**found, "pad_token_id": _id(gguf, "padding_token_id", tokens)}


def write_tokenizer(gguf: Gguf, architecture: str, folder: Path) -> None:
    """Writes tokenizer.json, tokenizer_config.json and a template; raises `LoadError`."""
    tokens = _tokens(gguf)
    fields = _fields(gguf)
    config: Json = {name: _get(gguf, f"tokenizer.ggml.{name}", bool)
                    for name in ("add_bos_token", "add_eos_token")}  # fmt: skip
    if config["add_bos_token"] is None and fields["tokenizer_type"] == "llama":
        config["add_bos_token"] = True  # as llama.cpp does where nothing is said
    for name, key in _NAMED.items():
        number = _id(gguf, key, tokens)
        config[name] = None if number is None else tokens[number]
    try:
        spec = _converted(architecture, fields, config)
    except Exception as error:  # the libraries raise all kinds
        damaged(
            gguf.path, f"its vocabulary cannot be used ({type(error).__name__}: {error!s:.200})"
        )
    (folder / "tokenizer.json").write_text(json.dumps(spec), encoding="utf-8")
    told = {"tokenizer_class": "PreTrainedTokenizerFast", **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    template = _get(gguf, "tokenizer.chat_template", str)
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


def _converted(architecture: str, fields: Json, config: Json) -> Json:
    """The content of tokenizer.json. What transformers' classes add to every vocabulary, and the
    file has not, is left out: the model has no rows for it."""
    from tokenizers import pre_tokenizers
    from transformers.integrations.gguf.gguf_tokenizer_mapping import convert_gguf_tokenizer
    from transformers.tokenization_utils_tokenizers import TokenizersBackend

    backend: Any = convert_gguf_tokenizer(architecture, fields)[0]
    if fields.get("pre_tokenizer_type") in DIGITS:
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), backend.pre_tokenizer]
        )
    given = {name: value for name, value in config.items() if value is not None}
    make: Any = TokenizersBackend
    whole = make(tokenizer_object=backend, **given)
    spec: Json = json.loads(whole.backend_tokenizer.to_str())
    n = len(fields["tokens"])
    return {**spec, "added_tokens": [each for each in spec["added_tokens"] if each["id"] < n]}


def _fields(gguf: Gguf) -> Json:
    """As transformers' conversion takes them."""
    from transformers.integrations.gguf.gguf_tokenizer_mapping import (
        GGUF_PRE_TOKENIZER_SPLITS,
        GGUF_TOKENIZER_MAPPING,
    )

    names: Mapping[str, str] = GGUF_TOKENIZER_MAPPING["tokenizer"]
    found: Json = {name: gguf.values[f"tokenizer.{key}"] for key, name in names.items()
                   if f"tokenizer.{key}" in gguf.values}  # fmt: skip
    kind, split = found.get("tokenizer_type"), found.get("pre_tokenizer_type")
    if kind not in KINDS:
        _refuse(gguf, f"its tokenizer is of the kind {kind!r:.80}; {' and '.join(KINDS)} are read")
    known = {*GGUF_PRE_TOKENIZER_SPLITS, *GPT2, *DIGITS}
    if kind == "gpt2" and split not in known:
        _refuse(gguf, f"how its tokenizer splits texts ({split!r:.80}) is not known")
    n = len(found["tokens"])
    for name, type_ in _LISTS.items():
        values = found.get(name)
        if values is None:
            continue
        if not isinstance(values, list) or not all(type(each) is type_ for each in values):
            damaged(gguf.path, f"the {name} of its tokenizer are of another type")
        if name != "merges" and len(values) != n:
            damaged(gguf.path, f"it has {len(values)} {name} for {n} tokens")
    if any(merge.count(" ") != 1 for merge in found.get("merges") or ()):
        damaged(gguf.path, "a merge of its tokenizer is not of two tokens")
    if "scores" not in found and "merges" not in found:
        damaged(gguf.path, "its tokenizer has neither scores nor merges")
    return found


def _tokens(gguf: Gguf) -> list[str]:
    found = _get(gguf, "tokenizer.ggml.tokens", list)
    if not found or type(found[0]) is not str:
        _refuse(gguf, "it has no tokenizer")
    return list(found)


def _id(gguf: Gguf, name: str, tokens: list[str]) -> int | None:
    found = _get(gguf, f"tokenizer.ggml.{name}", int)
    if found is not None and not 0 <= found < len(tokens):
        return None  # as -1, or beside the vocabulary: there is none
    return None if found is None else int(found)


def _get(gguf: Gguf, key: str, kind: type) -> Any:
    found = gguf.values.get(key)
    if found is not None and type(found) is not kind:
        damaged(gguf.path, f"{key} is {found!r:.50}, of another type")
    return found


def _refuse(gguf: Gguf, why: str) -> NoReturn:
    raise LoadError(
        f"{gguf.path} cannot be used: {why}", hint="serve the model's folder of safetensors"
    )
