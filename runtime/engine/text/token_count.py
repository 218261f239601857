"""A lower bound on a text's tokens, from its size alone: a token stands for a limited amount of
text. It lets the server refuse a text that cannot fit before tokenizing it.

It exists only for tokenizers that keep every character of a text in some token. If characters can
be dropped (by a normalizer, by a split that removes, as unknown tokens), there is no bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer as Backend

from sgc.runtime.engine.text.byte_level import BYTE_OF_CHAR
from sgc.runtime.engine.text.json_files import Json, sequence_parts

# White space in Unicode or Python: a special token with lstrip or rstrip absorbs any amount of it.
_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
# Normalizing and case folding keep each ASCII character, and keep at least an eighth of a text's
# size: the worst case is a letter of four bytes with a few marks of two bytes each, which becomes
# one of two bytes.
_FOLDED = 8
_ESCAPED_BYTE, _ESCAPED_CHAR = 6, 12  # in JSON: \\u0061, and \\ud83d\\ude00
_CHAR_BYTES = 4  # in UTF-8, at most
_FOLDING = frozenset({"NFC", "NFD", "NFKC", "NFKD", "Lowercase"})


@dataclass(frozen=True, slots=True)
class LeastTokens:
    """longest: the length of the longest token, in bytes or characters of the text."""

    longest: int
    in_bytes: bool
    is_folded: bool
    swallows_spaces: bool

    def of(self, text: str) -> int:
        """The least number of tokens that the text can have."""
        size = self._size(text)
        if self.is_folded and not text.isascii():
            ascii_alone = text.encode("ascii", "ignore").decode()
            size = max(self._size(ascii_alone), size // _FOLDED)
        return -(-size // self.longest)

    def most_bytes(self, n_tokens: int, is_json: bool = False) -> int | None:
        """The UTF-8 bytes of the longest text of `n_tokens` tokens; None if there is no bound.

        is_json: the bytes of the longest JSON string for such a text.
        """
        if self.swallows_spaces:
            return None
        if self.in_bytes:
            width = _ESCAPED_BYTE if is_json else 1
        else:
            width = _ESCAPED_CHAR if is_json else _CHAR_BYTES
        return n_tokens * self.longest * width * (_FOLDED if self.is_folded else 1)

    def _size(self, text: str) -> int:
        """The size of the part that must be in tokens."""
        is_narrow = not self.in_bytes or text.isascii()
        size = len(text) if is_narrow else len(text.encode("utf-8", "surrogatepass"))
        if self.swallows_spaces:
            size -= sum(text.count(each) * self._width(each) for each in _SPACES)
        return size

    def _width(self, char: str) -> int:
        return len(char.encode()) if self.in_bytes else 1


def least_tokens(backend: Backend, spec: Json) -> LeastTokens | None:
    """The bound for a tokenizer; None if it may drop characters. spec: its tokenizer.json."""
    normalizers = list(sequence_parts(spec.get("normalizer"), "normalizers"))
    splits = list(sequence_parts(spec.get("pre_tokenizer"), "pretokenizers"))
    in_bytes = any(part.get("type") == "ByteLevel" for part in [*normalizers, *splits])
    folds = [part for part in normalizers if part.get("type") in _FOLDING]
    others = [part for part in normalizers if part not in folds]
    vocabulary = backend.get_vocab(with_added_tokens=True)
    is_whole = (
        all(map(_keeps_all, others))
        and all(map(_splits_only, splits))
        and _knows_every_byte(spec, vocabulary, in_bytes)
    )
    if not is_whole:
        return None
    added = backend.get_added_tokens_decoder().values()
    longest = max(map(len, vocabulary))
    if added:
        longest = max(longest, *(len(token.content.encode()) for token in added))
    swallows = any(token.lstrip or token.rstrip for token in added)
    return LeastTokens(longest, in_bytes, bool(folds), swallows)


def _keeps_all(normalizer: Mapping[str, Any]) -> bool:
    kind = normalizer.get("type")
    if kind == "Replace":
        pattern = normalizer.get("pattern") or {}
        content = str(normalizer.get("content", ""))
        found = pattern.get("String")
        return isinstance(found, str) and len(content) >= len(found)
    return kind in ("Prepend", "ByteLevel")


def _splits_only(pre_tokenizer: Mapping[str, Any]) -> bool:
    kind = pre_tokenizer.get("type")
    if kind in ("Split", "Punctuation"):
        return pre_tokenizer.get("behavior") != "Removed"
    return kind in ("ByteLevel", "Metaspace", "Digits", "UnicodeScripts")


def _knows_every_byte(spec: Json, vocabulary: Mapping[str, int], in_bytes: bool) -> bool:
    """Whether no text has an unknown token, which could stand for any amount of text."""
    model = spec.get("model") or {}
    kind = model.get("type") or ("BPE" if "merges" in model else None)
    if kind == "BPE" and in_bytes:
        prefix = model.get("continuing_subword_prefix") or model.get("end_of_word_suffix")
        return not prefix and all(char in vocabulary for char in BYTE_OF_CHAR)
    if kind in ("BPE", "Unigram") and model.get("byte_fallback"):
        return all(f"<0x{byte:02X}>" in vocabulary for byte in range(256))
    return False
