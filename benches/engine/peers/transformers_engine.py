"""Driver of transformers' `generate`: one static batch per turn, bf16, no sharing among requests.

Chats of several turns keep their cache and advance together. Options: {"batch": 64}.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

from protocol import Chats, Tally, serve


class Transformers:
    packages = ("torch", "transformers")

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        self._torch = torch
        self._batch = options.get("batch", 64)
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()

    def run_chats(self, chats: Chats) -> Tally:
        tally = Tally()
        for start in range(0, len(chats), self._batch):
            tally.first_ids += self._run_batch(chats[start : start + self._batch], tally)
        return tally

    def _run_batch(self, chats: Chats, tally: Tally) -> list[int]:
        from transformers import DynamicCache

        torch = self._torch
        cache = DynamicCache()
        history = torch.empty(len(chats), 0, dtype=torch.long)
        first_ids: list[int] = []
        for turns in zip(*chats, strict=True):
            new = torch.tensor([turn["ids"] for turn in turns])
            history, n_held = torch.cat([history, new], 1), history.shape[1]
            n_prompt, n_out = history.shape[1], turns[0]["n_out"]
            with torch.inference_mode():
                history = self._model.generate(
                    history, attention_mask=torch.ones_like(history), past_key_values=cache,
                    do_sample=False, min_new_tokens=n_out, max_new_tokens=n_out, pad_token_id=0,
                )  # fmt: skip
            assert history.shape[1] == n_prompt + n_out
            for _ in turns:
                tally.add(n_prompt, n_out, max(0, n_held - 1))
            first_ids = first_ids or history[:, n_prompt].tolist()
        return first_ids

    def run_program(self, program: str, texts: list[str], select: str) -> Tally:
        raise NotImplementedError("no client of 64 programs in flight for a static batch")

    def close(self) -> None:
        pass


if __name__ == "__main__":
    serve(Transformers)
