"""Whatever is wrong with the cache's file: an error that names it, a miss, or one warning."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import warnings
from collections import Counter

import pytest

from sgc.errors import CacheError
from sgc.runtime.executor.keep import result_store
from sgc.runtime.executor.keep.result_store import FILE, ResultStore

KEYS = [f"key {n}" * 4 for n in range(40)]


def reply_of(n):
    return {"text": "x" * 50 * n, "n": n}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a cache with some replies."""
    folder = tmp_path_factory.mktemp("whole")

    async def fill():
        store = ResultStore(folder)
        for n, key in enumerate(KEYS):
            await store.put(key, reply_of(n))
        store.close()

    asyncio.run(fill())
    return (folder / FILE).read_bytes()


async def use(folder):
    """Everything that can be done with a cache; what it gives is right or nothing."""
    store = ResultStore(folder)
    try:
        for n in range(0, len(KEYS), 7):
            assert await store.get(KEYS[n]) in (None, reply_of(n))
        await store.put("new", {"a": 1})
        assert await store.get("new") in (None, {"a": 1})
    finally:
        store.close()


def damaged(whole, draw):
    """Cut, garbled in a few places or in a stretch, in the header, the schema or anywhere."""
    data = bytearray(whole)
    kind = draw.choice(["cut", "anywhere", "stretch", "header", "schema", "text"])
    if kind == "cut":
        return bytes(data[: draw.randrange(len(data))])
    if kind == "stretch":
        start = draw.randrange(len(data))
        end = min(len(data), start + draw.choice([4, 100, 4096]))
        data[start:end] = draw.randbytes(end - start)
    elif kind == "text":
        start = data.find(b"key") if draw.random() < 0.5 else draw.randrange(4096)
        data[start : start + 21] = b"\xff\xfe\x80" * 7
    else:
        low, high = {"anywhere": (0, len(data)), "header": (0, 200), "schema": (3500, 4096)}[kind]
        for _ in range(draw.randrange(1, 6)):
            data[draw.randrange(low, high)] = draw.randrange(256)
    return bytes(data)


@pytest.mark.parametrize(
    ("seed", "n"), [(1, 120), pytest.param(2, 3000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_damage_is_an_error_that_names_the_file_or_a_miss(tmp_path, whole, seed, n, monkeypatch):
    monkeypatch.setattr(result_store, "BUSY_S", 0.0)
    draw, found = random.Random(seed), Counter()
    for i in range(n):
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / FILE).write_bytes(damaged(whole, draw))
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                asyncio.run(use(folder))
            assert all(str(folder / FILE) in str(each.message) for each in told)
            found["used"] += 1
        except CacheError as error:
            said = [error.message, error.hint]
            found["refused" if str(folder / FILE) in said[0] and said[1] else "unclear"] += 1
    assert not found["unclear"]
    assert found["used"] > n // 10
    assert found["refused"] > n // 10


@pytest.mark.parametrize("at", range(0, 30, 3))
def test_a_schema_that_is_no_text_is_damage(tmp_path, whole, at):
    """SQLite quotes it in its error, which Python then cannot read."""
    data = bytearray(whole)
    start = data.find(b"CREATE TABLE") + at
    data[start : start + 2] = b"\xff\xfe"
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(CacheError, match=r"results\.sqlite3 cannot be used"):
        ResultStore(tmp_path)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER more AFTER INSERT ON replies BEGIN DELETE FROM replies; END",
        "CREATE TABLE more (a)",
        "DROP TABLE replies",
        "ALTER TABLE replies RENAME COLUMN digest TO other",
        "DROP INDEX replies_used",
    ],
)
def test_another_schema_is_refused(tmp_path, whole, statement):
    (tmp_path / FILE).write_bytes(whole)
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute(statement)
    database.close()
    with pytest.raises(CacheError, match="delete it"):
        ResultStore(tmp_path)


def test_a_file_that_stays_locked_is_no_damaged_one(tmp_path, monkeypatch):
    monkeypatch.setattr(result_store, "BUSY_S", 0.05)
    ResultStore(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE, isolation_level=None) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CacheError, match="has been locked") as caught:
            ResultStore(tmp_path)
        assert "delete" not in str(caught.value.hint)
        other.execute("COMMIT")
    other.close()
    ResultStore(tmp_path).close()


@pytest.mark.parametrize(
    "change",
    ["reply = CAST(reply AS BLOB)", "reply = x'fffe'", "used_s = 'x'", "digest = 7", "reply = 7"],
)
def test_a_row_of_other_types_is_a_miss(tmp_path, whole, change):
    (tmp_path / FILE).write_bytes(whole)
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute(f"UPDATE replies SET {change}")
    database.close()

    async def work():
        store = ResultStore(tmp_path)
        assert await store.get(KEYS[3]) is None
        await store.put(KEYS[3], {"a": 1})
        assert await store.get(KEYS[3]) == {"a": 1}
        store.close()

    asyncio.run(work())
