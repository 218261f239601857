"""Checks that a model folder is complete, before anything is loaded; errors name the file.

Reads JSON and the headers of safetensors files, no weights. Called by `models.py`.
"""

from __future__ import annotations

from pathlib import Path

from sgc.errors import LoadError
from sgc.runtime.engine.model.weight_files import check_counts, check_sizes, read_headers
from sgc.runtime.engine.text.json_files import AGAIN, Json, configured_eos_ids, read_json

TOKENIZERS = ("tokenizer.json", "*.model", "*.tiktoken", "vocab.*", "tekken.json")
ADAPTER = "adapter_config.json"
CLASSIFIERS = ("ForSequenceClassification", "ForTokenClassification")
# Other files that libraries read.
OTHERS = ("tokenizer_config.json", "chat_template.json", "special_tokens_map.json",
          "added_tokens.json")  # fmt: skip


def check_files(folder: Path) -> None:
    """Raises `LoadError` for the first file that is missing, cut off or malformed."""
    refuse_adapter(folder)
    config = read_json(folder / "config.json")
    if not config:
        raise LoadError(f"{folder / 'config.json'} is empty", hint=AGAIN)
    _refuse_classifier(folder / "config.json", config)
    headers = read_headers(folder)
    for values in (config, *(part for part in config.values() if isinstance(part, dict))):
        check_sizes(folder / "config.json", values, headers)
    check_counts(folder / "config.json", config)
    if isinstance(text := config.get("text_config"), dict):
        check_counts(folder / "config.json", text)
    if not any(True for pattern in TOKENIZERS for _ in folder.glob(pattern)):
        raise LoadError(
            f"{folder} has no tokenizer: {folder / 'tokenizer.json'} is missing",
            hint="save the model's tokenizer there with transformers' save_pretrained",
        )
    for name in ("tokenizer.json", *OTHERS):
        read_json(folder / name)
    configured_eos_ids(folder)


def refuse_adapter(folder: Path) -> None:
    """Refuses an adapter: it would be ignored, or bring weights from elsewhere."""
    if (folder / ADAPTER).exists():
        raise LoadError(
            f"{folder} holds an adapter ({ADAPTER}), and no model by itself",
            hint="serve the model that it changes, with --adapter NAME=FOLDER for this folder",
        )


def _refuse_classifier(path: Path, config: Json) -> None:
    for name in config.get("architectures") or ():
        if str(name).endswith(CLASSIFIERS):
            raise LoadError(
                f"{path} says {str(name)[:80]}, a model that classifies, such as a cross-encoder; "
                "this engine runs models that generate text",
                hint="for scores and ranks, give a causal model or an embedder: they are cosines "
                "of embeddings",
            )
