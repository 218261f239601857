"""Huge pages: memory of weights comes in small ones, and is gathered while it is used."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from sgc.kernels.cpu.library import Epilogue, Format, Packed, Threads, Weight

N = 2048  # a weight of N * N * 4 bytes is eight huge pages
MADV_COLLAPSE = 25


def packed(native, weight, threads) -> Packed:
    return Packed(native, Format.F32, [Weight(weight.ctypes.data, N)], N, threads)


def product(weights: Packed, x, threads):
    out = np.zeros((len(x), N), np.float32)
    weights.multiply(x.ctypes.data, N, len(x), Epilogue.STORE_F32, out.ctypes.data, N, threads)
    return out


def huge_kb() -> int:
    """Of this process's anonymous memory, in huge pages; 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages"))


def can_gather() -> bool:
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    return libc.madvise(None, ctypes.c_size_t(0), MADV_COLLAPSE) == 0


def gather_all(native) -> int:
    """Returns how many calls it took, one page each."""
    calls = 1
    while native.gather_pages(1):
        calls += 1
    return calls


@pytest.fixture
def weight():
    return np.random.default_rng(0).normal(size=(N, N)).astype(np.float32)


def test_weights_are_in_huge_pages_once_they_are_gathered(native, threads, weight) -> None:
    kept = [packed(native, weight, threads) for _ in range(4)]
    x = weight[:3].copy()
    before, right = huge_kb(), product(kept[0], x, threads)
    gather_all(native)
    assert not can_gather() or huge_kb() - before >= 4 * N * N * 4 // 1024 * 0.9
    np.testing.assert_array_equal(product(kept[0], x, threads), right)
    assert not native.gather_pages(1), "nothing is left to do"
    for each in kept:
        each.close()
    assert not native.gather_pages(1)


def test_pages_are_gathered_a_few_at_a_time(native, threads, weight) -> None:
    gather_all(native)
    kept = packed(native, weight, threads)
    calls = gather_all(native)
    assert kept.n_bytes >> 21 <= calls or not can_gather()


def test_others_pack_and_run_and_release_meanwhile(native, weight) -> None:
    own = Threads(native, 2)
    right = product(packed(native, weight, own), weight[:2].copy(), own)
    is_over = threading.Event()

    def gather() -> None:
        while not is_over.is_set():
            native.gather_pages(3)

    gathering = threading.Thread(target=gather)
    gathering.start()
    try:
        for _ in range(20):
            one = packed(native, weight, own)
            np.testing.assert_array_equal(product(one, weight[:2].copy(), own), right)
            one.close()
    finally:
        is_over.set()
        gathering.join()
