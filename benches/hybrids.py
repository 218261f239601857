"""Models with recurrent layers: the engine beside transformers' own `generate`, in turn, in one
process, on random weights in bfloat16.

    python -P benches/hybrids.py [--models lfm2,qwen3_next,jamba] [--reps 3] [--threads 2]
        [--out FILE.json]

Sixteen requests with 256 tokens in common and 64 of their own generate 16 tokens each: by
`generate` as one batch, by the engine as requests that arrive together. Then four chats of three
turns, 64 tokens in and 16 out a turn: by `generate` each turn anew, as there is no cache that
outlives a call. lfm2 has the shape of LFM2-350M; the others have eight layers of width 512.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

sys.path.append(str(Path(__file__).resolve().parent / "engine"))

from peers import machine

from sgc.runtime.engine.model.loading import size_states
from sgc.runtime.engine.model.ways import packed_runner
from sgc.runtime.engine.requests.request import EngineRequest, Generate
from sgc.runtime.engine.step.core import EngineCore

VOCAB, POOL, NEW = 32000, 16384, 16
SMALL = {
    "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 8,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64,
}  # fmt: skip
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "lfm2": ("Lfm2", {
        "hidden_size": 1024, "intermediate_size": 6656, "num_hidden_layers": 16,
        "num_attention_heads": 16, "num_key_value_heads": 8,
        "layer_types": ["full_attention" if i in (2, 5, 8, 10, 12, 14) else "conv"
                        for i in range(16)],
    }),
    "qwen3_next": ("Qwen3Next", {
        **SMALL, "linear_num_key_heads": 4, "linear_num_value_heads": 8,
        "linear_key_head_dim": 64, "linear_value_head_dim": 64, "num_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 256,
        "shared_expert_intermediate_size": 256,
    }),
    "jamba": ("Jamba", {
        **SMALL, "attn_layer_period": 4, "attn_layer_offset": 2, "num_experts": 2,
        "mamba_d_state": 16, "mamba_dt_rank": 32,
    }),
}  # fmt: skip


def make_model(name: str) -> Any:
    torch.manual_seed(0)
    prefix, shape = SHAPES[name]
    kind = getattr(transformers, f"{prefix}Config")
    config = kind(vocab_size=VOCAB, eos_token_id=None, pad_token_id=0, **shape)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def forks() -> list[list[int]]:
    rng = np.random.default_rng(0)
    shared = rng.integers(1, VOCAB, 256).tolist()
    return [shared + rng.integers(1, VOCAB, 64).tolist() for _ in range(16)]


class Ours:
    def __init__(self, name: str) -> None:
        self._runner = packed_runner(make_model(name), POOL)
        assert self._runner.states is not None
        self.ask([[1, 2, 3]], self._core(2))  # it tells the size of a state
        size_states(self._runner.states, name)
        self.n_slots = self._runner.states.n_slots

    def _core(self, n_slots: int) -> EngineCore:
        return EngineCore(self._runner, pool_tokens=POOL, max_context=4096, vocab_size=VOCAB,
                          state_slots=n_slots)  # fmt: skip

    def core(self) -> EngineCore:
        return self._core(self.n_slots)

    def ask(self, prompts: list[list[int]], core: EngineCore) -> list[list[int]]:
        texts: dict[int, list[int]] = {i: [] for i in range(len(prompts))}
        for i, prompt in enumerate(prompts):
            core.submit(EngineRequest(i, np.array(prompt), Generate(NEW)))
        while core.has_work:
            for update in core.step():
                texts[update.id] += update.new_ids
        return list(texts.values())


class Theirs:
    def __init__(self, name: str) -> None:
        self._model = make_model(name)

    @torch.inference_mode()
    def ask(self, prompts: list[list[int]], _: None = None) -> list[list[int]]:
        ids = torch.tensor(prompts)
        said = self._model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=NEW,
            eos_token_id=None, pad_token_id=0,
        )  # fmt: skip
        found: list[list[int]] = said[:, ids.shape[1] :].tolist()
        return found


def chats(ask: Any, core: Any) -> None:
    rng = np.random.default_rng(1)
    texts: list[list[int]] = [[] for _ in range(4)]
    for _ in range(3):
        texts = [text + rng.integers(1, VOCAB, 64).tolist() for text in texts]
        texts = [text + said for text, said in zip(texts, ask(texts, core), strict=True)]


def seconds(run: Any) -> float:
    started_s = time.perf_counter()
    run()
    return time.perf_counter() - started_s


def measured(name: str, reps: int) -> dict[str, Any]:
    ours, theirs = Ours(name), Theirs(name)
    times: dict[str, list[float]] = {}
    core = ours.core()
    for _ in range(reps):
        core = ours.core()
        runs = {
            "forks, engine": lambda core=core: ours.ask(forks(), core),
            "forks, generate": lambda: theirs.ask(forks()),
            "chats, engine": lambda core=core: chats(ours.ask, core),
            "chats, generate": lambda: chats(theirs.ask, None),
        }
        for what, run in runs.items():
            times.setdefault(what, []).append(seconds(run))
    counters = core.stats().counters
    return {
        "model": name,
        "slots": ours.n_slots,
        "seconds": {what: round(statistics.median(found), 3) for what, found in times.items()},
        "prompt_tokens": counters.prompt_tokens,
        "computed_tokens": counters.computed_tokens,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(SHAPES))
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    for name in options.models.split(","):
        rows.append(measured(name, options.reps))
        print(rows[-1], flush=True)
    about = {"date": datetime.date.today().isoformat(), "machine": machine(), "rows": rows,
             "threads": options.threads, "reps": options.reps}  # fmt: skip
    if options.out is not None:
        options.out.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
