"""A run that is killed anywhere, and gone on with, ends as if nothing had happened.

No finished generation is asked again, and no effect is repeated: where it cannot be known whether
one was done, the run stops and says so, and goes on as it is told.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sgc.errors import RunLogError
from sgc.runtime.executor.log.run_log import RunLog

PROGRAM = Path(__file__).with_name("crash_program.py")
UNKNOWN, NEVER = 3, -1
Attempt = Callable[..., int]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> Path:
    path: Path = tmp_path_factory.mktemp("crash") / "agent.sgir"
    subprocess.run([sys.executable, "-P", str(PROGRAM), str(path)], check=True, timeout=60)
    return path


@pytest.fixture
def attempt(compiled, tmp_path) -> Iterator[Attempt]:
    """Runs the program up to a point: `attempt(kill_at, …)` gives the exit code."""
    command = [sys.executable, "-P", str(PROGRAM)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:

        def make(folder: Path, kill_at: int, is_compiled: bool, on_unknown: str) -> int:
            files = {name: str(folder / name) for name in ("log", "asked", "effects", "text")}
            order = {"kill_at": kill_at, "is_compiled": is_compiled, "on_unknown": on_unknown}
            assert parent.stdin is not None
            assert parent.stdout is not None
            parent.stdin.write(json.dumps({**files, **order, "program": str(compiled)}) + "\n")
            parent.stdin.flush()
            return int(parent.stdout.readline())

        yield make
        assert parent.stdin is not None
        parent.stdin.close()


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def logged(folder: Path) -> tuple[set[str], str]:
    """The generations that are in the log, and the effect that it does not tell the end of."""
    found, begun = set(), ""
    try:
        with RunLog.read(folder / "log") as log:
            for record in log.records():
                if record["kind"] == "generate":
                    found.add(json.dumps([record["prompt"], record["sampling"]["seed"]]))
                if record["kind"] == "intent":
                    begun = json.dumps(record["args"])
                if record["kind"] == "tool" and record["effect"] == "effect":
                    begun = ""
    except RunLogError:
        assert not lines(folder / "asked"), "a run that asked for something has begun its log"
    return found, begun


def run_to_its_end(attempt: Attempt, folder: Path, rng: random.Random, n_points: int) -> int:
    """How often it was killed before it ended."""
    n_killed, on_unknown = 0, "stop"
    while True:
        before, asked_before = logged(folder), len(lines(folder / "asked"))
        n_done = len(lines(folder / "effects"))
        is_last = n_killed >= 3
        kill_at = NEVER if is_last else rng.randrange(n_points)
        code = attempt(folder, kill_at, rng.random() < 0.5, on_unknown)
        asked = lines(folder / "asked")[asked_before:]
        assert not before[0] & set(asked), "what the log has is not asked again"
        assert len(asked) == len(set(asked))
        if code == 0:
            return n_killed
        if code == UNKNOWN:
            assert on_unknown == "stop"
            assert len(lines(folder / "effects")) == n_done
            on_unknown = "skip" if was_done(folder) else "retry"
        else:
            assert code == -signal.SIGKILL
            n_killed, on_unknown = n_killed + 1, "stop"


def was_done(folder: Path) -> bool:
    """Whether the effect whose end is not known left its trace, as a user would look."""
    args, kwargs = json.loads(logged(folder)[1])
    wanted = f"pay {args[0]}" if not kwargs else f"send {args[0]} {kwargs['to']}"
    return wanted in lines(folder / "effects")


def check_many(attempt: Attempt, tmp_path: Path, n_runs: int) -> None:
    whole = {}
    for is_compiled in (False, True):
        folder = tmp_path / f"whole-{is_compiled}"
        folder.mkdir()
        assert attempt(folder, NEVER, is_compiled, "stop") == 0
        text, n_points = (folder / "text").read_text().rsplit("\n", 1)
        whole[is_compiled] = text, lines(folder / "effects")
    assert whole[True] == whole[False]
    n_killed = Counter[int]()
    for number in range(n_runs):
        folder = tmp_path / str(number)
        folder.mkdir()
        n_killed[run_to_its_end(attempt, folder, random.Random(number), int(n_points))] += 1
        assert (folder / "text").read_text().rsplit("\n", 1)[0] == whole[True][0]
        assert lines(folder / "effects") == whole[True][1], "each effect once, in order"
    assert sum(n_killed.values()) - n_killed[0] > n_runs // 2, "most runs were killed"


@pytest.mark.slow
def test_killed_anywhere_it_ends_the_same(attempt, tmp_path):
    check_many(attempt, tmp_path, 3)


@pytest.mark.slow
def test_killed_anywhere_it_ends_the_same_often(attempt, tmp_path):
    check_many(attempt, tmp_path, 200)


@pytest.mark.parametrize("step", [71, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_points_in_turn_the_next_attempt_ends_it(attempt, tmp_path, step):
    folder = tmp_path / "first"
    folder.mkdir()
    assert attempt(folder, NEVER, True, "stop") == 0
    n_points = int((folder / "text").read_text().rsplit("\n", 1)[1])
    effects, n_unknown = lines(folder / "effects"), 0
    for kill_at in range(0, n_points, step):
        folder = tmp_path / str(kill_at)
        folder.mkdir()
        assert attempt(folder, kill_at, kill_at % 4 < 2, "stop") == -signal.SIGKILL
        code = attempt(folder, NEVER, True, "stop")
        if code == UNKNOWN:
            n_unknown += 1
            code = attempt(folder, NEVER, True, "skip" if was_done(folder) else "retry")
        assert code == 0
        assert lines(folder / "effects") == effects
    assert n_unknown > 0 or step > 1
