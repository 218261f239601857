"""GPT-2's map between bytes and printable characters, used by byte-level vocabularies."""

from __future__ import annotations


def _byte_of_char() -> dict[str, int]:
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in set(printable))
    table.update({chr(256 + i): byte for i, byte in enumerate(others)})
    return table


BYTE_OF_CHAR = _byte_of_char()
