"""Which instruction sets a library is built for, which sources that takes, and with which flags.

A library has only the sets that this machine can use, which halves the time to compile it. Tests
ask for all of them (`SGC_KERNEL_SETS=all`).
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_FLAGS = (
    *("-std=c++20", "-fPIC", "-fvisibility=hidden", "-pthread"),
    *("-fno-math-errno", "-fno-trapping-math"),
    "-ffp-contract=fast",  # explicit, since compilers differ in their defaults
)
_AVX2 = ("-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2")
_AVX512 = (
    *(*_AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"),
    "-mprefer-vector-width=512",
)
_AVX512_BF16 = (*_AVX512, "-mavx512bf16")


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """bit: of `Isa` in native/isa.h. needs: Linux's names of the features. A source belongs to the
    set in its name's suffix; without such a suffix, to all sets."""

    name: str
    bit: int
    flags: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset()


_NEEDS_AVX2 = frozenset({"avx2", "fma", "f16c", "bmi1", "bmi2"})
_NEEDS_AVX512 = _NEEDS_AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
_NEEDS_BF16 = _NEEDS_AVX512 | {"avx512_bf16", "avx512_vnni"}

PLAIN = InstructionSet("plain", 0)
AVX2 = InstructionSet("avx2", 1, _AVX2, _NEEDS_AVX2)
AVX512 = InstructionSet("avx512", 2, _AVX512, _NEEDS_AVX512)
AVX512_BF16 = InstructionSet("avx512_bf16", 3, _AVX512_BF16, _NEEDS_BF16)
AMX_BF16 = InstructionSet(
    "amx_bf16", 4, (*_AVX512_BF16, "-mamx-tile", "-mamx-bf16"),
    _NEEDS_BF16 | {"amx_tile", "amx_bf16"},
)  # fmt: skip
ALL = (PLAIN, AVX2, AVX512, AVX512_BF16, AMX_BF16)

# Machines with more than AVX-512 also use AVX-512, for float32.
_WITH = {AVX512_BF16: (AVX512,), AMX_BF16: (AVX512, AVX512_BF16)}


@dataclass(frozen=True, slots=True)
class Unit:
    """Sources that are compiled together."""

    sources: tuple[Path, ...]
    flags: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.sources[0].stem


def chosen() -> tuple[InstructionSet, ...]:
    """The sets of a library for this machine."""
    if not _is_x86():
        return (PLAIN,)
    has = _features()
    if os.environ.get("SGC_KERNEL_SETS") == "all" or not has:
        return ALL
    usable = [
        s for s in ALL if s.needs <= has and (s is not AMX_BF16 or "SGC_CPU_AMX" in os.environ)
    ]
    return (*_WITH.get(usable[-1], ()), usable[-1])


def everything() -> tuple[InstructionSet, ...]:
    return ALL if _is_x86() else (PLAIN,)


def label(sets: Sequence[InstructionSet]) -> str:
    return "all" if len(sets) == len(ALL) else sets[-1].name


def units(sources: Sequence[Path], sets: Sequence[InstructionSet]) -> list[Unit]:
    """The units of a library. Most sources spend their compile time in the standard library's
    headers, so sources without a set are compiled together.

    They come first in the order of linking: where two units have the same inlined function of the
    standard library, the linker keeps the first, which runs everywhere.
    """
    common = tuple(source for source in sources if set_of(source) is None)
    mask = sum(1 << one.bit for one in sets)
    own = [
        Unit((source,), ("-O3", *_FLAGS, *one.flags))
        for one in sets
        for source in sources
        if set_of(source) is one
    ]
    return [Unit(common, ("-O2", *_FLAGS, f"-DSGC_SETS={mask}")), *own]


def set_of(source: Path) -> InstructionSet | None:
    ends = [s for s in ALL if source.stem.endswith("_" + s.name)]
    return max(ends, key=lambda s: len(s.name), default=None)


def _is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


def _features() -> frozenset[str]:
    """The features of this processor that the system supports; empty if unknown."""
    if sys.platform != "linux":
        return frozenset()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())
