"""Makes the models of the engine's benches: random weights of a real model's shape, from a seed.

    python -P benches/engine/models.py FOLDER [--models S,M]

S is small, so that it shows the cost of a step; M has the shape of Qwen2-0.5B with a smaller
vocabulary. Each becomes FOLDER/S or FOLDER/M, a Hugging Face folder with a byte-level BPE
tokenizer of the model's vocabulary, learned here from seeded pseudo-words. A folder that is
there and of the same specification is left as it is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

from texts import TEMPLATES, Prose, words

SEED = 20
END = "<|end|>"
N_QUIET = 257  # the end token and the 256 bytes, which are unlikely in replies
SPEC_FILE = "bench_spec.json"
MAX_POSITIONS = 8192

SPECS: dict[str, dict[str, Any]] = {
    "S": {
        "architecture": "Llama", "hidden_size": 288, "num_hidden_layers": 6,
        "num_attention_heads": 6, "num_key_value_heads": 6, "intermediate_size": 768,
        "vocab_size": 4096, "tie_word_embeddings": False,
    },
    "M": {
        "architecture": "Qwen2", "hidden_size": 896, "num_hidden_layers": 24,
        "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864,
        "vocab_size": 32000, "tie_word_embeddings": True,
    },
}  # fmt: skip


def make(name: str, folder: Path) -> Path:
    """The folder of a model, which is made if it does not exist."""
    learned_from = hashlib.sha256(json.dumps(TEMPLATES).encode()).hexdigest()[:12]
    target, spec = folder / name, {**SPECS[name], "seed": SEED, "templates": learned_from}
    spec_file = target / SPEC_FILE
    if spec_file.exists() and json.loads(spec_file.read_text()) == spec:
        return target
    target.mkdir(parents=True, exist_ok=True)
    save_tokenizer(SPECS[name]["vocab_size"], target)
    save_weights(SPECS[name], target)
    spec_file.write_text(json.dumps(spec) + "\n")
    return target


def save_weights(spec: dict[str, Any], target: Path) -> None:
    import torch
    import transformers

    shape = {key: value for key, value in spec.items() if key != "architecture"}
    config = getattr(transformers, spec["architecture"] + "Config")(
        **shape, max_position_embeddings=MAX_POSITIONS, bos_token_id=None, eos_token_id=0,
        pad_token_id=None,
    )  # fmt: skip
    config.dtype = torch.bfloat16
    with torch.device("meta"):
        model = getattr(transformers, spec["architecture"] + "ForCausalLM")(config)
    model = model.to(torch.bfloat16).to_empty(device="cpu").eval()
    draw = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for key, value in model.named_parameters():
            value.copy_(initial(key, value.shape, draw))
    if spec["tie_word_embeddings"]:
        model.tie_weights()
    model.generation_config = transformers.GenerationConfig(eos_token_id=0)
    model.save_pretrained(target)


def initial(key: str, shape: Any, draw: Any) -> Any:
    """Weights that preserve the scale of activations, so that replies depend on the prompt."""
    import torch

    if key.endswith("norm.weight"):
        return torch.ones(shape)
    value = torch.randn(shape, generator=draw)
    if "embed_tokens" in key or "lm_head" in key:
        value *= 0.05
        value[:N_QUIET] *= 0.05
        return value
    return value * (0.02 if key.endswith("bias") else shape[-1] ** -0.5)


def save_tokenizer(vocab_size: int, target: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[END], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )  # fmt: skip
    tokenizer.train_from_iterator(_corpus(), trainer)
    assert tokenizer.get_vocab_size() == vocab_size, tokenizer.get_vocab_size()
    tokenizer.save(str(target / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END,
        "model_max_length": MAX_POSITIONS, "clean_up_tokenization_spaces": False,
    }  # fmt: skip
    (target / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def _corpus() -> Iterator[str]:
    prose = Prose(SEED)
    yield from TEMPLATES * 20
    for _ in range(2000):
        yield prose.text(120)
    yield " ".join(words())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", default="S,M")
    arguments = parser.parse_args()
    for name in arguments.models.split(","):
        print(make(name, arguments.folder))


if __name__ == "__main__":
    main()
