"""Tiny PNG images, and two of them one after the other as the frames of a video."""

from __future__ import annotations

import struct
import zlib


def png(red: int, green: int, blue: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + checksum

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes([0, red, green, blue]))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


RED, GREEN = png(255, 0, 0), png(0, 255, 0)
VIDEO = RED + GREEN
