"""Compares the texts of an engine with adapters with peft's own, which this script needs beside
sgc's packages (`pip install peft`).

    python -P benches/engine/adapters_peft.py [--prompts 20] [--tokens 32] [--out FILE.json]

peft makes adapters of several kinds on the default model, fills them with random numbers and saves
them. An engine serves all of them, and gets the prompts with each at once, so that its batches hold
rows of all; peft generates from one prompt after another. float32, greedy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import peft
import torch
import transformers

sys.path.append(str(Path(__file__).resolve().parent))

from peers import machine

from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Generated, Sampling, TextRun

SENTENCES = (
    "The lighthouse stood at the end of a long pier", "Question: How far is the moon?\nAnswer:",
    "def mean(values):", "Water boils at a lower temperature", "Once a king had three daughters",
    "The capital of France is", "To bake bread you need", '{"name": "Ada", "born":',
    "In 1911 the council replaced", "She opened the letter and",
)  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "all-linear": {"r": 8, "lora_alpha": 16, "target_modules": "all-linear"},
    "by-name": {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]},
    "by-regex": {"r": 4, "target_modules": r".*\.(0|1)\.(self_attn\.o_proj|mlp\.down_proj)"},
    "rslora": {"r": 16, "lora_alpha": 8, "use_rslora": True, "target_modules": ["k_proj"]},
    "patterns": {
        "r": 8, "lora_alpha": 8, "target_modules": ["q_proj", "gate_proj", "down_proj"],
        "rank_pattern": {"q_proj": 2, r"layers\.1\.mlp\.gate_proj": 12},
        "alpha_pattern": {r"layers\.0\..*": 32},
    },
    "layers": {"r": 8, "target_modules": ["o_proj"], "layers_to_transform": [0]},
}  # fmt: skip


def save_adapters(folder: Path, model: Any) -> dict[str, Path]:
    found = {}
    for seed, (name, settings) in enumerate(KINDS.items()):
        torch.manual_seed(seed)
        config = peft.LoraConfig(task_type="CAUSAL_LM", **settings)
        adapted = peft.get_peft_model(model, config)
        for key, value in adapted.named_parameters():
            if "lora_B" in key:
                torch.nn.init.normal_(value, std=0.15)
        adapted.save_pretrained(str(folder / name))
        model = adapted.unload()
        found[name] = folder / name
    return found


def generated_by_peft(folder: Path | None, prompts: list[str], n: int) -> list[list[int]]:
    model = transformers.AutoModelForCausalLM.from_pretrained(DEFAULT_FOLDER, dtype="float32")
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEFAULT_FOLDER)
    if folder is not None:
        model = peft.PeftModel.from_pretrained(model, str(folder))
    found = []
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt")
        out = model.generate(**ids, max_new_tokens=n, min_new_tokens=n, do_sample=False)
        found.append(out[0][ids["input_ids"].shape[1] :].tolist())
    return found


def generated_here(folders: dict[str, Path], prompts: list[str], n: int) -> dict[str, Any]:
    options = [f"--adapter={name}={folder}" for name, folder in folders.items()]

    async def run(uri: str) -> dict[str, list[Generated]]:
        async with EngineBackend(uri) as backend:
            views = {name: backend.with_adapter(name) for name in folders} | {"": backend}
            sampling = Sampling(max_tokens=n, min_tokens=n, temperature=0.0)
            asks = [
                view.generate((TextRun(prompt),), sampling)
                for prompt in prompts
                for view in views.values()
            ]
            found = await asyncio.gather(*asks)
            return {name: found[i :: len(views)] for i, name in enumerate(views)}

    with EmbeddedEngine(None, [*options, "--dtype", "float32"]) as engine:
        return asyncio.run(run(engine.uri))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    prompts = [SENTENCES[i % 10] + " and" * (i // 10) for i in range(asked.prompts)]
    with tempfile.TemporaryDirectory() as temporary:
        model = transformers.AutoModelForCausalLM.from_pretrained(DEFAULT_FOLDER, dtype="float32")
        folders = save_adapters(Path(temporary), model)
        here = generated_here(folders, prompts, asked.tokens)
        rows: dict[str, Any] = {}
        own = generated_by_peft(None, prompts, asked.tokens)
        for name in here:
            theirs = generated_by_peft(folders.get(name), prompts, asked.tokens)
            ours = [list(reply.ids) for reply in here[name]]
            rows[name or "none"] = {
                "equal": sum(a == b for a, b in zip(theirs, ours, strict=True)),
                "texts": len(prompts),
                "unlike_the_model": sum(a != b for a, b in zip(theirs, own, strict=True)),
            }
    for name, row in rows.items():
        print(f"{name:12} {row['equal']} of {row['texts']} texts are peft's own; "
              f"{row['unlike_the_model']} are not the model's")  # fmt: skip
    if asked.out is not None:
        told = {
            "machine": machine(),
            "peft": peft.__version__,
            "tokens": asked.tokens,
            "kinds": rows,
        }
        asked.out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
