"""The default model: a small Llama with seeded random weights and the shipped tokenizer.

It says nothing sensible, but it is a real model in a normal Hugging Face folder, so that
everything runs without a download. Made with numpy and safetensors on first use; torch is
not imported. Called by `models.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from sgc.errors import LoadError

VERSION = 1
SEED = 20260101
ASSETS = Path(__file__).resolve().parent / "assets"
TOKENIZER_FOLDER = ASSETS / "tokenizer"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")
MANIFEST = "sgc_manifest.json"  # the sha256 of every other file
MAKING = ".making-"
ABANDONED_S = 600.0
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
    "bos_token_id": None,
    "eos_token_id": [0, 2],
    "dtype": "float32",
}


def cache_folder() -> Path:
    """Where models made here are kept: $SGC_CACHE_DIR, $XDG_CACHE_HOME/sgc or ~/.cache/sgc."""
    if own := os.environ.get("SGC_CACHE_DIR"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sgc"


def default_model_folder() -> Path:
    """The default model's folder, made if it is not there or not whole; concurrent makers are
    fine."""
    target = cache_folder() / "models" / f"default-{VERSION}-{_asset_digest()}"
    if _is_whole(target):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _make_atomically(target)
    except OSError as error:
        raise LoadError(
            f"cannot write the default model to {target}: {error}",
            hint="set SGC_CACHE_DIR to a folder that can be written",
        ) from error
    return target


def _asset_digest() -> str:
    data = b"".join((TOKENIZER_FOLDER / name).read_bytes() for name in TOKENIZER_FILES)
    return hashlib.sha256(data + json.dumps(CONFIG).encode()).hexdigest()[:12]


def _is_whole(folder: Path) -> bool:
    """Whether every file is there as it was written."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return bool(manifest) and all(
            _digest(folder / name) == digest for name, digest in manifest.items()
        )
    except (OSError, ValueError, AttributeError):
        return False


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _make_atomically(target: Path) -> None:
    _remove_abandoned(target.parent)
    work = Path(tempfile.mkdtemp(prefix=MAKING, dir=target.parent))
    try:
        new, old = work / "new", work / "old"
        new.mkdir(mode=0o755)
        _write_model(new)
        if target.exists() and not _is_whole(target):
            target.rename(old)
        try:
            new.rename(target)
        except OSError:
            if not _is_whole(target):  # not just another maker that was first
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    """Removes what makers that were killed left behind."""
    for path in folder.glob(f"{MAKING}*"):
        with contextlib.suppress(FileNotFoundError):  # removed just now
            if time.time() - path.stat().st_mtime > ABANDONED_S:
                shutil.rmtree(path, ignore_errors=True)


def _write_model(folder: Path) -> None:
    from safetensors.numpy import save_file

    for name in TOKENIZER_FILES:
        shutil.copyfile(TOKENIZER_FOLDER / name, folder / name)
    spec = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocab: dict[str, int] = spec["model"]["vocab"]
    save_file(_weights(vocab), folder / "model.safetensors", metadata={"format": "pt"})
    config = {**CONFIG, "vocab_size": len(vocab)}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    manifest = {path.name: _digest(path) for path in sorted(folder.iterdir())}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


def _weights(vocab: dict[str, int]) -> dict[str, Any]:
    """Seeded normal weights, scaled so that greedy text varies instead of repeating a token."""
    import numpy as np

    r = np.random.default_rng(SEED)
    hidden, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    kv = CONFIG["num_key_value_heads"] * CONFIG["head_dim"]

    def normal(rows: int, columns: int, gain: float) -> Any:
        scale = gain / columns**0.5
        return (r.standard_normal((rows, columns)) * scale).astype(np.float32)

    ones = np.ones(hidden, dtype=np.float32)
    tensors = {"model.embed_tokens.weight": normal(len(vocab), hidden, hidden**0.5)}
    for layer in range(CONFIG["num_hidden_layers"]):
        name = f"model.layers.{layer}"
        tensors |= {
            f"{name}.self_attn.q_proj.weight": normal(hidden, hidden, 1.6),
            f"{name}.self_attn.k_proj.weight": normal(kv, hidden, 1.6),
            f"{name}.self_attn.v_proj.weight": normal(kv, hidden, 1.5),
            f"{name}.self_attn.o_proj.weight": normal(hidden, hidden, 1.5),
            f"{name}.mlp.gate_proj.weight": normal(inner, hidden, 1.5),
            f"{name}.mlp.up_proj.weight": normal(inner, hidden, 1.5),
            f"{name}.mlp.down_proj.weight": normal(hidden, inner, 1.5),
            f"{name}.input_layernorm.weight": ones.copy(),
            f"{name}.post_attention_layernorm.weight": ones.copy(),
        }
    head = normal(len(vocab), hidden, 2.5)
    for token, token_id in vocab.items():
        head[token_id] *= _head_scale(token)
    return tensors | {"model.norm.weight": ones, "lm_head.weight": head}


def _head_scale(token: str) -> float:
    """Whole words come often; single bytes that are no text, and special tokens, rarely."""
    if token.startswith("<|") or (len(token) == 1 and not "!" <= token <= "~" and token != "Ġ"):
        return 0.05
    return 1.0 if len(token) > 2 else 0.85
