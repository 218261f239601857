"""An engine starts without kernels of our own, whatever is wrong with them, and says what in one
line; `tests/kernels` has the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_cache import script

from sgc.kernels.cpu.build import NO_KERNELS
from sgc.runtime.engine.launch import EmbeddedEngine

pytestmark = pytest.mark.engine


def lines_of_a_start(capfd: pytest.CaptureFixture[str]) -> list[str]:
    with EmbeddedEngine() as engine:
        assert engine.is_running
    return [line for line in capfd.readouterr().err.splitlines() if "kernels" in line]


@pytest.fixture(autouse=True)
def _empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("SGC_KERNEL_CACHE", str(tmp_path / "kernels"))
    monkeypatch.delenv("SGC_CPU_KERNELS", raising=False)


@pytest.mark.slow
def test_there_is_no_compiler(monkeypatch, capfd) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    (line,) = lines_of_a_start(capfd)
    assert NO_KERNELS in line
    assert "no-such-compiler, is not there" in line


@pytest.mark.slow
def test_they_are_turned_off(monkeypatch, capfd) -> None:
    """Whoever turns them off knows it."""
    monkeypatch.setenv("SGC_CPU_KERNELS", "off")
    assert lines_of_a_start(capfd) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiler", "said"),
    [
        ("echo 'error: boom'; exit 1", "error: boom"),
        pytest.param("exit 0", "writes nothing", marks=pytest.mark.slow),
    ],
)
def test_the_compiler_is_broken(monkeypatch, capfd, tmp_path, compiler, said) -> None:
    monkeypatch.setenv("CXX", script(tmp_path / "cc", compiler))
    compiling, line = lines_of_a_start(capfd)
    assert "compiling kernels" in compiling
    assert NO_KERNELS in line
    assert said in line
    assert "`sgc doctor` tries again" in line


@pytest.mark.slow
def test_the_cache_cannot_be_written(monkeypatch, capfd) -> None:
    monkeypatch.setenv("CXX", "true")
    monkeypatch.setenv("SGC_KERNEL_CACHE", "/proc/kernels")
    (line,) = lines_of_a_start(capfd)
    assert NO_KERNELS in line
    assert "name a folder of yours in SGC_KERNEL_CACHE" in line
