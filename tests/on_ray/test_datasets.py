"""`sgc.ray.map_batches`: results are a local run's, whatever becomes of actors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("ray")

import pyarrow as pa
import pyarrow.parquet as pq
from e2e.test_examples import ARGUMENTS, TOOLS, load_example
from on_ray.conftest import children
from on_ray.programs_on_ray import answer, ordered, priced, rows

import sgc
import sgc.ray
from sgc.errors import SgcWarning
from sgc.ray.datasets import _cpus
from sgc.runs.jobs.records import COLUMNS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HOW = {"model": "fake", "num_cpus": 0.5, "seed": 1}
VARYING = ("cached_tokens",)  # how much a cache has depends on what ran there before


def local(program: Path, source: Path, out: Path) -> list[dict]:
    command = [sys.executable, "-P", "-m", "sgc", "run", str(program), "--rows", str(source),
               "--out", str(out), "--seed", "1", "--model", "fake", "--quiet"]  # fmt: skip
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": os.getcwd()})
    return by_key(pq.read_table(out).to_pylist())


def by_key(found: list[dict]) -> list[dict]:
    for row in found:
        for name in (*VARYING, "label"):
            row.pop(name, None)
    return sorted(found, key=lambda row: row["key"])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("program") / "answer.sgir"
    answer.compile().save(path)
    return path


def test_from_parquet_to_parquet_as_a_local_job(ray, compiled, tmp_path):
    source = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows(200)), source)
    given = ray.data.read_parquet(str(source))
    found = sgc.ray.map_batches(
        compiled, given, concurrency=2, batch_size=50, keep=["label"], **HOW
    )
    found.write_parquet(str(tmp_path / "out"))
    results = pq.read_table(tmp_path / "out")
    assert sorted(results.column("label").to_pylist()) == list(range(200))
    for_job = tmp_path / "of_job.parquet"  # it takes arguments and keys alone
    pq.write_table(pa.Table.from_pylist(rows(200)).drop_columns(["label"]), for_job)
    assert by_key(results.to_pylist()) == local(compiled, for_job, tmp_path / "local.parquet")


@pytest.mark.parametrize("order", ["batch", "given"])
def test_rows_without_keys_are_numbered(ray, compiled, tmp_path, order):
    given = [{"document": row["document"], "question": row["question"]} for row in rows(60)]
    source = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(given), source)
    dataset = ray.data.from_items(given, override_num_blocks=5)
    found = sgc.ray.map_batches(compiled, dataset, order=order, batch_size=16, **HOW)
    assert by_key(found.take_all()) == local(compiled, source, tmp_path / "local.parquet")


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_example_gives_what_it_gives_here(ray, monkeypatch, name):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "examples"))
    program = load_example(name).compile()
    given = [{"custom_id": str(n), **ARGUMENTS[name]} for n in range(3)]
    tools = ["react"] if name in TOOLS else []
    found = sgc.ray.map_batches(
        program, ray.data.from_items(given), order="given", tools=tools, **HOW
    )
    texts = [row["text"] for row in sorted(found.take_all(), key=lambda row: row["key"])]
    with sgc.Runtime("fake") as engine:
        here = program.run_batch([ARGUMENTS[name]] * 3, backend=engine, seed=1)
    assert texts == [state.text() for state in here]


def test_actors_and_engines_are_killed_and_every_row_is_there_once(ray, compiled):
    """An actor with its engine, and later the engine of another one alone."""
    given = rows(1200)
    dataset = ray.data.from_items(given)
    found = sgc.ray.map_batches(compiled, dataset, concurrency=2, batch_size=24, **HOW)
    results: list[dict] = []
    killed = []
    for batch in found.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
        results += batch.to_pylist()
        if len(killed) < 2 and len(results) > 100 * (1 + 3 * len(killed)):
            killed.append(kill("ray::MapWorker" if not killed else "engine.serve"))
    assert len(killed) == 2
    counts = Counter(row["key"] for row in results)
    assert counts == Counter(row["custom_id"] for row in given)
    assert not [row["error"] for row in results if row["error"]]
    with sgc.Runtime("fake") as engine:
        program = sgc.load(compiled)
        sample = [row for row in results if int(row["key"][4:]) % 100 == 7]
        for row in sample:
            arguments = {n: given[int(row["key"][4:])][n] for n in ("document", "question")}
            assert (
                program.run(**arguments, backend=engine, seed=1, row=row["key"]).text()
                == (row["text"])
            )


def kill(named: str) -> int:
    """Kills a process of this cluster that has such a command."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for pid, command in children(of=os.getpid()).items():
            if named in command and (named != "ray::MapWorker" or "ProgramRows" in command):
                os.kill(pid, signal.SIGKILL)
                return pid
        time.sleep(0.05)
    raise AssertionError(f"no process is called {named}: {children(of=os.getpid())}")


def test_errors_are_of_their_rows_unless_there_are_too_many(ray):
    items = ["tea", "free", None, "milk"] * 5
    given = [{"custom_id": str(n), "item": item} for n, item in enumerate(items)]
    how = {"tools": ["on_ray.programs_on_ray"], "batch_size": 4, **HOW}
    found = sgc.ray.map_batches(priced, ray.data.from_items(given), **how).take_all()
    told = Counter(row["error_type"] for row in found)
    assert told == {None: 10, "ToolError": 5, "ArgumentError": 5}
    assert set(found[0]) == set(COLUMNS)
    limited = sgc.ray.map_batches(priced, ray.data.from_items(given), max_errors=6, **how)
    with pytest.raises(Exception, match="TooManyFailed") as caught:
        limited.take_all()
    assert "give a larger max_errors" in str(caught.value)
    assert len(sgc.ray.map_batches(
        priced, ray.data.from_items(given), max_errors=10, **how
    ).take_all()) == 20  # fmt: skip


def test_an_engine_that_runs_already_serves_all_actors(ray, compiled):
    with sgc.Runtime("fake") as engine:
        found = sgc.ray.map_batches(
            compiled, ray.data.from_items(rows(40)), engine=engine._engine.uri, batch_size=8,
            num_cpus=0.5, concurrency=(1, 2), seed=1,
        ).take_all()  # fmt: skip
        assert len(found) == 40
        assert sum(row["requests"] for row in found) == 80


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"program": "no.sgir"}, "no.sgir"),
        ({"program": 7}, "a program or an @sgc.function"),
        ({"items": [{"custom_id": "1", "document": "x"}]}, "takes question"),
        ({"keep": ["labels"]}, "there is no column 'labels'"),
        ({"keep": ["text"], "items": [{**rows(1)[0], "text": "x"}]}, "'text' of their own"),
        ({"key": "id"}, "there is no column 'id'"),
        ({"items": []}, "no rows"),
        ({"order": "best"}, "order must be one of plan, batch, given"),
        ({"items": [{**rows(1)[0], "__sgc_order": 1}]}, "a column '__sgc_order', which is added"),
        ({"concurrency": 0}, "each from 1, found 0 and 256"),
        ({"concurrency": (2, 1)}, "each from 1, found (2, 1)"),
        ({"batch_size": 0}, "each from 1, found 1 and 0"),
        ({"log": "x"}, "log cannot be sent"),
        ({"topic": "x"}, "unknown option 'topic'"),
        ({"tools": ["no_such_module"]}, "cannot be imported"),
        ({"program": ordered, "items": [{"item": "x"}], "tools": ["on_ray.programs_on_ray"]},
         "a tool that has effects"),
        ({"program": priced, "items": [{"item": "x"}]}, "price"),
    ],
)  # fmt: skip
def test_mistakes_are_told_before_anything_runs(ray, changed, told):
    changed = {"items": rows(2), "program": answer, **changed}
    dataset = ray.data.from_items(changed.pop("items"))
    with pytest.raises(sgc.SgcError) as caught:
        sgc.ray.map_batches(changed.pop("program"), dataset, **HOW, **changed)
    assert told in str(caught.value)


def test_actors_leave_a_cpu_to_other_tasks(ray, compiled):
    """On two CPUs, two actors of one each would wait for a dataset that nobody can read."""
    given = ray.data.from_items(rows(20))
    found = sgc.ray.map_batches(compiled, given, model="fake", concurrency=2, batch_size=10)
    assert len(found.take_all()) == 20
    with pytest.warns(SgcWarning, match="leave none of the cluster's 2"):
        sgc.ray.map_batches(compiled, given, model="fake", concurrency=2, num_cpus=1)


def test_one_cpu_is_enough(monkeypatch):
    """On a machine of one CPU half of one would leave too little to a task that reads."""
    monkeypatch.setattr("ray.cluster_resources", lambda: {"CPU": 1.0})
    assert _cpus(1, None) == 0
    with pytest.warns(SgcWarning, match="leave none"):
        assert _cpus(2, None) == 1


def test_nothing_phones_home():
    """Ray reports its use unless it is told not to before it starts."""
    code = (
        "import sgc.ray\nfrom ray._common.usage.usage_lib import usage_stats_enabled\n"
        "assert not usage_stats_enabled()"
    )
    environment = {n: v for n, v in os.environ.items() if n != "RAY_USAGE_STATS_ENABLED"}
    subprocess.run([sys.executable, "-P", "-c", code], check=True, env=environment)
