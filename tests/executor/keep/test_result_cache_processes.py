"""Several processes on one result cache, kills, and the command."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from executor.keep.cached import in_loop

from sgc.cli import main
from sgc.runtime.executor.keep.result_store import ResultStore

WORKER = """
import asyncio, sys
from sgc.runtime.executor.keep.result_store import ResultStore
folder, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
store = ResultStore(folder)
async def one(n, room):
    async with room:
        found = await store.get(f"k{n}")
        assert found in (None, {"n": n}), found
        await store.put(f"k{n}", {"n": n})
        assert await store.get(f"k{n}") == {"n": n}
        if n % 50 == 0:
            print(n, flush=True)
async def main():
    room = asyncio.Semaphore(100)
    await asyncio.gather(*(one(n, room) for n in range(first, last)))
asyncio.run(main())
store.close()
"""


def worker(folder, first, last):
    command = [sys.executable, "-P", "-W", "error", "-c", WORKER, folder, str(first), str(last)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_several_processes_use_one_folder(tmp_path):
    workers = [worker(tmp_path / "cache", n * 60, n * 60 + 180) for n in range(3)]
    for process in workers:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    store = ResultStore(tmp_path / "cache")

    async def work():
        return [(await store.get(f"k{n}"))["n"] for n in range(300)]

    assert in_loop(work) == list(range(300))
    store.close()


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_a_cache(tmp_path):
    n_found = 0
    for n_lines in (1, 4, 9):
        process = worker(tmp_path, 0, 10_000)
        for _ in range(n_lines):
            assert process.stdout.readline()
        process.kill()
        process.communicate()
        store = ResultStore(tmp_path)

        async def work(store=store):
            return [n for n in range(1000) if await store.get(f"k{n}") == {"n": n}]

        n_found, before = len(in_loop(work)), n_found
        assert n_found >= before
        store.close()
    assert n_found > 200


PROGRAM = """
import sgc

@sgc.function
def tip(s, topic: str):
    s += "A tip for " + topic + ":" + sgc.gen("tip", max_tokens=8, temperature=0)
"""


@pytest.fixture
def command(fake_engine, capsys, monkeypatch, tmp_path):
    """Runs `sgc run tip.py` and more: what its stats say of the cache, and its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SGC_CACHE_DIR", raising=False)
    (tmp_path / "tip.py").write_text(PROGRAM)
    engine = ("--engine", fake_engine._engine.uri)

    def run(*argv):
        with pytest.raises(SystemExit) as ended:
            main(["run", "tip.py", "--arg", "topic=tea", "--json", *engine, *argv])
        out = capsys.readouterr().out
        code = ended.value.code or 0
        return json.loads(out)["stats"]["cached_requests"] if code == 0 else -code

    return run


def test_the_command_keeps_where_it_is_told(command, monkeypatch, tmp_path):
    assert [command(), command()] == [0, 0]
    assert [command("--cache-dir", "c"), command("--cache-dir", "c")] == [0, 1]
    monkeypatch.setenv("SGC_CACHE_DIR", str(tmp_path / "c"))
    assert [command(), command("--no-cache"), command("--cache-dir", "d")] == [1, 0, 0]
    assert command("--cache-dir", "c", "--no-cache") == -2
    assert command("--cache-dir", "tip.py") == -1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "d", "tip.py"]
