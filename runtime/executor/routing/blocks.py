"""A prompt's text as keys of its blocks, each of which stands for all text up to its end."""

from __future__ import annotations

MAX_BLOCKS = 8192  # of a prompt; what follows is not looked at
MOST_HELD = 16_384  # blocks that are remembered of an engine
CHARACTERS = 4  # of a token, about
POOL = 65_536  # tokens, of an engine that does not say


def blocks_of(text: str, size: int, salt: str = "") -> tuple[int, ...]:
    """The keys of the whole blocks of `size` characters. Texts of different salts share none.

    Keys are Python's own hashes, which differ from process to process: a client cannot foresee
    which texts meet.
    """
    keys: list[int] = []
    key = hash(("salt", salt))
    for start in range(0, min(len(text), size * MAX_BLOCKS) - size + 1, size):
        key = hash((key, text[start : start + size]))
        keys.append(key)
    return tuple(keys)
