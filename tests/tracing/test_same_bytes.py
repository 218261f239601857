"""The same source gives the same bytes on every run, load and hash seed.

That every listed Python gives the same is what `make test-pythons` compares.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from tracing.same_bytes import digests, digests_elsewhere


@pytest.mark.slow
def test_files_are_the_same_with_another_hash_seed() -> None:
    assert digests_elsewhere(sys.executable, hash_seed=1) == digests()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_compilations_under_load_give_the_same_bytes() -> None:
    busy = [subprocess.Popen([sys.executable, "-c", "while 1: pass"]) for _ in range(4)]
    try:
        found = [digests_elsewhere(sys.executable, hash_seed=n % 3) for n in range(20)]
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert all(each == found[0] for each in found)
