"""The bytes that each token id adds to a text, read off the tokenizer's decoder.

Byte-level and sentencepiece decoders are tables: the text of ids is the UTF-8 decoding of their
concatenated bytes. So decoding is incremental, in constant time per token. Other decoders have no
table; `detokenizer.py` then decodes a small window. Special tokens contribute nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sgc.runtime.engine.text.byte_level import BYTE_OF_CHAR
from sgc.runtime.engine.text.json_files import sequence_parts
from sgc.runtime.engine.text.tokenizer import Tokenizer

SPACE = "▁"
TABLE_PARTS = frozenset({"ByteLevel", "Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"})


class TokenBytes:
    """id -> bytes, filled in as ids appear."""

    def __init__(self, tokenizer: Tokenizer, to_bytes: Callable[[str], bytes]) -> None:
        self._backend = tokenizer.backend
        self._special_ids = tokenizer.special_ids
        self._to_bytes = to_bytes
        self._table: dict[int, bytes] = {}

    def __getitem__(self, token_id: int) -> bytes:
        found = self._table.get(token_id)
        if found is None:
            found = self._table[token_id] = self._look_up(token_id)
        return found

    def _look_up(self, token_id: int) -> bytes:
        if token_id in self._special_ids:
            return b""
        token = self._backend.id_to_token(token_id)
        return b"" if token is None else self._to_bytes(token)


def token_bytes(tokenizer: Tokenizer) -> TokenBytes | None:
    """The table of a tokenizer, None if its decoder is not a table."""
    parts = list(sequence_parts(tokenizer.decoder_spec, "decoders"))
    kinds = [part.get("type") for part in parts]
    if not kinds or not TABLE_PARTS.issuperset(kinds):
        return None
    if kinds == ["ByteLevel"]:
        return TokenBytes(tokenizer, _byte_level)
    if "ByteLevel" in kinds or not all(map(_is_plain_space_part, parts)):
        return None
    return TokenBytes(tokenizer, _fallback_bytes if "ByteFallback" in kinds else _spaced)


def _is_plain_space_part(part: Mapping[str, Any]) -> bool:
    """Whether a decoder part only maps spaces.

    Stripping a leading space can be ignored: it is for whole texts, and generated text continues a
    prompt.
    """
    kind = part.get("type")
    if kind == "Replace":
        return part.get("pattern") == {"String": SPACE} and part.get("content") == " "
    if kind == "Strip":
        return part.get("content") == " " and not part.get("stop")
    return kind != "Metaspace" or part.get("replacement") == SPACE


def _spaced(token: str) -> bytes:
    return token.replace(SPACE, " ").encode("utf-8", "replace")


def _fallback_bytes(token: str) -> bytes:
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        try:
            return bytes([int(token[3:5], 16)])
        except ValueError:
            pass
    return _spaced(token)


def _byte_level(token: str) -> bytes:
    try:
        return bytes(BYTE_OF_CHAR[char] for char in token)
    except KeyError:
        return token.encode("utf-8", "replace")
