"""Six questions about one image, beside six times one: what is encoded, computed and waited for.

Run from the repository's root: `python -m benches.images`. The model is a
random Llava: what is measured is work, not answers.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/support"))

import vision_folders
from vision_engine import Engine, ids_of

RESULTS = Path(__file__).parent / "results/images.json"
QUESTIONS = [f"Question {i}: what is in the picture, and where is it?" for i in range(6)]
N_TOKENS = 16
N_ROUNDS = 5
WIDE = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 12,
        "num_attention_heads": 9, "num_key_value_heads": 3}  # fmt: skip


def folder(at: Path) -> Path:
    """A Llava of a larger shape: 576 tokens an image, as Llava 1.5 has."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    torch.manual_seed(0)
    tokenizer = vision_folders.tokenizer()
    at.mkdir()
    images = CLIPImageProcessorPil()
    images.size, images.crop_size = {"shortest_edge": 336}, {"height": 336, "width": 336}
    transformers.LlavaProcessor(
        images, tokenizer, patch_size=14, vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    ).save_pretrained(at)  # fmt: skip
    vision = transformers.CLIPVisionConfig(
        hidden_size=384, intermediate_size=1536, num_hidden_layers=12, num_attention_heads=6,
        image_size=336, patch_size=14,
    )  # fmt: skip
    text = transformers.LlamaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=4096, bos_token_id=0, eos_token_id=1,
        **WIDE,
    )  # fmt: skip
    config = transformers.LlavaConfig(
        vision_config=vision, text_config=text,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )  # fmt: skip
    transformers.LlavaForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(at)
    tokenizer.save_pretrained(at)
    return at


def measured(engine: Engine, shares: bool) -> dict[str, Any]:
    """Six questions at once, or each on an engine that has seen nothing."""
    image = vision_folders.png(vision_folders.picture(time.perf_counter_ns() % 2**31, 640, 480))
    before = engine.core.stats().counters
    took_s, answers = 0.0, []
    groups = [QUESTIONS] if shares else [[question] for question in QUESTIONS]
    for group in groups:
        if not shares:
            engine.core.flush_cache()
            engine.core._forward.clear_seen()
        started_s = time.perf_counter()
        numbers = [engine.start(engine.prepared(image, text, n=N_TOKENS)) for text in group]
        found = engine.finish()
        took_s += time.perf_counter() - started_s
        answers += [ids_of(found[number]) for number in numbers]
    after = engine.core.stats().counters
    return {
        "seconds": took_s,
        "encoded_images": after.encoded_images - before.encoded_images,
        "computed_tokens": after.computed_tokens - before.computed_tokens,
        "prompt_tokens": after.prompt_tokens - before.prompt_tokens,
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as at:
        engine = Engine(folder(Path(at) / "llava"), "<image>", pool_tokens=8192, check=False)
        for shares in (True, False):
            measured(engine, shares)
        rows: dict[str, list[dict[str, Any]]] = {"one image": [], "six times one": []}
        for _ in range(N_ROUNDS):
            rows["one image"].append(measured(engine, shares=True))
            rows["six times one"].append(measured(engine, shares=False))
    result = {
        "command": "python -m benches.images",
        "machine": f"{torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}",
        "versions": {"python": platform.python_version(), "torch": torch.__version__,
                     "transformers": transformers.__version__},
        "rounds": rows,
    }  # fmt: skip
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    for name, found in rows.items():
        seconds = [row["seconds"] for row in found]
        last = found[-1]
        print(
            f"{name}: {statistics.median(seconds):.2f} s "
            f"({min(seconds):.2f} to {max(seconds):.2f}), "
            f"{last['encoded_images']} encoded, {last['computed_tokens']} of "
            f"{last['prompt_tokens']} prompt tokens computed"
        )


if __name__ == "__main__":
    main()
