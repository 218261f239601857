"""`sgc_recording`: recorded with --sgc-record, replayed without, kept by a test that fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sgc.pytest_plugin import _path_of

ROOT = Path(__file__).resolve().parents[2]
TEST = """
import sgc

@sgc.function
def p(s, q):
    s += q + sgc.gen("a", max_tokens=4)

def test_it(sgc_recording):
    one, two = p.run(q="{}", temperature=0), p.run(q="{}", temperature=0, backend=sgc_recording)
    assert one["a"] == two["a"]
    assert {}
"""


RUN = (sys.executable, "-m", "pytest", "-q", "-p", "sgc.pytest_plugin", "-p", "no:cacheprovider")


def pytest_in(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    there = {"PYTHONPATH": str(ROOT), "PATH": ""}
    return subprocess.run(
        [*RUN, *argv, "."], cwd=folder, capture_output=True, text=True, timeout=90, env=there
    )


def write(folder: Path, asked: str, holds: bool) -> None:
    (folder / "test_p.py").write_text(TEST.format(asked, asked, holds))


@pytest.mark.slow
def test_a_test_runs_on_its_recording(tmp_path, fake_engine):
    write(tmp_path, "one", True)
    done = pytest_in(tmp_path)
    assert "there is no recording" in done.stdout
    assert "pytest --sgc-record" in done.stdout
    assert "pytest_plugin.py" not in done.stdout  # no line of ours
    record = ("--sgc-record", "--sgc-engine", fake_engine._engine.uri)
    assert pytest_in(tmp_path, *record).returncode == 0
    recording = tmp_path / "recordings" / "test_p.test_it.rec"
    first = recording.read_bytes()
    assert pytest_in(tmp_path).returncode == 0
    write(tmp_path, "two", True)
    assert "differs from character 0 of its prompt" in pytest_in(tmp_path).stdout
    write(tmp_path, "two", False)
    assert pytest_in(tmp_path, *record).returncode == 1
    assert [*recording.parent.iterdir()] == [recording]
    assert recording.read_bytes() == first


def test_each_test_has_a_recording_of_its_own(tmp_path):
    def name(node: str) -> str:
        found = SimpleNamespace(
            path=tmp_path / "test_p.py", node=SimpleNamespace(nodeid=f"test_p.py::{node}")
        )
        return _path_of(found).name

    assert name("test_it") == "test_p.test_it.rec"
    assert name("TestA::test_it[tea]") == "test_p.TestA.test_it[tea].rec"
    given = ("a/b", "a b", "a_b", "a::b", "a.b", "x" * 300, "x" * 301)
    nodes = ("A::t", "B::t", *(f"t[{each}]" for each in given))
    names = [name(each) for each in nodes]
    assert len({*names}) == len(nodes)
    assert max(map(len, names)) < 200
