"""A row's prompts as one short text: rows sorted by it are in depth-first order of their prompts.

It is for rows that no single process holds, which a distributed sort puts in order. The whole plan
(`plan.py`) compares all rows; here a row is read alone, so its prompts stay in the program's order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from sgc.ir.graph import Graph
from sgc.planning.known import Reader
from sgc.runtime.executor.run.options import DEFAULT_MAX_TOKENS

MAX_CHARS = 2048  # of a key: later text of a row's prompts does not affect the order
_SHOWN = 64  # characters of a piece that are in the key as they are
_DIGEST_BYTES = 8
_PIECE_END, _PROMPT_END = "\x01", "\x00"


class SortKeys:
    """Makes the keys of one program's rows. max_tokens: of generations that name none."""

    def __init__(self, graph: Graph, max_tokens: int = DEFAULT_MAX_TOKENS) -> None:
        self._reader = Reader(graph, max_tokens)

    def of(self, arguments: Mapping[str, Any]) -> str:
        """The key of a row; "" if nothing of its prompts is known before it runs."""
        parts: list[str] = []
        n_chars = 0
        for prompt in self._reader.read(arguments).prompts:
            for part in (*map(_piece, prompt), _PROMPT_END):
                parts.append(part)
                n_chars += len(part)
                if n_chars >= MAX_CHARS:
                    return "".join(parts)[:MAX_CHARS]
        return "".join(parts)


def _piece(text: str) -> str:
    """The beginning of a piece, and digests of ever longer beginnings: texts that share the first
    256 characters, or 1,024, stay together however long they are."""
    return "".join((text[:_SHOWN], *_digests(text), _PIECE_END))


def _digests(text: str) -> Iterator[str]:
    n = _SHOWN
    while n < len(text):
        n *= 4
        data = text[:n].encode("utf-8", "surrogatepass")
        yield hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
