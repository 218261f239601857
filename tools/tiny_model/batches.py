"""Batches: tokenized texts in rows of similar length, made in worker processes.

A row is one text from its beginning, so no attention mask is needed and positions are those of
inference. Only a few positions of the text that programs write are training targets. The batches of
a seed are the same for any number of workers.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from tiny_model.corpus import text
from tiny_model.text import Text
from tiny_model.world import World

MAX_TOKENS = 1024  # of a text; longer texts are cut
PROMPT_SHARE = 0.1  # of the positions that programs write, those that are targets
STEPS_AN_OCTAVE = 8  # padded lengths between a power of two and the next
CHOSEN_STEP = 128
IGNORED = -100  # a padding target, which cross_entropy ignores
WINDOW = 1024  # texts that are sorted together


@dataclass(frozen=True, slots=True)
class Batch:
    """ids: [rows, length]; chosen: indices into rows * length of the positions whose next tokens,
    targets, are learnt; window: the number of the window of texts; n_tokens: without padding.

    All arrays are padded to a few shapes, since a kernel is compiled for each.
    """

    ids: np.ndarray
    chosen: np.ndarray
    targets: np.ndarray
    window: int
    n_tokens: int


def encode(tokenizer: Tokenizer, parts: Text) -> tuple[list[int], list[bool]]:
    """The tokens of a text, and for each whether the model generates it."""
    ids: list[int] = []
    generated: list[bool] = []
    for part, is_new in parts.parts:
        tokens = tokenizer.encode(part, add_special_tokens=False).ids
        ids += tokens
        generated += [is_new] * len(tokens)
    return ids[:MAX_TOKENS], generated[:MAX_TOKENS]


def window(tokenizer: Tokenizer, seed: int, i: int, batch_tokens: int) -> list[Batch]:
    """The batches of window `i`, each of about `batch_tokens` tokens with padding."""
    world, r = World("train"), Random(f"window {seed}/{i}")
    rows = [encode(tokenizer, text(seed, n, world)[1]) for n in range(i * WINDOW, (i + 1) * WINDOW)]
    rows.sort(key=lambda row: len(row[0]))
    batches, group = list[Batch](), list[tuple[list[int], list[bool]]]()
    for row in rows:
        if len(group) >= max(2, batch_tokens // padded_length(len(row[0]))):
            batches.append(_batch(group, i, r, batch_tokens))
            group = []
        group.append(row)
    batches.append(_batch(group, i, r, batch_tokens))
    r.shuffle(batches)
    return batches


def padded_length(n: int) -> int:
    step = max(8, (1 << (n - 1).bit_length()) // 2 // STEPS_AN_OCTAVE)
    return -(-n // step) * step


def _batch(rows: list[tuple[list[int], list[bool]]], i: int, r: Random, batch_tokens: int) -> Batch:
    length = padded_length(len(rows[-1][0]))
    padded = np.zeros((max(2, batch_tokens // length), length), dtype=np.int64)
    chosen = []
    for n, (ids, generated) in enumerate(rows):
        padded[n, : len(ids)] = ids
        for at, is_new in enumerate(generated[1:]):
            if is_new or r.random() < PROMPT_SHARE:
                chosen.append(n * length + at)
    index = np.zeros(-(-len(chosen) // CHOSEN_STEP) * CHOSEN_STEP, dtype=np.int64)
    index[: len(chosen)] = chosen
    targets = padded.reshape(-1)[index + 1]
    targets[len(chosen) :] = IGNORED
    return Batch(padded, index, targets, i, sum(len(ids) for ids, _ in rows))


def _work(queue: Queue[Any], folder: Path, seed: int, start: int, by: int, size: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for i in range(start, 1 << 60, by):
        for batch in window(tokenizer, seed, i, size):
            queue.put(batch)
        queue.put(None)


def batches(folder: Path, seed: int, start: int, size: int, n_workers: int) -> Iterator[Batch]:
    """Batches from window `start` on, made ahead by processes that end with this process."""
    context = multiprocessing.get_context("fork")
    queues = [context.Queue(maxsize=64) for _ in range(n_workers)]
    for n, queue in enumerate(queues):
        arguments = (queue, folder, seed, start + n, n_workers, size)
        context.Process(target=_work, args=arguments, daemon=True).start()
    turn = 0
    while True:
        while (batch := queues[turn].get()) is not None:
            yield batch
        turn = (turn + 1) % n_workers
