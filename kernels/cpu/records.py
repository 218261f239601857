"""The records of native/program.h and what they point to, laid out as the library lays them out."""

from __future__ import annotations

import ctypes
from ctypes import Structure, c_float, c_int32, c_int64, c_void_p
from enum import IntEnum

from sgc.kernels.cpu.library import KernelError, Library


class Kind(IntEnum):
    EMBED = 0
    PLACE = 1
    NORM = 2
    LINEAR = 3
    HEADS = 4
    ATTEND = 5
    SELECT = 6
    CAP = 7
    EXPERTS = 8
    ADAPT = 9


class NormKind(IntEnum):
    RMS = 0
    LAYER = 1
    NONE = 2


class HeadShape(Structure):
    """native/attention.h: HeadShape."""

    _fields_ = (
        ("n_heads", c_int32),
        ("n_kv_heads", c_int32),
        ("head_dim", c_int32),
        ("v_head_dim", c_int32),
        ("format", c_int32),
        ("pool_format", c_int32),
        ("scale", c_float),
        ("window", c_int32),
        ("softcap", c_float),
        ("sinks", c_void_p),
    )


class HeadsStep(Structure):
    """native/attention.h: HeadsStep."""

    _fields_ = (
        ("n_heads", c_int32),
        ("n_kv_heads", c_int32),
        ("head_dim", c_int32),
        ("format", c_int32),
        ("pool_format", c_int32),
        ("q_norm", c_void_p),
        ("k_norm", c_void_p),
        ("norm_eps", c_float),
        ("norm_adds_one", ctypes.c_bool),
        ("n_rotated", c_int32),
        ("rope_interleaved", ctypes.c_bool),
    )


class ExpertsStep(Structure):
    """native/experts.h: ExpertsStep."""

    _fields_ = (
        ("n_experts", c_int32),
        ("n_chosen", c_int32),
        ("normalizes", c_int32),
        ("epilogue", c_int32),
        ("logits", c_int32),
        ("rows", c_int32),
        ("inner", c_int32),
        ("wide", c_int32),
        ("into", c_void_p),
        ("out_of", c_void_p),
    )


class AdaptStep(Structure):
    """native/program.h: AdaptStep."""

    _fields_ = (("n_adapters", c_int32), ("downs", c_void_p), ("at", c_void_p))


class Op(Structure):
    """native/program.h: OpRecord."""

    _fields_ = (
        ("kind", c_int32),
        ("in_", c_int32),
        ("out", c_int32),
        ("in_at", c_int32),
        ("out_at", c_int32),
        ("width", c_int32),
        ("index", c_int32),
        ("epilogue", c_int32),
        ("norm_kind", c_int32),
        ("adds", c_int32),
        ("format", c_int32),
        ("scale", c_float),
        ("eps", c_float),
        ("cap", c_float),
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("packed", c_void_p),
        ("shape", c_void_p),
        ("heads", c_void_p),
        ("inverse", c_void_p),
        ("rope_scale", c_float),
        ("n_entries", c_int64),
        ("experts", c_void_p),
        ("adapt", c_void_p),
    )


class BufferRecord(Structure):
    """native/program.h: BufferRecord."""

    _fields_ = (("width", c_int32), ("format", c_int32))


class StepRecord(Structure):
    """native/program.h: Step."""

    _fields_ = (
        ("n_tokens", c_int64),
        ("n_rows", c_int64),
        ("n_logits", c_int64),
        ("page_limit", c_int64),
        ("tokens", c_void_p),
        ("positions", c_void_p),
        ("slots", c_void_p),
        ("row_starts", c_void_p),
        ("pages", c_void_p),
        ("page_starts", c_void_p),
        ("wanted", c_void_p),
        ("adapters", c_void_p),
    )


_RECORDS = (Op, BufferRecord, StepRecord, HeadShape, HeadsStep, ExpertsStep, AdaptStep)


def check_layout(library: Library) -> None:
    """Raises if the records here are not laid out as the library's are."""
    sizes = (c_int64 * len(_RECORDS))()
    library.c.sgc_program_layout(sizes)
    ours = [ctypes.sizeof(record) for record in _RECORDS]
    if list(sizes) != ours:
        raise KernelError(f"the library's records have {list(sizes)} bytes, ours {ours}")
