"""Answers with a disk are those without a cache, whatever is evicted, loaded, damaged or lost, in
pools of a tenth of the working set. Pages are poisoned when they are freed."""

from __future__ import annotations

import hashlib
import os

import numpy as np
import pytest
from engine.core.conftest import VOCAB, drive, make_core
from engine.core.disk.disk_play import AMPLE_BYTES, DiskEngine
from tests_support import one_in

from sgc.runtime.engine.disk import tier
from sgc.runtime.engine.disk.chunk_file import ChunkFile
from sgc.runtime.engine.disk.folder import KVFolder
from sgc.runtime.engine.disk.keys import CHUNK_TOKENS
from sgc.runtime.engine.model.fake_model import FakeModel
from sgc.runtime.engine.names import POLICIES
from sgc.runtime.engine.requests.request import (
    Commit,
    EngineRequest,
    Generate,
    Prefetch,
    SamplingParams,
    Score,
)
from sgc.runtime.engine.scheduling.loads import Loads

SPACES = (b"", b"", b"one")
POOL = 1024


class Prompts:
    """Prompts along trees of several levels, whose branches are of any length. Some have a run in
    common that comes at the beginning of a chunk, after what differs."""

    def __init__(self, rng: np.random.Generator, n_trunks: int) -> None:
        self._rng = rng
        self._known = [self._run(150, 400) for _ in range(n_trunks)]
        self._common = self._run(130, 131)

    def draw(self) -> np.ndarray:
        known = self._known[self._rng.integers(len(self._known))]
        cut = known[: self._rng.integers(60, len(known) + 1)]
        if self._rng.random() < 0.2:
            cut = np.concatenate([cut[: len(cut) // CHUNK_TOKENS * CHUNK_TOKENS], self._common])
        prompt = np.concatenate([cut, self._run(0, 90)])[:600]
        if self._rng.random() < 0.3:
            self._known[self._rng.integers(len(self._known))] = prompt
        return prompt

    def _run(self, low: int, high: int) -> np.ndarray:
        return self._rng.integers(3, VOCAB, self._rng.integers(low, high))


def requests(rng: np.random.Generator, n: int) -> list[EngineRequest]:
    prompts = Prompts(rng, 24)
    return [_request(rng, id, prompts.draw()) for id in range(n)]


def _request(rng: np.random.Generator, id: int, tokens: np.ndarray) -> EngineRequest:
    kind = Generate(int(rng.integers(0, 6)), SamplingParams(float(rng.integers(0, 2)), seed=id))
    draw = rng.random()
    if draw < 0.1:
        kind = Score(((5, 6, 7), (5, 8)))
    elif draw < 0.15:
        kind = Commit()
    elif draw < 0.2:
        kind = Prefetch()
    reusable = int(rng.integers(0, len(tokens) + 1)) if rng.random() < 0.2 else None
    return EngineRequest(id, tokens, kind, SPACES[id % len(SPACES)], reusable)


class Shaky(KVFolder):
    """Now and then a file is damaged, cut, or gone, or the disk has an error."""

    rng = np.random.default_rng(7)

    def read(self, key, n_bytes):
        path, draw = self._path(key), self.rng.random()
        if draw < 0.03:
            raise OSError(5, "Input/output error")
        if draw < 0.06 and path.exists():
            os.truncate(path, int(self.rng.integers(0, n_bytes)))
        elif draw < 0.16 and path.exists():
            content = bytearray(path.read_bytes())
            content[self.rng.integers(0, len(content))] ^= 1 << int(self.rng.integers(0, 8))
            path.write_bytes(content)
        elif draw < 0.19:
            path.unlink(missing_ok=True)
        return super().read(key, n_bytes)


class Filling(KVFolder):
    """The disk is full after some files."""

    def write(self, key, content):
        if len(self._files) >= 40:
            raise OSError(28, "No space left on device")
        super().write(key, content)


def without_cache(asked: list[EngineRequest]) -> dict[int, tuple]:
    """Each on an engine of its own."""
    answers = {}
    for request in asked:
        core = make_core(pool=POOL)
        answers[request.id] = drive(core, [request])[request.id].answer
    return answers


def check(tmp_path, seed: int, n: int, folder: type[KVFolder], max_bytes: int) -> DiskEngine:
    rng = np.random.default_rng(seed)
    asked = requests(rng, n)
    right = without_cache(asked)
    # Two engines on one folder, one after the other half of each.
    for part in range(2):
        engine = DiskEngine(
            tmp_path / "kv", POOL, max_bytes, folder=folder, policy=POLICIES[seed % len(POLICIES)],
            chunk_tokens=int(rng.choice([16, 64, 512])), max_running=int(rng.choice([2, 8, 256])),
        )  # fmt: skip
        half = asked[part * n // 2 : (part + 1) * n // 2]
        done = engine.run(half, per_step=int(rng.integers(1, 4)))
        for request in half:
            got, wanted = done[request.id].answer, right[request.id]
            assert got[:-1] == wanted[:-1], f"request {request.id}"
            assert len(got[-1]) == len(wanted[-1])
            for one, other in zip(got[-1], wanted[-1], strict=True):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
        engine.core.close()
        engine.core.flush_cache()
        engine.core.check()
        assert engine.core.stats().free_tokens == POOL
    return engine


def check_seeds(tmp_path, seeds: range, case: str) -> None:
    for seed in seeds:
        check(tmp_path / str(seed), seed, 120, *CASES[case])


CASES = {
    "a sound disk": (KVFolder, AMPLE_BYTES),
    "a damaged one": (Shaky, AMPLE_BYTES),
    "a small one": (KVFolder, 30_000),
    "a full one": (Filling, AMPLE_BYTES),
}


def _wrong_keys(root, tokens):
    """Of each chunk alone, wherever it comes."""
    for end in range(CHUNK_TOKENS, len(tokens) + 1, CHUNK_TOKENS):
        yield hashlib.sha256(root + tokens[end - CHUNK_TOKENS : end].tobytes()).digest()


def _unchecked(self, _, content):
    return np.frombuffer(content[len(self._header) + 64 :], np.uint8)


def _first_of(self, pages, data):
    self._prefix[pages] = data.view(np.uint64)[: len(pages)]


def _next_of(self, pages, chunk):
    return self.pages.read(pages[CHUNK_TOKENS * chunk + 1 :][:CHUNK_TOKENS])


def _freed_too(self, one, data):
    n_free = self._cache.pool.n_free
    is_in = _insert(self, one, data)
    self._cache.pool.n_free = n_free
    return is_in


def _anywhere(self, one, data):
    """Also where what it continues is gone."""
    one.at = min(one.at, self._cache.match(one.tokens, one.works[0].request.namespace).length)
    return _insert(self, one, data)


_insert = Loads._insert
BUGS = {
    "keys forget what comes before": (tier, "chunk_keys", _wrong_keys, "a sound disk"),
    "files are not checked": (ChunkFile, "read", _unchecked, "a damaged one"),
    "a part of a chunk is its beginning": (FakeModel, "write", _first_of, "a sound disk"),
    "a copy is one token late": (tier.DiskTier, "_copied", _next_of, "a sound disk"),
    "pages of a load are free, too": (Loads, "_insert", _freed_too, "a sound disk"),
    "a load goes on after a gap": (Loads, "_insert", _anywhere, "a sound disk"),
}


@pytest.mark.parametrize("bug", one_in(4, BUGS))
def test_bugs_are_found(tmp_path, monkeypatch, bug):
    """The test above is itself tested."""
    owner, name, wrong, case = BUGS[bug]
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError):
        check_seeds(tmp_path, range(4), case)


@pytest.mark.sweep
@pytest.mark.parametrize("case", CASES)
def test_answers_are_those_without_a_cache(tmp_path, case):
    engine = check(tmp_path, list(CASES).index(case), 120, *CASES[case])
    assert engine.stats.disk_loads > 0 or case == "a full one"
    assert engine.core.stats().evicted_tokens > 0
    assert (engine.stats.disk_damaged_files > 0) == (case == "a damaged one")


def test_answers_of_engines_that_share_a_folder_at_once(tmp_path):
    rng = np.random.default_rng(11)
    asked = requests(rng, 80)
    right = without_cache(asked)
    engines = [DiskEngine(tmp_path / "kv", POOL, max_bytes=60_000) for _ in range(2)]
    for request in asked:
        engines[rng.integers(2)].core.submit(request)
    ids: dict[int, tuple[int, ...]] = {request.id: () for request in asked}
    while any(engine.core.has_work for engine in engines):
        for engine in engines:
            engine.folder.refresh()
            for update in engine.core.step():
                ids[update.id] += update.new_ids
    assert ids == {id: answer[0] for id, answer in right.items()}
    assert sum(engine.stats.disk_loads for engine in engines) > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("case", CASES)
def test_answers_are_those_without_a_cache_at_length(tmp_path, case, seed):
    check(tmp_path, 4 + seed, 250, *CASES[case])
