"""What is asked of the C libraries, and what is not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sgc.runtime.engine.process import tuning


@pytest.mark.parametrize(
    ("given", "spins"),
    [({}, "30000"), ({"GOMP_SPINCOUNT": "7"}, None), ({"OMP_WAIT_POLICY": "active"}, None)],
)
def test_idle_threads_wait_as_the_user_says(given, spins) -> None:
    assert tuning.environment(given).get("GOMP_SPINCOUNT") == spins


@pytest.mark.parametrize(
    ("given", "tunables"),
    [
        ({}, "glibc.malloc.hugetlb=1"),
        ({"GLIBC_TUNABLES": "a.b=3"}, "a.b=3:glibc.malloc.hugetlb=1"),
        ({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"}, None),
    ],
)  # fmt: skip
def test_memory_is_in_huge_pages_unless_the_user_says(given, tunables) -> None:
    assert tuning.environment(given).get("GLIBC_TUNABLES") == tunables


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_freed_memory_is_used_again() -> None:
    """In a process of its own: it cannot be taken back."""
    code = """if True:
        import resource, torch
        from sgc.runtime.engine.process.tuning import keep_freed_memory
        def faults():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for _ in range(20):
                torch.zeros(20 << 20, dtype=torch.uint8)
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        keep_freed_memory()
        faults()
        print(faults())
    """
    run = [sys.executable, "-P", "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) < 2000  # and not 20 times 5120
