"""What an engine keeps on disk comes back as it was, or not at all."""

from __future__ import annotations

import os
import stat
import threading
import time

import numpy as np
import pytest
from engine.core.conftest import VOCAB, Naive
from engine.core.disk.disk_play import DiskEngine
from safetensors.numpy import load_file
from waiting import until

from sgc.runtime.engine.disk.costs import Costs
from sgc.runtime.engine.disk.folder import KVFolder
from sgc.runtime.engine.requests.request import (
    Commit,
    EngineRequest,
    Generate,
    Prefetch,
    Score,
)
from sgc.runtime.engine.scheduling import loads

PROMPT = np.random.default_rng(3).integers(3, VOCAB, 300)
RIGHT = Naive().generate(PROMPT.tolist(), Generate(4))


def files(path):
    return sorted(path.glob("*.safetensors"))


@pytest.fixture
def kept(tmp_path):
    """A folder with the prompt's chunks: 4 of 64 tokens."""
    engine = DiskEngine(tmp_path / "kv")
    assert engine.ask(PROMPT)[0] == RIGHT
    engine.evict()
    return engine.folder.path


def test_what_is_evicted_comes_back(tmp_path):
    engine = DiskEngine(tmp_path / "kv")
    assert engine.ask(PROMPT)[1].cached_tokens == 0
    engine.evict()
    assert engine.core.stats().cached_pool_tokens == 0
    ids, usage = engine.ask(PROMPT)
    assert ids == RIGHT
    assert (usage.cached_tokens, usage.computed_tokens) == (256, 44)
    assert (engine.stats.disk_loads, engine.stats.disk_loaded_tokens) == (1, 256)
    assert engine.core.stats().free_tokens + engine.core.stats().evictable_tokens == 4096


def test_an_engine_starts_with_what_another_had_at_its_end(tmp_path):
    first = DiskEngine(tmp_path / "kv")
    first.ask(PROMPT)
    assert files(first.folder.path) == []  # it had room for all
    first.core.close()
    ids, usage = DiskEngine(tmp_path / "kv").ask(PROMPT)
    assert (ids, usage.cached_tokens) == (RIGHT, 256)


def test_a_part_of_a_chunk_may_be_cached(kept):
    engine = DiskEngine(kept)
    engine.ask(PROMPT[:100], n=0)  # loads 64 of these, computes 36
    ids, usage = engine.ask(PROMPT)
    assert (ids, usage.cached_tokens) == (RIGHT, 256)


def test_a_prompt_of_whole_chunks_computes_its_last_token(kept):
    ids, usage = DiskEngine(kept).ask(PROMPT[:256])
    assert ids == Naive().generate(PROMPT[:256].tolist(), Generate(4))
    assert (usage.cached_tokens, usage.computed_tokens) == (255, 1)


def test_a_commit_and_a_score_load_too(kept):
    commit = EngineRequest(1, PROMPT, Commit())
    score = EngineRequest(2, PROMPT, Score(((5, 6), (7,))))
    done = DiskEngine(kept).run([commit, score])
    assert done[1].last.usage.cached_tokens == 256
    expected = Naive().score(PROMPT.tolist(), score.kind)
    for got, wanted in zip(done[2].last.choices, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("other", ["salt", "model", "token"])
def test_nothing_is_found_under_another_salt_model_or_prompt(kept, other):
    engine = DiskEngine(kept, model=b"two" if other == "model" else b"one")
    tokens = PROMPT.copy()
    tokens[0] += other == "token"
    usage = engine.ask(tokens, salt=b"s" if other == "salt" else b"")[1]
    assert usage.cached_tokens == 0
    assert engine.stats.disk_loads == 0


def test_salts_have_files_of_their_own(tmp_path):
    engine = DiskEngine(tmp_path / "kv")
    for salt in (b"a", b"b"):
        engine.ask(PROMPT, salt=salt)
    engine.evict()
    assert len(files(engine.folder.path)) == 8
    assert engine.ask(PROMPT, salt=b"b")[1].cached_tokens == 256


def _flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def _beside(path):
    first, second = files(path.parent)[:2]
    return second if path == first else first


DAMAGE = {
    "a wrong byte": lambda path: _flip(path, -100),
    "a wrong header": lambda path: _flip(path, 12),
    "an endless header": lambda path: path.write_bytes(b"\xff" * path.stat().st_size),
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: path.write_bytes(b""),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "another's": lambda path: path.write_bytes(_beside(path).read_bytes()),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_a_miss_and_is_removed(kept, damage):
    everything = files(kept)
    for path in everything:
        DAMAGE[damage](path)
    engine = DiskEngine(kept)
    assert engine.ask(PROMPT)[0] == RIGHT
    assert engine.stats.disk_loaded_tokens == 0
    assert engine.stats.disk_damaged_files == 1  # what follows it is of no use
    assert len(files(kept)) == len(everything) - 1
    engine.core.close()  # and it is written anew
    assert DiskEngine(kept).ask(PROMPT)[1].cached_tokens >= 64


def test_a_file_that_is_gone_is_a_miss(kept):
    engine = DiskEngine(kept)
    for path in files(kept)[1:]:
        path.unlink()
    assert engine.ask(PROMPT)[0] == RIGHT
    assert engine.stats.disk_damaged_files == 0


class Failing(KVFolder):
    def write(self, key, content):
        raise OSError(28, "No space left on device")


class Unreadable(KVFolder):
    def read(self, key, n_bytes):
        raise OSError(5, "Input/output error")


def test_a_full_disk_turns_writing_off_with_one_warning(tmp_path, caplog):
    engine = DiskEngine(tmp_path / "kv", folder=Failing)
    for first in range(3):
        engine.ask([*PROMPT, first])
        engine.evict()
        assert engine.ask(PROMPT)[0] == RIGHT
    engine.core.close()
    assert [r.getMessage() for r in caplog.records] == [
        f"K and V are no longer written to {engine.folder.path}: No space left on device"
    ]
    assert engine.stats.disk_dropped_chunks == 4
    assert files(engine.folder.path) == []


def test_a_disk_that_cannot_be_read_is_a_miss(kept):
    engine = DiskEngine(kept, folder=Unreadable)
    assert engine.ask(PROMPT)[0] == RIGHT
    assert engine.stats.disk_damaged_files == 1


def test_the_folder_is_bounded_and_forgets_what_was_used_longest_ago(tmp_path):
    prompts = [np.random.default_rng(i).integers(3, VOCAB, 140) for i in range(12)]
    engine = DiskEngine(tmp_path / "kv")
    engine.ask(prompts[0])
    engine.evict()
    size = files(engine.folder.path)[0].stat().st_size
    engine = DiskEngine(tmp_path / "kv", max_bytes=10 * size)
    for prompt in prompts[1:]:
        engine.ask(prompts[0], n=0)
        engine.core.flush_cache()
        engine.ask(prompt, n=0)
        engine.evict()
        assert sum(path.stat().st_size for path in files(engine.folder.path)) <= 10 * size
    engine.core.flush_cache()
    assert engine.ask(prompts[0])[1].cached_tokens == 128
    assert engine.ask(prompts[1])[1].cached_tokens == 0
    assert engine.ask(prompts[-1])[1].cached_tokens == 128


def test_a_bound_below_one_file_keeps_nothing(tmp_path):
    engine = DiskEngine(tmp_path / "kv", max_bytes=100)
    engine.ask(PROMPT)
    engine.evict()
    assert engine.ask(PROMPT)[0] == RIGHT
    assert files(engine.folder.path) == []


def test_two_engines_share_a_folder(tmp_path):
    one, two = DiskEngine(tmp_path / "kv"), DiskEngine(tmp_path / "kv")
    one.ask(PROMPT)
    one.evict()
    assert two.ask(PROMPT[:200])[1].cached_tokens == 0  # it has not looked since
    two.core.flush_cache()
    two.folder.refresh()
    assert two.ask(PROMPT)[1].cached_tokens == 256
    one.folder.remove(next(iter(one.folder._files)))
    two.core.flush_cache()
    assert two.ask(PROMPT)[0] == RIGHT


def test_files_are_for_their_owner_alone(kept):
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files(kept)} == {0o600}


def test_what_no_later_request_needs_is_not_kept(tmp_path):
    engine = DiskEngine(tmp_path / "kv")
    engine.run([EngineRequest(1, PROMPT, Generate(4), n_reusable=128)])
    engine.evict()
    assert len(files(engine.folder.path)) == 2


def test_a_flush_keeps_nothing(tmp_path):
    engine = DiskEngine(tmp_path / "kv")
    engine.ask(PROMPT)
    engine.core.flush_cache()
    assert files(engine.folder.path) == []


def test_requests_that_need_the_same_chunks_load_them_once(kept):
    engine = DiskEngine(kept)
    asked = [EngineRequest(i, np.append(PROMPT, i), Generate(2)) for i in range(5)]
    done = engine.run(asked)
    assert [done[i].last.usage.cached_tokens for i in range(5)] == [256, 300, 300, 300, 300]
    assert (engine.stats.disk_loads, engine.stats.disk_loaded_tokens) == (1, 256)


def test_others_run_while_a_prefix_is_read(kept, monkeypatch):
    engine = DiskEngine(kept)
    read = engine.folder.read
    monkeypatch.setattr(engine.folder, "read", lambda *of: (time.sleep(0.05), read(*of))[1])
    other = EngineRequest(2, np.arange(3, 40), Generate(8))
    engine.core.submit(EngineRequest(1, PROMPT, Generate(4)))
    engine.core.submit(other)
    ended = []
    while engine.core.has_work:
        ended += [update.id for update in engine.core.step() if update.final]
    assert ended == [2, 1]
    assert engine.stats.disk_loads == 1


def test_a_request_that_is_cancelled_while_it_loads_is_forgotten(kept):
    engine = DiskEngine(kept)
    engine.core.submit(EngineRequest(1, PROMPT, Generate(4)))
    engine.core.step()
    assert engine.core.stats().parked_requests == 1
    engine.core.cancel(1)
    assert engine.core.step() == []
    assert not engine.core.has_work
    assert engine.core.scheduler.loads is not None
    assert len(engine.core.scheduler.loads) == 0
    assert engine.ask(PROMPT)[0] == RIGHT


def test_a_reset_while_a_prefix_is_read_leaves_it(kept):
    engine = DiskEngine(kept)
    engine.core.submit(EngineRequest(1, PROMPT, Generate(4)))
    engine.core.step()
    engine.core.reset("a fault")
    assert [update.error.message for update in engine.core.step()] == ["a fault"]
    assert engine.ask(PROMPT)[0] == RIGHT


def test_a_prefetch_loads(kept):
    engine = DiskEngine(kept)
    update = engine.run([EngineRequest(1, PROMPT, Prefetch())])[1].last
    assert (update.usage.cached_tokens, update.usage.computed_tokens) == (256, 44)
    assert engine.core.stats().prefetched_tokens == 44
    assert engine.ask(PROMPT)[1].cached_tokens == 299


def test_loading_is_left_where_computing_was_quicker(kept):
    class Quick(Costs):
        def __init__(self, *of):
            super().__init__(*of)
            self.steps.note(512, 1e-6)
            self.loads.note(256, 1.0)

    engine = DiskEngine(kept, costs=Quick)
    ids, usage = engine.ask(PROMPT)
    assert (ids, usage.cached_tokens, engine.stats.disk_loads) == (RIGHT, 0, 0)


def test_costs_are_those_measured_for_the_length():
    costs = Costs(512, 100)
    assert costs.is_worth_loading(64, 70, 6)  # nothing is known
    for n, seconds in ((4, 0.04), (70, 0.05), (512, 0.4)):
        costs.steps.note(n, seconds)
    costs.loads.note(64, 0.02)
    assert not costs.is_worth_loading(64, 70, 6)  # a step less of 64 positions saves 10 ms
    costs.loads.note(4096, 0.3)
    assert costs.is_worth_loading(4096, 4100, 4)
    for _ in range(200):  # in the end it is tried again
        if costs.is_worth_loading(64, 70, 6):
            return
    raise AssertionError("what was slow once is never loaded again")


def test_pages_in_the_writers_queue_are_found(tmp_path, monkeypatch):
    engine = DiskEngine(tmp_path / "kv")
    write = engine.folder.write
    monkeypatch.setattr(engine.folder, "write", lambda *of: (time.sleep(0.1), write(*of)))
    engine.ask(PROMPT)
    cache = engine.core.cache
    cache.release(cache.reserve(cache.n_available))
    assert engine.ask(PROMPT)[0] == RIGHT
    assert engine.stats.disk_loads == 1


def test_at_its_end_an_engine_keeps_what_was_used_last(tmp_path):
    prompts = [np.random.default_rng(i).integers(3, VOCAB, 140) for i in range(12)]
    engine = DiskEngine(tmp_path / "kv")
    engine.ask(prompts[0], n=0)
    engine.evict()
    size = files(engine.folder.path)[0].stat().st_size
    engine = DiskEngine(tmp_path / "kv", max_bytes=9 * size)
    for prompt in prompts:  # the first of them is on disk
        engine.ask(prompt, n=0)
    engine.core.close()
    assert len(files(engine.folder.path)) <= 9
    again = DiskEngine(tmp_path / "kv", max_bytes=9 * size)
    found = [again.ask(prompt, n=0)[1].cached_tokens for prompt in prompts]
    assert found == [0] * 8 + [128] * 4


def test_a_disk_that_hangs_is_not_waited_for(kept, monkeypatch):
    monkeypatch.setattr(loads, "MAX_SILENCE_S", 0.05)
    engine, goes_on = DiskEngine(kept), threading.Event()
    read = engine.folder.read
    monkeypatch.setattr(engine.folder, "read", lambda *of: (goes_on.wait(10), read(*of))[1])
    assert engine.ask(PROMPT)[0] == RIGHT
    assert engine.tier.is_behind
    assert engine.ask(PROMPT[:200], salt=b"other")[1].cached_tokens == 0  # at once
    goes_on.set()
    until(lambda: not engine.tier.is_behind)
    engine.core.flush_cache()
    assert engine.ask(PROMPT)[1].cached_tokens == 256


def test_without_memory_for_copies_nothing_is_kept(tmp_path, monkeypatch):
    def no_memory(_):
        raise MemoryError

    engine = DiskEngine(tmp_path / "kv")
    monkeypatch.setattr(engine.model, "read", no_memory)
    engine.ask(PROMPT)
    engine.evict()
    assert engine.stats.disk_dropped_chunks == 4
    assert engine.ask(PROMPT)[0] == RIGHT
    engine.core.close()
    assert files(engine.folder.path) == []


def test_a_file_is_as_the_library_reads_it(kept):
    path = files(kept)[0]
    found = load_file(path)
    assert sorted(found) == ["checksum", "key", "pages"]
    assert found["key"].tobytes().hex() == path.name.partition(".")[0]
    assert found["pages"].nbytes == 64 * 8


def test_what_a_killed_engine_left_half_written_is_removed_in_the_end(tmp_path):
    engine = DiskEngine(tmp_path / "kv")
    left = engine.folder.path / f".{'a' * 16}.kv.tmp"
    other = engine.folder.path / "notes.tmp"
    for path in (left, other):
        path.write_bytes(b"half")
    engine.folder.refresh()
    assert left.exists()  # another engine may be writing it
    for path in (left, other):
        os.utime(path, (0, 0))
    KVFolder(engine.folder.path, 1)
    assert (left.exists(), other.exists()) == (False, True)
