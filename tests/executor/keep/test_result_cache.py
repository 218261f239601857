"""The result cache: what is kept and what is not; several processes, kills, damage, full disks."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
import stat
import subprocess
import sys
import warnings
from dataclasses import replace

import pytest

import sgc
from sgc.cli import main
from sgc.errors import BackendError, CacheError, SgcWarning, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.interface.backend import RoleMark, Sampling, TextRun, TokenRun, Usage
from sgc.runtime.executor.interface.media import media
from sgc.runtime.executor.keep.request_keys import generation_key, score_key
from sgc.runtime.executor.keep.result_cache import ResultCache
from sgc.runtime.executor.keep.result_store import FILE, MIN_BYTES, ResultStore


class Counting(ScriptedBackend):
    """Counts what is asked, and tells what it cost."""

    scope = "counting"

    def __init__(self, model: str = "scripted", fails: bool = False) -> None:
        super().__init__(lambda prompt, sampling: f" r{sampling.seed % 1000}")
        self.n_asked, self._model, self.fails = 0, model, fails

    async def capabilities(self):
        return replace(CAPABILITIES, model=self._model)

    async def generate(self, prompt, sampling, on_delta=None):
        self.n_asked += 1
        if self.fails:
            raise BackendError("gone")
        reply = await super().generate(prompt, sampling, on_delta)
        return replace(reply, usage=Usage(prompt_tokens=10, computed_tokens=10, cost_usd=0.5))

    async def score(self, *asked):
        self.n_asked += 1
        return await super().score(*asked)


@sgc.function
def answer(s, q: str):
    s += sgc.user(q) + sgc.assistant_begin()
    s += sgc.gen("greedy", temperature=0) + sgc.gen("own", seed=5) + sgc.gen("drawn")
    s += sgc.select("v", ["a", "b"]) + sgc.gen("many", n=2, seed=6)


N_REQUESTS = 3 + 1 + 2


def ask(folder, backend=None, interpret=False, **options):
    """A run, and how much was asked."""
    backend = backend or Counting()
    endpoint = sgc.cached(Endpoint(backend), folder)
    with endpoint:
        program = answer if interpret else answer.compile(check=False)
        how = sgc.runs.options.make_options(options)
        result = program.run_once({"q": "Q"}, how, endpoint)
    return result, backend.n_asked


@pytest.mark.parametrize("interpret", [False, True])
def test_what_draws_nothing_is_asked_once(tmp_path, interpret):
    first, n_first = ask(tmp_path, interpret=interpret)
    second, n_second = ask(tmp_path, interpret=not interpret)
    # Another draw gives another prompt to what follows, a choice and two generations.
    assert (n_first, n_second) == (N_REQUESTS, 1 + 1 + 2)
    assert second["greedy"] == first["greedy"]
    stats = second.stats
    assert (stats.requests, stats.cached_requests) == (N_REQUESTS, 2)
    assert (stats.prompt_tokens, stats.cost_usd) == (3 * 10, 3 * 0.5)
    kept = [request for request in second.requests if request.usage.from_cache]
    assert [request.name for request in kept] == ["greedy", "own"]
    assert kept[0].usage == Usage(
        prompt_tokens=10, computed_tokens=10, cost_usd=0.0, from_cache=True
    )
    assert second.get_meta_info("greedy")["prompt_tokens"] == 10


def test_with_a_seed_of_the_run_all_of_it_is_kept(tmp_path):
    first, n_first = ask(tmp_path, seed=3)
    second, n_second = ask(tmp_path, seed=3)
    assert (n_first, n_second) == (N_REQUESTS, 0)
    assert second.text() == first.text()
    assert second["many"] == first["many"]
    assert (second.stats.cached_requests, second.stats.cost_usd) == (N_REQUESTS, None)
    assert second.stats.prompt_tokens == 0
    assert ask(tmp_path, seed=4)[1] == 4


def test_text_from_the_cache_is_shown(tmp_path):
    shown = []
    for _ in range(2):
        shown.append([])
        with sgc.cached(Endpoint(Counting()), tmp_path) as endpoint:
            on_text = lambda node, path, text, to=shown[-1]: to.append(text)  # noqa: E731
            answer.compile(check=False).run("Q", seed=3, backend=endpoint, on_text=on_text)
    assert shown[0] == shown[1]


def test_whose_reply_it_is_counts(tmp_path):
    ask(tmp_path, seed=3)
    assert ask(tmp_path, Counting("another"), seed=3)[1] == N_REQUESTS
    elsewhere = Counting()
    elsewhere.scope = "elsewhere"
    assert ask(tmp_path, elsewhere, seed=3)[1] == N_REQUESTS


def test_errors_are_not_kept(tmp_path):
    with pytest.raises(BackendError):
        ask(tmp_path, Counting(fails=True), seed=3)
    assert ask(tmp_path, seed=3)[1] == N_REQUESTS


PICTURES = [media(b"GIF89a" + bytes(n)) for n in (1, 2)]
RUN = TextRun("user: hi")
SAMPLING = Sampling(max_tokens=4, temperature=0.0)
DIFFERENT = {
    "text": (TextRun("user: ho"),),
    "roles": (replace(RUN, roles=(RoleMark(0, 6, "user", True),)),),
    "another role": (replace(RUN, roles=(RoleMark(0, 6, "tool", True),)),),
    "an end": (replace(RUN, roles=(RoleMark(0, 6, "user", False),)),),
    "plain text": (replace(RUN, literal=((0, 2),)),),
    "tokens": (TokenRun((1, 2), "user: hi"),),
    "other tokens": (TokenRun((3,), "user: hi"),),
    "two texts": (TextRun("user:"), TextRun(" hi")),
    "an image": (RUN, sgc.runtime.executor.interface.backend.MediaRun(PICTURES[0], "")),
    "another image": (RUN, sgc.runtime.executor.interface.backend.MediaRun(PICTURES[1], "")),
}


def test_requests_have_one_key_each():
    keys = {generation_key(prompt, SAMPLING) for prompt in [(RUN,), *DIFFERENT.values()]}
    values = {
        "max_tokens": 5, "min_tokens": 1, "temperature": 0.5, "top_p": 0.5, "top_k": 3,
        "min_p": 0.1, "frequency_penalty": 0.1, "presence_penalty": 0.1, "ignore_eos": True,
        "repetition_penalty": 1.1, "stop": ("a",), "stop_token_ids": (1,), "stop_regex": ("a",),
        "regex": "a", "json_schema": "{}", "ebnf": "a", "logit_bias": ((1, 2.0),), "heal": True,
        "refused": ("a",),
        "logprobs": sgc.runtime.executor.interface.backend.LogprobsAsked(),
    }  # fmt: skip
    assert set(values) == set(Sampling.__slots__) - {"seed", "own_seed", "is_repeatable"}
    keys |= {generation_key((RUN,), replace(SAMPLING, **{n: v})) for n, v in values.items()}
    keys |= {generation_key((RUN,), replace(SAMPLING, temperature=0.5, seed=7))}
    scores = [(("a",), False), (("a",), True), (("a", "b"), False), (("ab",), False)]
    keys |= {score_key((RUN,), *score) for score in scores}
    assert len(keys) == 1 + len(DIFFERENT) + len(values) + 1 + len(scores)
    marked = replace(RUN, cache_marks=(3,))
    assert generation_key((marked,), replace(SAMPLING, seed=9, is_repeatable=True)) in keys


# -- the file -----------------------------------------------------------------------------


def in_loop(work):
    return asyncio.run(work())


def test_only_its_owner_reads_it(tmp_path):
    ask(tmp_path / "new" / "cache", seed=3)
    store = ResultStore(tmp_path / "new" / "cache")
    in_loop(lambda: store.put("k", {"a": 1}))
    for path in (tmp_path / "new" / "cache").iterdir():  # the journal too
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new" / "cache").stat().st_mode) == 0o700
    store.close()
    store.close()
    assert in_loop(lambda: store.get("k")) is None


def test_the_least_recently_used_go_first(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("sgc.runtime.executor.keep.result_store.time.time", lambda: clock[0])
    store = ResultStore(tmp_path, MIN_BYTES)
    text = "".join(random.Random(1).choices("abcdef", k=10_000))

    async def fill():
        for n in range(300):
            clock[0] += 100
            await store.put(f"k{n}", {"n": n, "text": text})
            assert await store.get("k0") == {"n": 0, "text": text}  # used again and again
        await store.put("huge", {"text": text * 20})
        found = [n for n in range(300) if await store.get(f"k{n}") is not None]
        assert await store.get("huge") is None
        return found

    found = in_loop(fill)
    store.close()
    assert found[0] == 0
    assert found[1:] == list(range(301 - len(found), 300))
    assert 40 < len(found) < 105
    assert (tmp_path / FILE).stat().st_size < 2 * MIN_BYTES


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"x" * 90])
def test_a_file_that_is_no_cache_is_left_alone(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(CacheError, match="only the cache is lost"):
        ResultStore(tmp_path)
    assert (tmp_path / FILE).read_bytes() == content


def test_databases_of_others_and_newer_ones_are_refused(tmp_path):
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("CREATE TABLE theirs (a)")
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(CacheError, match="another program's"):
        ResultStore(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before
    (tmp_path / FILE).unlink()
    ResultStore(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as newer:
        newer.execute("PRAGMA user_version = 99")
    with pytest.raises(CacheError, match="version 99"):
        ResultStore(tmp_path)


def test_folders_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match="--no-cache"):
        ResultStore(tmp_path / "file")
    with pytest.raises(UsageError, match="bytes or more"):
        ResultStore(tmp_path, 10)


def test_a_damaged_reply_is_asked_for_again(tmp_path):
    ask(tmp_path, seed=3)
    with sqlite3.connect(tmp_path / FILE) as database:
        rows = database.execute("SELECT key, reply FROM replies").fetchall()
        changes = [lambda t: t.replace("r", "q"), lambda t: t[:-1], lambda t: "[1]", lambda t: ""]
        for n, (key, reply) in enumerate(rows):
            values = (changes[n % 4](reply), key)
            database.execute("UPDATE replies SET reply = ? WHERE key = ?", values)
    result, n_asked = ask(tmp_path, seed=3)
    assert n_asked == N_REQUESTS
    assert "q" not in result["greedy"]
    assert ask(tmp_path, seed=3)[1] == 0


def test_a_reply_of_another_shape_is_asked_for_again(tmp_path):
    class Old(ResultStore):
        async def get(self, key):
            return {"usage": {"no_such_field": 1}, "text": "x"}

    async def work():
        backend = Counting()
        store = Old(tmp_path)
        cache = ResultCache(backend, store)
        assert (await cache.generate((RUN,), SAMPLING)).text == " r0"
        assert (await cache.score((RUN,), ("a",))).choices
        await cache.close()
        return backend.n_asked

    assert asyncio.run(work()) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:5000],
        lambda data: data[:4096] + os.urandom(len(data) - 4096),
        lambda data: data[:100] + bytes(len(data) - 100),
    ],
)
def test_damage_while_it_is_used_ends_the_caching_and_not_the_run(tmp_path, damage):
    for seed in range(40):
        ask(tmp_path, seed=seed)
    path = tmp_path / FILE
    path.write_bytes(damage(path.read_bytes()))
    try:
        store = ResultStore(tmp_path)
    except CacheError:
        return  # found at once: a clear error, before anything is asked
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        backend = Counting()
        endpoint = Endpoint(ResultCache(backend, store))
        for seed in range(40):
            result = answer.run(q="Q", seed=seed, backend=endpoint)
            assert result["greedy"].startswith(" r")
        endpoint.shutdown()
    assert len([each for each in told if each.category is SgcWarning]) <= 2


def test_a_full_disk_is_told_once_and_what_is_there_is_read(tmp_path):
    ask(tmp_path, seed=3)
    store = ResultStore(tmp_path)
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count = {pages}")

    async def work():
        for n in range(50):
            await store.put(f"k{n}", {"text": "x" * 3000})

    with pytest.warns(
        SgcWarning, match="is not written any more: database or disk is full"
    ) as all_:
        in_loop(work)
    assert len(all_) == 1
    backend = Counting()
    endpoint = Endpoint(ResultCache(backend, store))
    assert answer.run(q="Q", seed=3, backend=endpoint).text()
    assert backend.n_asked == 0
    assert answer.run(q="new", seed=3, backend=endpoint).text()
    endpoint.shutdown()


def test_extra_that_is_no_json_is_not_kept(tmp_path):
    store = ResultStore(tmp_path)

    async def work():
        for wrong in (float("nan"), object(), {1, 2}):
            await store.put("k", {"extra": wrong})
        return await store.get("k")

    assert in_loop(work) is None
    store.close()


# -- many at once -------------------------------------------------------------------------

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


@pytest.mark.parametrize("n_rows", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_rows(tmp_path, n_rows):
    n_texts = n_rows * 3 // 10

    @sgc.function
    def one(s, q: str):
        s += q + sgc.gen("t", temperature=0, max_tokens=4)

    program = one.compile()
    rows = [{"q": f"question {n % n_texts}"} for n in range(n_rows)]
    for n_asked in (n_texts, 0):
        backend = Counting()
        with sgc.cached(Endpoint(backend), tmp_path) as endpoint:
            states = program.run_batch(rows, backend=endpoint, max_concurrency=10_000)
            stats = [state.result().stats for state in states]
        assert backend.n_asked == n_asked
        assert sum(each.shared_requests for each in stats) == n_rows - n_texts
        assert sum(each.cached_requests for each in stats) == n_texts - n_asked


# -- the command --------------------------------------------------------------------------

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
