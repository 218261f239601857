"""The native pool: each item once, whoever sleeps."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest

from sgc.kernels.cpu.library import KernelError, Library, Threads


def run(native: Library, threads: Threads, n_items: int) -> np.ndarray:
    """Returns which thread did each item, of a run in which each was begun once."""
    counts, by = np.zeros(n_items, np.int32), np.full(n_items, -1, np.int32)
    assert (
        native.c.sgc_threads_try(threads.handle, n_items, counts.ctypes.data, by.ctypes.data) == 0
    )
    assert (counts == 1).all()
    assert ((by >= 0) & (by < threads.count)).all()
    return by


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4])
def test_each_item_is_begun_once(native, n_threads) -> None:
    threads, chance = Threads(native, n_threads), random.Random(n_threads)
    assert threads.count == n_threads
    for _ in range(2000):
        run(native, threads, chance.randrange(40))
    run(native, threads, 1_000_000)


def test_workers_sleep_and_wake(native) -> None:
    threads = Threads(native, 4)
    for _ in range(200):
        run(native, threads, 8)
        time.sleep(0.0003)  # longer than they spin


def test_one_item_or_one_thread_is_done_by_the_caller(native) -> None:
    assert set(run(native, Threads(native, 3), 1)) == {0}
    assert set(run(native, Threads(native, 1), 100)) == {0}


def test_workers_take_part(native) -> None:
    threads = Threads(native, 2)
    deadline = time.monotonic() + 20
    while set(run(native, threads, 2_000_000)) != {0, 1}:
        assert time.monotonic() < deadline, "only one thread works"


def test_pools_come_and_go(native) -> None:
    for i in range(100):
        threads = Threads(native, 1 + i % 4)
        run(native, threads, i % 7)
        threads.close()
        threads.close()


def test_pools_are_independent(native) -> None:
    def work(seed: int) -> None:
        threads, chance = Threads(native, 2), random.Random(seed)
        for _ in range(300):
            done.append(len(run(native, threads, chance.randrange(1, 40))))

    done: list[int] = []
    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(done) == 900


def test_no_threads_are_refused(native) -> None:
    with pytest.raises(KernelError, match="at least one thread"):
        Threads(native, 0)
