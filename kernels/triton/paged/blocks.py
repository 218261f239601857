"""The sizes of blocks, warps and pipelines: one table, by shapes. Nothing is tuned at run time.

Chosen by what compiles without spills for compute capability 9.0 (tests/kernels/triton).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides the sizes of blocks and how work is cut. n_processors: multiprocessors of the
    device. item_bytes: of a number in q, k and v."""

    n_heads: int
    n_kv_heads: int
    head_dim: int
    v_head_dim: int
    n_processors: int
    item_bytes: int = 2

    @property
    def group(self) -> int:
        return self.n_heads // self.n_kv_heads

    @property
    def widest(self) -> int:
        return padded(max(self.head_dim, self.v_head_dim))


@dataclass(frozen=True, slots=True)
class Blocks:
    """n_keys: a block of keys, of which n_stages - 1 are on their way while one is computed."""

    n_keys: int
    n_warps: int
    n_stages: int


def padded(n: int) -> int:
    """The power of two that a block of n takes; matrix units want 16 at least."""
    return max(16, 1 << (n - 1).bit_length())


def few_rows(shape: Shape) -> int:
    """A tile's rows (tokens times heads of a group) where tokens are few, as in decode."""
    return padded(shape.group)


def many_rows(shape: Shape) -> int:
    """A tile's rows where tokens are many, as in extend and under shared prefixes: as many as the
    registers hold."""
    if shape.item_bytes > 2:
        return few_rows(shape)
    return max(128 if shape.widest <= 128 else 64, padded(shape.group))


def blocks(n_rows: int, shape: Shape) -> Blocks:
    """For tiles of n_rows rows. float32 is computed without matrix units, exactly, not fast."""
    if shape.item_bytes > 2:
        return Blocks(32 if shape.widest <= 64 else 16, 4, 2)
    return Blocks(64 if shape.widest <= 128 else 32, 4 if n_rows <= 32 else 8, 3)
