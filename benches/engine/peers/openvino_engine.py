"""Driver of openvino-genai: its continuous batching with prefix caching, f16 IR, bf16 inside.

The model's folder is the Hugging Face one; the IR is in a folder beside it, whose name ends in
"-openvino". It selects in one way, "choice": greedy, constrained to the choices by a regular
expression. If the first ids differ, that is much like the best first id, and not always the best
mean. Options: {"batched_tokens": 256, "cache_gb": 2, "properties": {of the CPU plugin}}.
"""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

from asyncio_peer import AsyncioPeer
from protocol import Tally, serve


class OpenvinoEngine(AsyncioPeer):
    packages = ("openvino-genai", "openvino")

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        import openvino_genai

        super().__init__()
        self.folder = folder
        self._genai = openvino_genai
        self._ids = count()
        self._pending: list[tuple[Any, asyncio.Future[Any]]] = []
        self._pump: asyncio.Task[None] | None = None
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.enable_prefix_caching = True
        scheduler.max_num_batched_tokens = options.get("batched_tokens", 256)
        scheduler.cache_size = options.get("cache_gb", 2)
        self._pipeline = openvino_genai.ContinuousBatchingPipeline(
            f"{folder}-openvino", scheduler, "CPU", options.get("properties", {})
        )

    async def generate(self, ids: list[int], n_out: int, tally: Tally) -> list[int]:
        config = self._genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos = n_out, True
        config.do_sample, config.apply_chat_template = False, False
        made = await self._ask(ids, config)
        tally.add(len(ids), len(made), None)
        return made

    async def match(self, ids: list[int], regex: str, n_max: int, tally: Tally) -> list[int]:
        config = self._genai.GenerationConfig()
        config.max_new_tokens = n_max
        config.do_sample, config.apply_chat_template = False, False
        config.structured_output_config = self._genai.StructuredOutputConfig(regex=regex)
        made = await self._ask(ids, config)
        tally.add(len(ids), len(made), None)
        return made

    async def select(self, ids: list[int], choices: list[list[int]], tally: Tally) -> int:
        """Selects greedily among the choices, by a regular expression, in one request."""
        import re

        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(Path(self.folder) / "tokenizer.json"))
        words = [tokenizer.decode(choice) for choice in choices]
        regex = "|".join(map(re.escape, words)).replace("\\ ", " ")
        made = await self.match(ids, regex, max(map(len, words)) + 1, tally)
        return words.index(tokenizer.decode(made))

    async def _ask(self, ids: list[int], config: Any) -> list[int]:
        import numpy as np
        from openvino import Tensor

        tensor = Tensor(np.array([ids], dtype=np.int64))
        handle = self._pipeline.add_request(next(self._ids), tensor, config)
        done = asyncio.get_running_loop().create_future()
        self._pending.append((handle, done))
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._step_while_pending())
        made: list[int] = await done
        return made

    async def _step_while_pending(self) -> None:
        """Steps the engine; between steps, clients with a reply may send the next request."""
        while self._pending:
            await asyncio.sleep(0)
            self._pipeline.step()
            running = []
            for handle, done in self._pending:
                if handle.get_status().name == "RUNNING":
                    running.append((handle, done))
                else:
                    done.set_result(list(handle.read_all()[0].generated_ids))
            self._pending[:] = running
            await asyncio.sleep(0)
            await asyncio.sleep(0)


if __name__ == "__main__":
    serve(OpenvinoEngine)
