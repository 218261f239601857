"""What bitsandbytes packed, widened here and by its own functions; and folders that transformers
saved with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from engine.core.model.test_fused import make_model

from sgc.runtime.engine.model.checkpoints.bits_and_bytes import widened
from sgc.runtime.engine.model.transformers_files import load_transformers_model

pytestmark = pytest.mark.slow
functional: Any = pytest.importorskip("bitsandbytes.functional", reason="needs bitsandbytes")


@pytest.mark.parametrize("kind", ["nf4", "fp4"])
@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("shape", [(48, 64), (7, 10), (130, 1024)])
def test_four_bits(kind: str, double: bool, shape: tuple[int, int]) -> None:
    weight = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    packed, state = functional.quantize_4bit(
        weight, blocksize=64, compress_statistics=double, quant_type=kind
    )
    told = {f"weight.{name}": each for name, each in state.as_dict(packed=True).items()}
    right = functional.dequantize_4bit(packed, state)
    assert torch.allclose(widened({"weight": packed, **told}, {}), right, rtol=1e-6, atol=1e-7)


def test_eight_bits() -> None:
    weight = torch.randn(48, 64, generator=torch.Generator().manual_seed(0)).half()
    numbers, largest, _ = functional.int8_vectorwise_quant(weight)
    right = functional.int8_vectorwise_dequant(numbers, largest)
    assert torch.allclose(widened({"weight": numbers, "SCB": largest}, {}), right, rtol=1e-6)


@pytest.mark.parametrize("settings", [
    {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True,
     "bnb_4bit_compute_dtype": torch.float32},
    {"load_in_8bit": True, "llm_int8_threshold": 0.0},
])  # fmt: skip
def test_a_folder_that_transformers_saved(settings: dict[str, Any], tmp_path: Path) -> None:
    """Its weights are those of transformers' `dequantize`."""
    pytest.importorskip("accelerate", reason="transformers loads bitsandbytes with it only")
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    made = make_model("Llama", {"hidden_size": 64, "intermediate_size": 128})
    made.save_pretrained(tmp_path / "plain")
    config = BitsAndBytesConfig(**settings)
    model: Any = AutoModelForCausalLM.from_pretrained(
        tmp_path / "plain", quantization_config=config, dtype=torch.float32, device_map="cpu"
    )
    model.save_pretrained(tmp_path / "packed")
    found = load_transformers_model(str(tmp_path / "packed"), "float32").state_dict()
    for key, right in model.dequantize(torch.float32).state_dict().items():
        assert torch.allclose(found[key], right, rtol=1e-6, atol=1e-7), key
    products = "model.layers.0.mlp.up_proj.weight"
    assert not torch.equal(found[products], made.state_dict()[products])
