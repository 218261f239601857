"""Tokenizers of the usual kinds, trained here in milliseconds, and an engine on the fake model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.text.tokenizer import Tokenizer as SgcTokenizer
from sgc.runtime.engine.text.tokenizer import load_tokenizer
from sgc.runtime.executor.backends.engine.backend import EngineBackend

TEXTS = [
    "The quick brown fox jumps over the lazy dog, and the other dog sleeps.",
    "Hello world! Hello there, how are you today? I'm fine; we've met.",
    "1 2 3 12 123 1234 {'a': [1, 2]} def f(x): return x + 1",
    "naïve café über straße “quoted” 你好 世界 🙂 here\n\n  two  spaces\ttab",
    "Question: what is it? Answer: it is the answer to the question.",
] * 3
SPECIALS = ["<unk>", "<s>", "</s>", "<|end|>"]


def _byte_level(add_prefix_space: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def _sentencepiece(scheme: str) -> Tokenizer:
    """BPE over Metaspace with byte fallback, like Llama 2's."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    tokenizer.decoder = _llama_decoder()
    byte_tokens = [f"<0x{i:02X}>" for i in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=SPECIALS + byte_tokens, show_progress=False
    )
    tokenizer.train_from_iterator([t.encode("ascii", "ignore").decode() for t in TEXTS], trainer)
    spec = json.loads(tokenizer.to_str())
    spec["added_tokens"] = [t for t in spec["added_tokens"] if t["content"] in SPECIALS]
    return Tokenizer.from_str(json.dumps(spec))


def _llama_decoder() -> Any:
    return decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )


def _unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=200, special_tokens=SPECIALS, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def _prepend() -> Tokenizer:
    """Llama 2's older form: a normalizer prepends the space."""
    tokenizer = _sentencepiece("never")
    tokenizer.pre_tokenizer = None
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    return tokenizer


def _build(kind: str) -> tuple[Tokenizer, dict[str, Any]]:
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "clean_up_tokenization_spaces": False,
    }
    with_bos = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    if kind == "byte":
        return _byte_level(False), config
    makers: dict[str, Callable[[], Tokenizer]] = {
        "byte_prefix": lambda: _byte_level(True),
        "spm_first": lambda: _sentencepiece("first"),
        "spm_always": lambda: _sentencepiece("always"),
        "unigram": _unigram,
        "prepend": _prepend,
        "llama_class": _prepend,
    }
    tokenizer = makers[kind]()
    tokenizer.post_processor = with_bos
    if kind == "byte_prefix":
        config |= {"add_prefix_space": True, "add_bos_token": False}  # which does not count
    if kind == "llama_class":
        config |= {"tokenizer_class": "LlamaTokenizer", "legacy": False, "add_bos_token": True}
    return tokenizer, config


def write_folder(folder: Path, tokenizer: Tokenizer, config: dict[str, Any]) -> Path:
    tokenizer.add_special_tokens([AddedToken("<|mid|>", special=True)])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """kind -> a folder with such a tokenizer; "shipped" is the fake model's."""
    root = tmp_path_factory.mktemp("tokenizers")
    made: dict[str, Path] = {"shipped": DEFAULT_FOLDER}

    def folder(kind: str) -> Path:
        if kind not in made:
            made[kind] = write_folder(root / kind, *_build(kind))
        return made[kind]

    return folder


@pytest.fixture(scope="session")
def tokenizer_of(tokenizer_folder: Callable[[str], Path]) -> Callable[[str], SgcTokenizer]:
    loaded: dict[str, SgcTokenizer] = {}

    def load(kind: str) -> SgcTokenizer:
        if kind not in loaded:
            loaded[kind] = load_tokenizer(tokenizer_folder(kind))
        return loaded[kind]

    return load


@pytest.fixture(scope="session")
def shipped(tokenizer_of: Callable[[str], SgcTokenizer]) -> SgcTokenizer:
    return tokenizer_of("shipped")


@pytest.fixture(scope="session")
def checked_engine() -> Iterator[EmbeddedEngine]:
    """An engine on the fake model whose books are checked after every step."""
    arguments = ["--check", "--max-context", "4096", "--pool-tokens", "20000"]
    with EmbeddedEngine("fake", arguments) as running:
        yield running


@pytest.fixture(scope="module")
def engine(checked_engine: EmbeddedEngine) -> EmbeddedEngine:
    """It with an empty cache."""

    async def flush() -> None:
        async with EngineBackend(checked_engine.uri) as backend:
            await backend.flush_cache()

    asyncio.run(flush())
    return checked_engine
