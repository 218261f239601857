"""The native kernels through ctypes. Memory is passed by address, so torch is not needed here.

`find` returns the library, if there is one, and `reason` says why there is none. The callers check
that its results are right.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path

from sgc.kernels.cpu import build

_log = logging.getLogger(__name__)

ABI = 6  # native/abi.h has the same number

_P, _I32, _I64, _F32 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_float

# Result and arguments of each function.
_FUNCTIONS: dict[str, tuple[object, tuple[object, ...]]] = {
    "sgc_cpu_abi": (_I32, ()),
    "sgc_cpu_error": (ctypes.c_char_p, ()),
    "sgc_cpu_isa_has": (_I32, (_I32,)),
    "sgc_cpu_isa_best": (_I32, ()),
    "sgc_cpu_isa_limit": (_I32, (_I32,)),
    "sgc_threads_new": (_P, (_I32,)),
    "sgc_threads_free": (None, (_P,)),
    "sgc_threads_count": (_I32, (_P,)),
    "sgc_threads_try": (_I32, (_P, _I64, _P, _P)),
    "sgc_pack": (_P, (_I32, _I32, _P, _I32, _I64, _P, _I32, _P)),
    "sgc_packed_free": (None, (_P,)),
    "sgc_gather_pages": (_I32, (_I64,)),
    "sgc_packed_bytes": (_I64, (_P,)),
    "sgc_packed_n_out": (_I64, (_P,)),
    "sgc_program_new": (_P, (_P, _I64, _P, _I64, _I32, _P)),
    "sgc_program_free": (None, (_P,)),
    "sgc_program_bind": (_I32, (_P, _I32, _P, _P)),
    "sgc_program_run": (_I32, (_P, _P, _P)),
    "sgc_program_bytes": (_I64, (_P,)),
    "sgc_program_layout": (None, (_P,)),
    "sgc_limits": (_I32, (_I64, ctypes.c_double, _P, _P)),
    "sgc_multiply": (_I32, (_P, _P, _I64, _I64, _I32, _F32, _P, _I64, _I32, _P)),
    "sgc_attention_plan": (_P, (_I64, _P, _P, _P, _P, _I32, _I32)),
    "sgc_attention_plan_free": (None, (_P,)),
    "sgc_attention_plan_reads": (_I64, (_P,)),
    "sgc_attend": (_I32, (_P, _P, _P, _I64, _P, _P, _P, _P)),
    "sgc_write_heads": (_I32, (_P, _P, _I64, _I64, _P, _P, _P, _P, _P, _P)),
}


class Isa(IntEnum):
    """As `native/isa.h`."""

    PLAIN = 0
    AVX2 = 1
    AVX512 = 2
    AVX512_BF16 = 3
    AMX_BF16 = 4


class Format(IntEnum):
    """As `native/numbers.h`."""

    F32 = 0
    BF16 = 1
    I8 = 2


class Epilogue(IntEnum):
    """As `native/matmul.h`."""

    STORE = 0
    STORE_F32 = 1
    ADD = 2
    SWIGLU = 3
    GEGLU_TANH = 4
    SILU = 5
    GELU = 6
    GELU_TANH = 7
    RELU = 8


class KernelError(Exception):
    """A native function refused its arguments, or has no memory."""


@dataclass(frozen=True, slots=True)
class Library:
    """c: the functions, as native/abi_*.cpp declares them. path: where it was loaded from."""

    c: ctypes.CDLL
    path: Path

    def has(self, isa: Isa) -> bool:
        return bool(self.c.sgc_cpu_isa_has(isa))

    @property
    def isa(self) -> Isa:
        """The instruction set in use."""
        return Isa(self.c.sgc_cpu_isa_best())

    def limit(self, isa: Isa) -> None:
        """For tests: weights packed from now on use at most this set."""
        if not self.c.sgc_cpu_isa_limit(isa):
            raise KernelError(f"this machine has no {isa.name}")

    def gather_pages(self, n: int) -> bool:
        """Moves packed weights from small pages, which are quick to pack into, to huge pages, which
        are quicker to read: the next `n` of 2 MB, some milliseconds each. Returns whether more are
        left. Other threads may run steps meanwhile."""
        return bool(self.c.sgc_gather_pages(n))

    def error(self) -> KernelError:
        """The message of the function that just failed in this thread."""
        return KernelError(self.c.sgc_cpu_error().decode(errors="replace"))


class Threads:
    """A pool of threads, including the caller's own, for one caller at a time."""

    def __init__(self, library: Library, n: int) -> None:
        self._library = library
        self.handle: int | None = library.c.sgc_threads_new(n)
        if self.handle is None:
            raise library.error()

    @property
    def count(self) -> int:
        return int(self._library.c.sgc_threads_count(self.handle))

    def close(self) -> None:
        if self.handle is not None:
            self._library.c.sgc_threads_free(self.handle)
            self.handle = None

    def __del__(self) -> None:
        if getattr(self, "handle", None) is not None:
            self.close()


@dataclass(frozen=True, slots=True)
class Weight:
    """address: of [n_out, n_in] numbers, row-major."""

    address: int
    n_out: int


class _Matrix(ctypes.Structure):
    _fields_ = (("data", _P), ("n_out", _I64))


class Packed:
    """Weights in the processor's layout. The originals are not needed any more.

    biases: the address of float32 [n_out] of all outputs, or None. interleaved: two weights of one
    size become pairs, for the epilogues of pairs. packed_as: with I8, weights become integers up to
    127, with a scale for each output.
    """

    def __init__(
        self,
        library: Library,
        format_: Format,
        weights: Sequence[Weight],
        n_in: int,
        threads: Threads,
        *,
        biases: int | None = None,
        interleaved: bool = False,
        packed_as: Format | None = None,
    ) -> None:
        self._library = library
        matrices = (_Matrix * len(weights))(*(_Matrix(w.address, w.n_out) for w in weights))
        self.handle: int | None = library.c.sgc_pack(
            format_, format_ if packed_as is None else packed_as, matrices, len(weights), n_in,
            biases, interleaved, threads.handle,
        )  # fmt: skip
        if self.handle is None:
            raise library.error()

    @property
    def n_bytes(self) -> int:
        return int(self._library.c.sgc_packed_bytes(self.handle))

    @property
    def n_out(self) -> int:
        return int(self._library.c.sgc_packed_n_out(self.handle))

    def multiply(
        self,
        x: int,
        x_stride: int,
        n_rows: int,
        epilogue: Epilogue,
        out: int,
        out_stride: int,
        threads: Threads,
        *,
        scale: float = 1.0,
        fastest: bool = False,
    ) -> None:
        """As `Packed::multiply` of native/matmul.h."""
        failed = self._library.c.sgc_multiply(
            self.handle, x, x_stride, n_rows, epilogue, scale, out, out_stride, fastest,
            threads.handle,
        )  # fmt: skip
        if failed:
            raise self._library.error()

    def close(self) -> None:
        if self.handle is not None:
            self._library.c.sgc_packed_free(self.handle)
            self.handle = None

    def __del__(self) -> None:
        if getattr(self, "handle", None) is not None:
            self.close()


def find() -> Library | None:
    """The library, compiled if needed (seconds, once per user); None: `reason` says why not."""
    return _load()[0]


def reason() -> str:
    """Where the library comes from, or why there is none: one sentence."""
    return _load()[1]


@cache
def _load() -> tuple[Library | None, str]:
    library, found = _loaded()
    if library is None and found.is_told:
        _log.warning("%s: %s; torch computes models", build.NO_KERNELS, found.reason)
    return library, found.reason


def _loaded() -> tuple[Library | None, build.Found]:
    """Loads the library; one that does not load is compiled once more."""
    found = build.find()
    try:
        return _opened(found)
    except OSError:
        found = build.find(broken=found.path)
    try:
        return _opened(found)
    except OSError as error:
        reason = f"the library does not load: {error}"
        build.note_failure(reason)
        return None, build.Found(None, reason)


def _opened(found: build.Found) -> tuple[Library | None, build.Found]:
    if found.path is None:
        return None, found
    c = ctypes.CDLL(str(found.path))
    try:
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(c, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        return None, build.Found(None, f"the library lacks a function: {error}")
    if (abi := c.sgc_cpu_abi()) != ABI:
        reason = f"the library has version {abi} of the interface, not {ABI}"
        return None, build.Found(None, reason)
    if c.sgc_cpu_isa_best() < 0:
        raise OSError("it is for another processor")
    return Library(c, found.path), found
