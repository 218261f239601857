"""Vectors of embeddings: their length, their form in JSON, and how alike two of them are."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sgc.proto import engine_pb2 as pb

Floats = npt.NDArray[np.float32]


def vectors_of(
    found: Sequence[pb.Embedded], dimensions: int | None = None, is_normalized: bool = True
) -> Floats:
    """The vectors, [n, dimensions]; of length one, also after cutting, if they are normalized."""
    rows = np.array([each.vector for each in found], np.float64)[:, :dimensions]
    if is_normalized:
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.where(lengths > 0, lengths, 1.0)
    return rows.astype(np.float32)


def written(vector: Floats, in_base64: bool) -> str | list[float]:
    """A vector for JSON: a list, or base64 of little-endian float32, as in OpenAI's API."""
    if in_base64:
        return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
    numbers: list[float] = vector.tolist()
    return numbers


def cosine(first: Floats, second: Floats) -> float:
    """The cosine of two vectors of length one."""
    return float(np.clip(np.dot(first.astype(np.float64), second), -1.0, 1.0))
