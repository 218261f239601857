"""`sgc top`: what it computes from two moments, what it prints where, and how it ends."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import BOUND_S

from sgc.cli import main
from sgc.cli.running.top import History, Snapshot, _Screen, line, program_lines
from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.launch import EmbeddedEngine

TOP = [sys.executable, "-P", "-m", "sgc", "top"]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def uri() -> Iterator[str]:
    with EmbeddedEngine("fake", ["--pool-tokens", "20000"]) as engine:
        yield engine.uri


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*argv: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["top", *argv])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def busy(steps: int, **more: Any) -> pb.Stats:
    """An engine under way: each step 20 ms, 16 of them the model's, and 10 tokens."""
    return pb.Stats(
        steps=steps, busy_s=0.02 * steps, forward_s=0.016 * steps, sampled_tokens=10 * steps,
        pool_tokens=1000, free_tokens=390, cached_pool_tokens=480, **more,
    )  # fmt: skip


def test_a_line_tells_what_two_moments_differ_in() -> None:
    history = History()
    assert history.add(Snapshot(10.0, busy(100, prompt_tokens=1000, cached_tokens=500))) is None
    now = busy(150, prompt_tokens=7200, cached_tokens=6390, running_requests=12,
               waiting_requests=40, parked_requests=3)  # fmt: skip
    found = history.add(Snapshot(12.0, now))
    assert found is not None
    assert line(found) == (
        "run 12  wait 40 (3 parked)  hit 89% (5 s: 95%)  250 tok/s out  3.1k tok/s in  "
        "pool 61% (cached 48%)  step 20 ms (model 16 ms)"
    )


def test_prefetches_are_told_while_there_are_any() -> None:
    history = History()
    history.add(Snapshot(10.0, busy(100)))
    found = history.add(Snapshot(12.0, busy(150, prefetched_tokens=3000, waiting_prefetches=2)))
    assert found is not None
    assert "1.5k tok/s prefetched (2 waiting)  pool" in line(found)


def test_programs_are_told_beside_requests() -> None:
    history = History()
    history.add(Snapshot(10.0, busy(100)))
    told = pb.ProgramNow(running=2, waiting=1, generated_tokens=30, remaining=96, since_s=1.25)
    untold = pb.ProgramNow(running=0, waiting=4)
    stats = busy(150, programs=20, first_programs=[told, untold])
    found = history.add(Snapshot(12.0, stats))
    assert found is not None
    assert line(found).startswith("run 0  wait 0  programs 20  hit")
    assert program_lines(found) == [
        "       96 left  2 running  1 waiting  30 generated  1.2 s",
        "      not told  0 running  4 waiting  0 generated  0.0 s",
        "  and 18 more",
    ]


def test_rates_are_of_the_last_interval_and_the_hit_rate_of_the_last_seconds() -> None:
    history = History(window_s=5.0)
    for second in range(20):
        cached = 100 * min(second, 10)  # nothing is cached after the tenth second
        stats = busy(10 * second, prompt_tokens=100 * second, cached_tokens=cached)
        found = history.add(Snapshot(float(second), stats))
        if second == 12:
            assert found is not None
            assert found.hit_rate_recent == pytest.approx(3 / 5)
    assert found is not None
    assert found.hit_rate == pytest.approx(10 / 19)
    assert found.hit_rate_recent == 0
    assert found.output_tokens_per_s == pytest.approx(100)
    assert len(history._kept) <= 7


def test_an_idle_engine_and_one_that_was_started_anew() -> None:
    history = History()
    history.add(Snapshot(0.0, busy(100)))
    idle = history.add(Snapshot(1.0, busy(100)))
    assert idle is not None
    assert line(idle) == (
        "run 0  wait 0  hit - (5 s: -)  0 tok/s out  0 tok/s in  pool 61% (cached 48%)  idle"
    )
    assert history.add(Snapshot(2.0, pb.Stats(pool_tokens=10))) is None
    assert history.add(Snapshot(3.0, pb.Stats(pool_tokens=10))) is not None


def test_what_was_lost_is_told() -> None:
    history = History()
    history.add(Snapshot(0.0, busy(1)))
    found = history.add(Snapshot(1.0, busy(1, refused_requests=2, failed_requests=1)))
    assert found is not None
    assert line(found).endswith("idle  2 refused  1 failed")


def test_once(uri: str, command: Command) -> None:
    code, out, err = command("--engine", uri, "--once", "--interval", "0.05")
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert out.startswith("run 0  wait 0  hit - ")
    code, out, err = command("--engine", uri, "--once", "--interval", "0.05", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["pool_used"] == 0.0
    code, out, err = command("--engine", uri, "--once", "--interval", "0.05", "--programs")
    assert (code, err, out.count("\n")) == (0, "", 1)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--engine", "unix:/no/such/socket"], 1, "(no such socket)\n  start one with `sgc serve`"),
        (["--engine", "sglang+http://localhost:1"], 2, "cannot use 'sglang+http://localhost:1'"),
        (["--engine", "unix:/a,unix:/b"], 2, "cannot use 'unix:/a,unix:/b'"),
        (["--engine", "grpc://localhost"], 2, "expected grpc://host:port"),
        (["--interval", "0"], 2, "--interval"),
    ],
)
def test_mistakes(command: Command, arguments: list[str], code: int, words: str) -> None:
    found, out, err = command(*arguments)
    assert (found, out) == (code, "")
    assert words in err


@pytest.mark.slow
def test_a_token_is_sent(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("secret")
    with EmbeddedEngine("fake", ["--token-file", str(tmp_path / "token")]) as engine:
        arguments = ["--engine", engine.uri, "--once", "--interval", "0.05"]
        monkeypatch.delenv("SGC_TOKEN", raising=False)
        code, _, err = command(*arguments)
        assert (code, "set SGC_TOKEN" in err) == (1, True)
        monkeypatch.setenv("SGC_TOKEN", "secret")
        assert command(*arguments)[0] == 0


def test_a_terminal_has_one_line_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    history = History()
    history.add(Snapshot(0.0, busy(1)))
    found = history.add(Snapshot(1.0, busy(2)))
    assert found is not None
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(sys, "stdout", Terminal())
    with _Screen(as_json=False) as screen:
        screen.show(found)
        screen.show(found)
        raise KeyboardInterrupt
    shown = sys.stdout.getvalue()  # type: ignore[attr-defined]
    one = f"\r{line(found)[:29]}\x1b[K"
    assert shown == one + one + "\n"


@contextmanager
def topping(uri: str) -> Iterator[subprocess.Popen[str]]:
    arguments = ["--engine", uri, "--interval", "0.05"]
    process = subprocess.Popen(
        [*TOP, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_an_interrupt_ends_it(uri: str) -> None:
    with topping(uri) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("run 0")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=BOUND_S)
        assert (process.returncode, err) == (0, "")


@pytest.mark.slow
def test_an_engine_that_ends_is_told() -> None:
    with EmbeddedEngine("fake") as engine, topping(engine.uri) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("run 0")
        engine.stop()
        _, err = process.communicate(timeout=BOUND_S)
        assert process.returncode == 1
        assert "error: no engine at unix:" in err


@pytest.mark.slow
def test_an_answer_that_takes_longer_than_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next question follows at once; the wait between them is not less than nothing."""
    from sgc.cli.running import top as module

    moments = iter(range(100))
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        slept.append(seconds)
        if len(slept) == 3:
            raise KeyboardInterrupt

    clock = SimpleNamespace(monotonic=lambda: 10.0 * next(moments), sleep=sleep)
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "_ask", lambda endpoint: Snapshot(next(moments), busy(10)))
    with EmbeddedEngine("fake", ["--pool-tokens", "2000"]) as engine, pytest.raises(SystemExit):
        main(["top", "--engine", engine.uri, "--interval", "1"])
    assert len(slept) == 3
