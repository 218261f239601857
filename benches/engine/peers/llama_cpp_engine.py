"""Driver of llama.cpp by its Python package's C API (`llama_decode`), with a scheduler of its own.

The package's own server answers one request at a time, so the driver batches: up to 64 sequences in
one context, of which each step decodes one token and computes chunks of the prompts. What a new
prompt shares with a sequence is copied (`llama_memory_seq_cp`), as our engine shares it; a prompt
that shares more with one that is being computed waits for it. Greedy. Model: FOLDER-bf16.gguf
beside the Hugging Face folder, or FOLDER-q8_0.gguf (`gguf_models.py`).

Options: {"kind": "q8_0", "n_batch": 512, "n_context": 16384, "unified": true, "threads": 2}.
Without `unified` each sequence has an equal part of the context for itself, which suits W2 better
and W1 worse.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))

from asyncio_peer import AsyncioPeer
from gguf_models import path_of
from protocol import Tally, serve

N_SEQUENCES = 64
LEAST_SHARED = 16  # tokens that are worth a copy, or waiting


@dataclass(eq=False)
class Sequence:
    """One of llama.cpp's sequences. ids: its tokens, of which `n_run` are in the cache; n_out: how
    many it still has to generate; done: who waits for them, None if it is idle."""

    id: int
    ids: list[int] = field(default_factory=list)
    n_run: int = 0
    n_out: int = 0
    last_used: int = 0
    made: list[int] = field(default_factory=list)
    done: asyncio.Future[list[int]] | None = None

    def shared_with(self, ids: list[int]) -> int:
        """The length of the common beginning with a prompt, whose last token must be run."""
        pairs = zip(self.ids, ids[:-1], strict=False)
        differing = (n for n, (a, b) in enumerate(pairs) if a != b)
        return next(differing, min(len(self.ids), len(ids) - 1))


class LlamaCpp(AsyncioPeer):
    packages = ("llama-cpp-python", "numpy")

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        super().__init__()
        self.folder = folder
        self._context = _Context(str(path_of(folder, options.get("kind", "bf16"))), options)
        self._sequences = [Sequence(i) for i in range(N_SEQUENCES)]
        self._waiting: list[tuple[list[int], int, Tally, asyncio.Future[list[int]]]] = []
        self._clock = 0
        self._pump: asyncio.Task[None] | None = None

    async def generate(self, ids: list[int], n_out: int, tally: Tally) -> list[int]:
        done: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        self._waiting.append((ids, n_out, tally, done))
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._step_while_pending())
        return await done

    async def _step_while_pending(self) -> None:
        """Runs all requests; an error is every waiting client's."""
        try:
            await self._step_all()
        except Exception as error:  # clients would wait for ever
            pending = [each.done for each in self._sequences] + [done for *_, done in self._waiting]
            for done in pending:
                if done is not None:
                    done.set_exception(error)

    async def _step_all(self) -> None:
        """Steps; between steps, clients with a reply may send the next request."""
        while self._waiting or any(each.done for each in self._sequences):
            await asyncio.sleep(0)
            self._admit()
            self._step()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    def _admit(self) -> None:
        """Gives waiting requests a sequence, those first that came first."""
        waiting, self._waiting = self._waiting, []
        for ids, n_out, tally, done in waiting:
            idle = [each for each in self._sequences if each.done is None]
            best = max(self._sequences, key=lambda each: each.shared_with(ids))
            n_shared = best.shared_with(ids)
            if not idle or n_shared - best.n_run >= LEAST_SHARED:
                self._waiting.append((ids, n_out, tally, done))
                continue
            n_shared = min(n_shared, best.n_run) if n_shared >= LEAST_SHARED else 0
            oldest = min(idle, key=lambda each: each.last_used)
            chosen = best if n_shared and best.done is None and _is_grown(best, ids) else oldest
            if chosen is not best:
                self._context.keep(chosen.id, 0)
                if n_shared:
                    self._context.copy(best.id, chosen.id, n_shared)
            self._context.keep(chosen.id, n_shared)
            chosen.ids, chosen.n_run, chosen.n_out = list(ids), n_shared, n_out
            chosen.made, chosen.done = [], done
            tally.add(len(ids), n_out, n_shared)

    def _step(self) -> None:
        """Runs one batch: the last token of those that decode, and chunks of prompts."""
        self._clock += 1
        running = [each for each in self._sequences if each.done is not None]
        batch = _Batch()
        for each in sorted(running, key=lambda each: len(each.ids) - each.n_run):
            n = min(len(each.ids) - each.n_run, self._context.n_batch - len(batch.ids))
            if n > 0:
                batch.add(each, n)
        for each, id_ in self._context.run(batch):
            each.last_used = self._clock
            each.ids.append(id_)
            each.made.append(id_)
            if len(each.made) == each.n_out:
                assert each.done is not None
                each.done.set_result(each.made)
                each.done = None

    def close(self) -> None:
        self._context.close()
        super().close()


def _is_grown(sequence: Sequence, ids: list[int]) -> bool:
    """Whether a prompt goes on where a sequence ended, so that its cache can be taken over."""
    return sequence.shared_with(ids) >= sequence.n_run - 1


@dataclass
class _Batch:
    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    wanted: list[tuple[int, Sequence]] = field(default_factory=list)

    def add(self, sequence: Sequence, n: int) -> None:
        end = sequence.n_run + n
        self.ids += sequence.ids[sequence.n_run : end]
        self.positions += range(sequence.n_run, end)
        self.owners += [sequence.id] * n
        sequence.n_run = end
        if end == len(sequence.ids):
            self.wanted.append((len(self.ids) - 1, sequence))


class _Context:
    """A model and a cache of llama.cpp."""

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self.n_batch = options.get("n_batch", 512)
        llama_cpp.llama_backend_init()
        model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params()
        )
        if model is None:
            raise SystemExit(f"llama.cpp cannot load {path}: see gguf_models.py")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = options.get("n_context", 16384)
        params.n_batch = params.n_ubatch = self.n_batch
        params.n_seq_max = N_SEQUENCES
        params.n_threads = params.n_threads_batch = options.get(
            "threads", len(os.sched_getaffinity(0))
        )
        params.kv_unified = self._is_unified = options.get("unified", True)
        params.flash_attn_type = options.get("flash_attention", params.flash_attn_type)
        self._model = model
        self._context = llama_cpp.llama_init_from_model(model, params)
        if self._context is None:
            raise SystemExit("llama.cpp makes no context with these options")
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
        self._batch = llama_cpp.llama_batch_init(self.n_batch, 0, 1)

    def keep(self, sequence: int, n: int) -> None:
        """Drops a sequence's tokens but the first n."""
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, n, -1)

    def copy(self, source: int, target: int, n: int) -> None:
        """Without `unified`, sequences are copied whole; `keep` then cuts."""
        end = n if self._is_unified else -1
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, 0, end)

    def run(self, asked: _Batch) -> list[tuple[Sequence, int]]:
        """Runs a batch; returns the likeliest token of each sequence that wants one."""
        batch, n = self._batch, len(asked.ids)
        batch.n_tokens = n
        _numbers(batch.token, n, np.int32)[:] = asked.ids
        _numbers(batch.pos, n, np.int32)[:] = asked.positions
        _numbers(batch.n_seq_id, n, np.int32)[:] = 1
        logits = _numbers(batch.logits, n, np.int8)
        logits[:] = 0
        logits[[at for at, _ in asked.wanted]] = 1
        for at, owner in enumerate(asked.owners):
            batch.seq_id[at][0] = owner
        status = llama_cpp.llama_decode(self._context, batch)
        if status != 0:
            raise RuntimeError(f"llama_decode returned {status}")
        return [(sequence, self._likeliest(at)) for at, sequence in asked.wanted]

    def _likeliest(self, at: int) -> int:
        logits = llama_cpp.llama_get_logits_ith(self._context, at)
        return int(_numbers(logits, self._n_vocab, np.float32).argmax())

    def close(self) -> None:
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._context)
        llama_cpp.llama_model_free(self._model)


def _numbers(pointer: Any, n: int, kind: Any) -> np.ndarray:
    address = ctypes.cast(pointer, ctypes.c_void_p).value
    assert address is not None
    return np.frombuffer(
        (ctypes.c_char * (n * np.dtype(kind).itemsize)).from_address(address), kind
    )


if __name__ == "__main__":
    serve(LlamaCpp)
