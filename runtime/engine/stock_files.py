"""Loads any causal LM of transformers. Imported only where `plain_files.py` knows a model not."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from sgc.runtime.engine.runner import UnsupportedModel
from sgc.runtime.engine.stock import ATTENTION

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def load_stock(folder: str, dtype: str) -> Any:
    """The model in transformers' own class. dtype: as for `runner.load_model`."""
    disable_progress_bar()  # type: ignore[no-untyped-call]
    common = {"local_files_only": True, "trust_remote_code": False}
    config = AutoConfig.from_pretrained(folder, **common)
    try:
        return AutoModelForCausalLM.from_pretrained(
            folder,
            config=config,
            dtype=_DTYPES.get(dtype, "auto"),
            attn_implementation=ATTENTION,
            use_safetensors=True,
            **common,
        )
    except (ValueError, KeyError, AttributeError, ImportError) as error:
        names = ", ".join(config.architectures or [config.model_type])
        reason = str(error)
        if isinstance(error, KeyError) and ATTENTION in reason:
            reason = "it does not attend through transformers' attention interface"
        raise UnsupportedModel(f"{names} is not supported: {reason} ({folder})") from error
