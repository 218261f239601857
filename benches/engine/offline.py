"""The best hit rate that any order and any pool size could reach, from the requests alone.

It is independent of the engine: it knows the prompts and the generated tokens, and counts distinct
prefixes by hash. Each distinct prompt position is computed once, unless it was generated (then it
is cached already); a request that needs logits runs its last position itself. SGLang paper,
theorem 3.1: a depth-first order over the prompts' tree reaches it.

    python -P benches/engine/offline.py requests.jsonl     # {"prompt": [...], "output": [...]}
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_MODULUS = (1 << 61) - 1
_BASE = 0x5DEECE66D1234567 % _MODULUS


@dataclass(frozen=True, slots=True)
class Optimum:
    """Tokens of prompts, without the choices of scores."""

    prompt_tokens: int
    cached_tokens: int

    @property
    def hit_rate(self) -> float:
        return self.cached_tokens / self.prompt_tokens


def optimum(requests: Sequence[tuple[Sequence[int], Sequence[int], bool]]) -> Optimum:
    """requests: prompt, output, and whether they need the logits of the prompt's last position."""
    generated: set[int] = set()
    prompts: set[int] = set()
    ends: Counter[int] = Counter()
    n_tokens = 0
    for prompt, output, wants_logits in requests:
        hashes = prefix_hashes([*prompt, *output[:-1]])
        generated.update(hashes[len(prompt) :])
        prompts.update(hashes[: len(prompt)])
        ends[hashes[len(prompt) - 1]] += wants_logits
        n_tokens += len(prompt)
    n_computed = len(prompts - generated)
    n_again = sum(n if end in generated else max(0, n - 1) for end, n in ends.items())
    return Optimum(n_tokens, n_tokens - n_computed - n_again)


def prefix_hashes(tokens: Sequence[int]) -> list[int]:
    """A hash for each prefix."""
    hashes, value = [], 1
    for token in tokens:
        value = (value * _BASE + token + 1) % _MODULUS
        hashes.append(value)
    return hashes


def main(path: str) -> None:
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    best = optimum([(x["prompt"], x.get("output", []), x.get("logits", True)) for x in lines])
    print(f"{len(lines)} requests, {best.prompt_tokens} prompt tokens: {best.hit_rate:.4f}")


if __name__ == "__main__":
    main(sys.argv[1])
