"""What random programs of objects and of rows share: replies, and statements in blocks."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Sequence

REPLIES = ("", "a", "b", "ab", "a,b", "b,,a", "c,a,b")
ASK = 's += "q" + sgc.gen("g", stop="\\n")'


def block_of(
    rng: random.Random,
    n: int,
    depth: int,
    simple: Sequence[str],
    blocks: Sequence[str],
    live: tuple[str, ...],
    grows: tuple[str, ...],
    is_live: bool = False,
) -> list[str]:
    """Random statements, some in blocks. live: how loops end whose lists may grow; grows: what lets
    them grow; is_live: whether it is inside such a loop."""
    found: list[str] = []
    for _ in range(n):
        if depth and rng.random() < 0.25:
            found.append(rng.choice(blocks))
            within = is_live or found[-1].endswith(live)
            n_inner = rng.randrange(1, 4)
            inner = block_of(rng, n_inner, depth - 1, simple, blocks, live, grows, within)
            found += textwrap.indent("\n".join(inner or ["pass"]), "    ").splitlines()
        else:
            made = rng.choice(simple)
            if not (is_live and any(each in made for each in grows)):
                found += made.splitlines()
    return found
