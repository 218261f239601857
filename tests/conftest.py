"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sgc.cli import main
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import Runtime
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.interface.backend import Prompt, Sampling
from sgc.tracing import trace, tracer
from sgc.tracing.checking import check
from sgc.tracing.paths.exploration import Budget
from sgc.tracing.recording import coding

# Tests run side by side, one on each core: more threads would wait for each other. For torch,
# which reads it when it is imported, in this process and in those begun here.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Kernels are tested with every instruction set that the machine has.
os.environ.setdefault("SGC_KERNEL_SETS", "all")
# Triton reads it when it is imported: without a GPU its kernels run in its interpreter.
if not any(Path("/dev").glob("nvidia[0-9]*")):
    os.environ.setdefault("TRITON_INTERPRET", "1")


ENGINES = {"engine", "fake_engine", "default_engine"}


# Of how many cases of a sweep the quick tests run one.
SWEEP = 1 if os.environ.get("SWEEPS") == "all" else 20


def pytest_collection() -> None:
    """What is imported stays, so looking for garbage among it finds none: a fifth of the time."""
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs a local engine, and so needs torch, is marked; so is most of a sweep as slow."""
    n_cases: Counter[str] = Counter()
    for item in items:
        if ENGINES & set(getattr(item, "fixturenames", ())):
            item.add_marker("engine")
        if item.get_closest_marker("sweep"):
            function = item.nodeid.partition("[")[0]
            if n_cases[function] % SWEEP:
                item.add_marker("slow")
            n_cases[function] += 1


def pytest_collection_finish() -> None:
    """Garbage is looked for less often than by default, which took a tenth of the time."""
    gc.enable()
    gc.set_threshold(10_000, 20, 20)
    _Frozen.freeze()


def pytest_runtest_logfinish() -> None:
    if len(sys.modules) > _Frozen.n_modules + 100:
        _Frozen.freeze()


def pytest_unconfigure() -> None:
    """What was imported can be freed at exit: nanobind, of Triton's, reports what is not."""
    gc.unfreeze()


class _Frozen:
    """What was imported stays: the garbage collector need not look at it again and again."""

    n_modules = 0

    @classmethod
    def freeze(cls) -> None:
        gc.collect()
        gc.freeze()
        cls.n_modules = len(sys.modules)


def prompt_text(prompt: Prompt) -> str:
    return "".join(segment.text for segment in prompt)


def echo_length(prompt: Prompt, sampling: Sampling) -> str:
    """A reply that tells prompts apart."""
    return f" reply {len(prompt_text(prompt))}"


@pytest.fixture(autouse=True)
def _short_checks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling checks a trace on few replies, but where a test is of the check itself."""
    if "full_check" not in request.keywords:
        monkeypatch.setattr(check, "MAX_ROUNDS", 6)


@pytest.fixture(autouse=True)
def _small_budgets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many programs of tests are refused when the budget of exploring is spent: a tenth of what it
    is by default does for them, with a fifth of the steps before pieces are looked for, and in
    quick tests for tracing one anew after a stop. A program that needs more says so."""
    if "full_budget" in request.keywords:
        return
    monkeypatch.setattr(tracer, "Budget", partial(Budget, work=100_000))
    monkeypatch.setattr(coding, "LOOKED", 10_000)
    if SWEEP > 1 and "slow" not in request.keywords:
        for module in (trace, tracer):
            monkeypatch.setattr(module, "WORK_KEPT", 20_000)


@pytest.fixture
def scripted() -> Callable[..., Endpoint]:
    """Makes an endpoint of scripted replies: `scripted(reply, prefer)`."""

    def make(reply: Any = echo_length, prefer: Any = lambda prompt, choices: 0) -> Endpoint:
        return Endpoint(ScriptedBackend(reply, prefer))

    return make


# -- the command line --


@pytest.fixture
def sgc_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*argv: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(argv))
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return int(ended.value.code or 0), out, err

    return run


# -- engines: one server process a model and session --


@pytest.fixture(scope="session")
def fake_engine() -> Iterator[Runtime]:
    with Runtime("fake", check=True) as runtime:
        yield runtime


@pytest.fixture(scope="session")
def default_engine() -> Iterator[Runtime]:
    """The model that ships."""
    with Runtime(check=True) as runtime:
        yield runtime


@pytest.fixture(params=["fake", "default"])
def engine(request: pytest.FixtureRequest) -> Runtime:
    """Each of them, with an empty cache."""
    runtime: Runtime = request.getfixturevalue(f"{request.param}_engine")
    runtime.flush_cache()
    return runtime
