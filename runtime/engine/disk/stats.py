"""An engine's statistics of its disk."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiskStats:
    """Counts since the start; disk_bytes: the bytes that the folder holds now."""

    disk_loads: int = 0
    disk_loaded_tokens: int = 0
    disk_written_bytes: int = 0
    disk_damaged_files: int = 0
    disk_dropped_chunks: int = 0
    disk_bytes: int = 0
