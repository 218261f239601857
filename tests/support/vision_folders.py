"""Tiny random vision-language models with real processors, saved as folders."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIALS = [
    *("<s>", "</s>", "<image>", "<|im_start|>", "<|im_end|>", "<fake_token_around_image>"),
    *("<global-img>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"),
    *(f"<row_{y}_col_{x}>" for y in range(1, 4) for x in range(1, 4)),
    "<end_of_utterance>",
]
_TEXT = {"hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 2048,
         "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}  # fmt: skip
TEMPLATE = """{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}\
{% if part.type == 'image' %}IMAGE{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}\
<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def tokenizer() -> Any:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(["the image shows a cat and a dog; what is it?\n\n"] * 3, trainer)
    return hf.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")


def _llava(folder: Path, tok: Any) -> Any:
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    images = CLIPImageProcessorPil(
        size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}
    )
    processor = hf.LlavaProcessor(
        images, tok, patch_size=7, vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )  # fmt: skip
    processor.save_pretrained(folder)
    vision = hf.CLIPVisionConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        image_size=28, patch_size=7, projection_dim=32,
    )  # fmt: skip
    text = hf.LlamaConfig(vocab_size=len(tok), **_TEXT)
    config = hf.LlavaConfig(
        vision_config=vision, text_config=text,
        image_token_id=tok.convert_tokens_to_ids("<image>"),
    )  # fmt: skip
    return hf.LlavaForConditionalGeneration(config)


def _qwen(folder: Path, tok: Any, config_class: Any, model_class: Any, vision: Any) -> Any:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    images = Qwen2VLImageProcessorPil(
        size={"shortest_edge": 28 * 28, "longest_edge": 28 * 28 * 12}, patch_size=14
    )
    images.save_pretrained(folder)
    rope = {"rope_type": "default", "mrope_section": [2, 2, 2], "rope_theta": 10000.0}
    names = {"image_token_id": "image_pad", "video_token_id": "video_pad",
             "vision_start_token_id": "vision_start",
             "vision_end_token_id": "vision_end"}  # fmt: skip
    ids = {name: tok.convert_tokens_to_ids(f"<|{text}|>") for name, text in names.items()}
    text = {"vocab_size": len(tok), "rope_parameters": rope, **_TEXT}
    return model_class(config_class(text_config=text, vision_config=vision, **ids))


def _qwen2(folder: Path, tok: Any) -> Any:
    vision = {"depth": 2, "embed_dim": 32, "hidden_size": 48, "num_heads": 2, "mlp_ratio": 2,
              "patch_size": 14, "spatial_merge_size": 2}  # fmt: skip
    return _qwen(folder, tok, hf.Qwen2VLConfig, hf.Qwen2VLForConditionalGeneration, vision)


def _qwen2_5(folder: Path, tok: Any) -> Any:
    vision = {"depth": 2, "hidden_size": 32, "out_hidden_size": 48, "num_heads": 2,
              "intermediate_size": 48, "patch_size": 14, "spatial_merge_size": 2,
              "window_size": 56, "fullatt_block_indexes": [1]}  # fmt: skip
    return _qwen(folder, tok, hf.Qwen2_5_VLConfig, hf.Qwen2_5_VLForConditionalGeneration, vision)


def _tiles(folder: Path, tok: Any, images: Any, config_class: Any, model_class: Any) -> Any:
    images.save_pretrained(folder)
    (folder / "processor_config.json").write_text(json.dumps({"image_seq_len": 4}))
    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
              "num_attention_heads": 2, "image_size": 28, "patch_size": 7}  # fmt: skip
    text = hf.LlamaConfig(vocab_size=len(tok), **_TEXT)
    image_id = tok.convert_tokens_to_ids("<image>")
    config = config_class(
        text_config=text, vision_config=vision, image_token_id=image_id, scale_factor=2
    )
    return model_class(config)


def _idefics3(folder: Path, tok: Any) -> Any:
    from transformers.models.idefics3.image_processing_pil_idefics3 import (
        Idefics3ImageProcessorPil,
    )

    images = Idefics3ImageProcessorPil(
        size={"longest_edge": 56}, max_image_size={"longest_edge": 28}
    )
    return _tiles(folder, tok, images, hf.Idefics3Config, hf.Idefics3ForConditionalGeneration)


def _smolvlm(folder: Path, tok: Any) -> Any:
    from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

    images = SmolVLMImageProcessorPil(
        size={"longest_edge": 56}, max_image_size={"longest_edge": 28}
    )
    return _tiles(folder, tok, images, hf.SmolVLMConfig, hf.SmolVLMForConditionalGeneration)


MAKERS: dict[str, Callable[[Path, Any], Any]] = {
    "llava": _llava,
    "qwen2_vl": _qwen2,
    "qwen2_5_vl": _qwen2_5,
    "idefics3": _idefics3,
    "smolvlm": _smolvlm,
}
TOKENS = {"llava": "<image>", "qwen2_vl": "<|image_pad|>", "qwen2_5_vl": "<|image_pad|>",
          "idefics3": "<image>", "smolvlm": "<image>"}  # fmt: skip
SHOWN = {"llava": "<image>\n", "qwen2_vl": "<|vision_start|><|image_pad|><|vision_end|>",
         "qwen2_5_vl": "<|vision_start|><|image_pad|><|vision_end|>",
         "idefics3": "<image>", "smolvlm": "<image>"}  # fmt: skip


def save(name: str, folder: Path) -> Path:
    """Saves a tiny model of a family; its weights are large enough for clear choices."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    tok = tokenizer()
    tok.chat_template = TEMPLATE.replace("IMAGE", SHOWN[name].replace("\n", "\\n"))
    model = MAKERS[name](folder, tok)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.12)
    model.generation_config = hf.GenerationConfig(bos_token_id=0, eos_token_id=1, pad_token_id=1)
    model.save_pretrained(folder)
    tok.save_pretrained(folder)
    return folder


def picture(seed: int, width: int = 60, height: int = 44) -> Any:
    pixels = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), np.uint8)
    return PIL.Image.fromarray(pixels).resize((width, height), PIL.Image.Resampling.NEAREST)


def png(image: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()
