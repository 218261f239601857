"""A prompt's text as keys of its blocks; each key identifies all text up to its block's end."""

from __future__ import annotations

MAX_BLOCKS = 8192  # of a prompt; the rest is ignored
MOST_HELD = 16_384  # blocks that are remembered for an engine
CHARACTERS = 4  # of a token, about
POOL = 65_536  # tokens, of an engine that does not say


def blocks_of(text: str, size: int, salt: str = "") -> tuple[int, ...]:
    """The keys of the complete blocks of `size` characters. Different salts share no keys.

    Keys are Python's own hashes, which differ from process to process, so that a client cannot
    construct collisions.
    """
    keys: list[int] = []
    key = hash(("salt", salt))
    for start in range(0, min(len(text), size * MAX_BLOCKS) - size + 1, size):
        key = hash((key, text[start : start + size]))
        keys.append(key)
    return tuple(keys)
