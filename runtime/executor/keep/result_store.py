"""Replies of deterministic requests on disk: a SQLite file that several processes may use at once.

The result cache (`result_cache.py`) makes the keys and replies; this file knows only their age and
size. All work happens on one thread, never on the event loop. A fault of the file is an error when
it is opened; later it only ends the caching, with one warning. A process that is killed loses at
most the reply that it was writing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from sgc.errors import CacheError, SgcWarning, UsageError
from sgc.runtime.executor.interface.log import Json

FILE = "results.sqlite3"
SCHEMA_VERSION = 1
APPLICATION_ID = 0x73676372
MAX_BYTES = 1024**3
MIN_BYTES = 1024**2
MAX_SHARE = 8  # one reply takes at most 1 / MAX_SHARE of the store
BUSY_S = 10.0
USED_EVERY_S = 60.0  # the last use of a reply is written at most this often
EVICTED_AT_ONCE = 32

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS replies (
    key TEXT NOT NULL UNIQUE, used_s REAL NOT NULL, digest TEXT NOT NULL, reply TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS replies_used ON replies (used_s);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""

# Errors of a damaged file; UnicodeDecodeError comes from messages that quote bytes of it.
_DAMAGE = (sqlite3.Error, UnicodeDecodeError)
_OURS = {("table", "replies"), ("index", "replies_used"), ("index", "sqlite_autoindex_replies_1")}
T = TypeVar("T")


class ResultStore:
    """An open file of replies; when it is too large, the least recently used ones are dropped.

    Raises CacheError for a folder or a file that cannot be used, UsageError for too little room.
    """

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> None:
        if max_bytes < MIN_BYTES:
            raise UsageError(f"a result cache needs {MIN_BYTES} bytes or more, found {max_bytes}")
        self.path = Path(folder) / FILE
        self._max_bytes = max_bytes
        self._database = _open(self.path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sgc-cache")
        self._off = {"read": False, "written": False}
        self._lock = threading.Lock()
        self._is_closed = False

    async def get(self, key: str) -> Json | None:
        """Returns the reply under a key; None if there is none, or it is damaged."""
        return await self._do("read", lambda: self._get(key))

    async def put(self, key: str, reply: Json) -> None:
        """Keeps a reply; one that is too large is left out."""
        await self._do("written", lambda: self._put(key, reply))

    def close(self) -> None:
        """Waits for pending work; closing it again does nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._thread.submit(self._database.close)
        self._thread.shutdown(wait=True)

    async def _do(self, what: str, work: Callable[[], T]) -> T | None:
        if self._off[what] or self._is_closed:
            return None
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except _DAMAGE as error:
            if not self._off[what]:
                self._off[what] = True
                message = f"the result cache {self.path} is not {what} any more: {error}"
                warnings.warn(message, SgcWarning, stacklevel=2)
            return None

    # -- on the thread --------------------------------------------------------------------

    def _get(self, key: str) -> Json | None:
        query = "SELECT used_s, digest, reply FROM replies WHERE key = ?"
        row = self._database.execute(query, (key,)).fetchone()
        if row is None:
            return None
        used_s, digest, text = row
        is_whole = isinstance(used_s, float) and digest == _digest(key, text)
        reply = _parsed(text) if is_whole else None
        if reply is None:
            self._mark("DELETE FROM replies WHERE key = ?", (key,))
        elif abs(time.time() - used_s) > USED_EVERY_S:
            self._mark("UPDATE replies SET used_s = ? WHERE key = ?", (time.time(), key))
        return reply

    def _mark(self, statement: str, values: tuple[object, ...]) -> None:
        """Writes if possible: a full disk must not prevent reading."""
        if not self._off["written"]:
            try:
                self._database.execute(statement, values)
            except (sqlite3.OperationalError, UnicodeDecodeError):
                return  # the next `put` reports it

    def _put(self, key: str, reply: Json) -> None:
        try:
            text = json.dumps(reply, allow_nan=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):
            return  # `extra` of a reply may not be JSON
        if len(text) > self._max_bytes // MAX_SHARE:
            return
        values = (key, time.time(), _digest(key, text), text)
        self._database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", values)
        while self._n_bytes() > self._max_bytes and self._evict():
            pass

    def _n_bytes(self) -> int:
        """Returns the used part of the file in bytes; free pages are reused before it grows."""
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (
            self._database.execute(f"PRAGMA {name}").fetchone()[0] for name in names
        )
        return int((pages - free) * size)

    def _evict(self) -> int:
        """Drops some of the least recently used replies; returns how many."""
        oldest = f"SELECT rowid FROM replies ORDER BY used_s LIMIT {EVICTED_AT_ONCE}"
        return self._database.execute(f"DELETE FROM replies WHERE rowid IN ({oldest})").rowcount


def _open(path: Path) -> sqlite3.Connection:
    """Opens our file, or makes it, for its owner only."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600))
    except OSError as error:
        raise CacheError(
            f"cannot use {path.parent} as a result cache: {error.strerror}",
            hint="name another folder with --cache-dir, or run with --no-cache",
        ) from error
    # One thread uses it, though another opens it. Every statement is a transaction.
    database = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        _prepare_when_free(database, path)
    except BaseException as error:
        database.close()
        if _is_busy(error):
            raise CacheError(
                f"{path} cannot be used as a result cache: it has been locked for {BUSY_S:g} s",
                hint="end the process that holds it, or name another folder",
            ) from error
        if isinstance(error, _DAMAGE):
            raise _unusable(path, f"it is damaged, or not such a file ({error})") from error
        raise
    return database


def _prepare_when_free(database: sqlite3.Connection, path: Path) -> None:
    """Retries while the file is locked: SQLite does not wait for a change of the journal mode."""
    end_s = time.monotonic() + BUSY_S
    while True:
        try:
            return _prepare(database, path)
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > end_s:
                raise
            time.sleep(0.02)


def _is_busy(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", 0)  # errors of the Python module have none
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    database.execute("PRAGMA trusted_schema = OFF")
    if not _is_ours(database):
        n_tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if n_tables or _pragma(database, "user_version"):
            version = _pragma(database, "user_version")
            is_other = _pragma(database, "application_id") == APPLICATION_ID
            what = f"of version {version} of its format" if is_other else "another program's"
            raise _unusable(path, f"it is {what}")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")  # a crash of the machine loses the last ones
    database.execute("PRAGMA journal_size_limit = 4194304")
    if not _is_ours(database):
        database.executescript(_SCHEMA)
    if set(database.execute("SELECT type, name FROM sqlite_master")) != _OURS:
        raise _unusable(path, "its tables are not those of a result cache")
    database.execute("SELECT key, used_s, digest, reply FROM replies LIMIT 1").fetchone()


def _is_ours(database: sqlite3.Connection) -> bool:
    try:
        names = ("application_id", "user_version")
        return [_pragma(database, name) for name in names] == [APPLICATION_ID, SCHEMA_VERSION]
    except _DAMAGE:
        return False


def _pragma(database: sqlite3.Connection, name: str) -> int:
    with closing(database.execute(f"PRAGMA {name}")) as found:
        return int(found.fetchone()[0])


def _unusable(path: Path, why: str) -> CacheError:
    return CacheError(
        f"{path} cannot be used as a result cache: {why}",
        hint="delete it (only the cache is lost), or name another folder",
    )


def _digest(key: str, text: str) -> str:
    """Returns the checksum of a reply."""
    return hashlib.blake2b(f"{key}\n{text}".encode(), digest_size=16).hexdigest()


def _parsed(text: str) -> Json | None:
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) else None
