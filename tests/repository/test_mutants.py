"""The tests are themselves tested: each mistake of `mutants.py` must make one of them fail.

.venv/bin/pytest -s -m slow tests/repository/test_mutants.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from repository.mutants import ENGINE, PASSES, TRACING, VERIFIER, Mutant

ROOT = Path(__file__).resolve().parents[2]
ALL = (*PASSES, *VERIFIER, *TRACING, *ENGINE)
# Of these the test is quick: a few are looked at whenever all tests are run.
QUICK = (
    next(each for each in PASSES if each.new == "0 <= degrees <= 1.0"),
    next(each for each in VERIFIER if each.old == "elif name == entry:"),
)
_FAILED, _NONE = 1, 5  # pytest's exit status: some tests did not pass; there are none


def is_noticed(mutant: Mutant, which: str = "not slow") -> bool:
    files, _, words = mutant.tests.partition(":")
    command = [sys.executable, "-P", "-m", "pytest", "-x", "-q", "-p", "repository.mutant_loader"]
    command += ["-m", which, *files.split(), *(["-k", words] if words else [])]
    paths = [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {
        "SWEEPS": "all",
        "SGC_MUTANT": json.dumps(asdict(mutant)), "PYTHONPATH": os.pathsep.join(paths),
    }  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode in (0, _FAILED, _NONE), f"badly planted: {done.stdout}{done.stderr}"
    return done.returncode == _FAILED


@pytest.mark.parametrize("file", sorted({each.file for each in ALL}))
def test_texts_to_change_are_there(file: str) -> None:
    text = (ROOT / file).read_text()
    gone = [each.old for each in ALL if each.file == file and text.count(each.old) != 1]
    assert not gone, f"mutants.py: no longer in {file}, or more than once: change or drop {gone}"


@pytest.mark.parametrize("mutant", QUICK, ids=lambda each: each.file)
def test_a_few_mistakes_are_noticed(mutant: Mutant) -> None:
    assert is_noticed(mutant), f"no test notices {mutant}"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", ALL, ids=lambda each: f"{each.file}: {each.new[:40]}")
def test_every_mistake_is_noticed(mutant: Mutant) -> None:
    assert is_noticed(mutant) or is_noticed(mutant, "slow"), f"no test notices {mutant}"
