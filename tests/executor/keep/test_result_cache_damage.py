"""Files of the result cache that are damaged, of others, or on a full disk."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import warnings

import pytest
from executor.keep.cached import N_REQUESTS, RUN, SAMPLING, Counting, answer, ask, in_loop

from sgc.errors import CacheError, SgcWarning, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.keep.result_cache import ResultCache
from sgc.runtime.executor.keep.result_store import FILE, ResultStore


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


@pytest.mark.sweep
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
