"""A model that several processes compute: on CPUs, where they meet over gloo."""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from engine.core.model.test_fused import UNDERSTOOD, make_model
from engine.core.test_worker import TOKENIZER, Worker, sampling
from tests_support import one_in
from waiting import BOUND_S, until

from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.model.decoders.families.known import decoder_of
from sgc.runtime.engine.model.device.group import Group
from sgc.runtime.engine.model.device.shards import share_of
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.model.runner import UnsupportedModel
from sgc.runtime.engine.worker.ranks import Ranks, batches, frame_of

ON_CPUS = {"fake": False, "model_folder": TOKENIZER, "device": "cpu", "threads": 1, "check": True}


def requests() -> wpb.StepInput:
    rng = np.random.default_rng(3)
    trunk = rng.integers(5, 400, 40)
    return wpb.StepInput(requests=[
        wpb.WorkerRequest(
            id=i, tokens=[*trunk[: 6 * i], *rng.integers(5, 400, i)],
            generate=sampling(max_tokens=12, temperature=0.8 * (i % 2), seed=i),
        )
        for i in range(1, 6)
    ])  # fmt: skip


def texts(worker: Worker) -> dict[int, list[int]]:
    worker.send(requests())
    said = worker.until_final(set(range(1, 6)))
    return {i: [t for update in updates for t in update.new_ids] for i, updates in said.items()}


@pytest.mark.slow
def test_two_processes_give_the_tokens_of_one() -> None:
    one, two = Worker(**ON_CPUS), Worker(**ON_CPUS, tensor_parallel=2)
    assert one.ready.error == two.ready.error == ""
    assert texts(two) == texts(one)
    (other,) = children_of(two.process.pid)
    folder = folder_of(other)
    assert folder.exists()  # NCCL looks there at the first sum, not before
    assert one.close() == two.close() == 0
    until(lambda: not is_alive(other) and not folder.exists())


@pytest.mark.slow
def test_a_process_that_ends_ends_the_others() -> None:
    worker = Worker(**ON_CPUS, tensor_parallel=2)
    (other,) = children_of(worker.process.pid)
    folder = folder_of(other)
    os.kill(other, signal.SIGKILL)
    assert worker.process.wait(BOUND_S) == 1
    assert b"process 1 of the model's ended" in worker.process.stderr.read()
    assert not folder.exists()
    worker.close()


def test_a_step_that_fails_in_the_first_process_ends_it(monkeypatch, capsys) -> None:
    """The others are in the midst of it: their sums would meet those of the next one."""
    ranks = object.__new__(Ranks)
    ranks._processes = []
    monkeypatch.setattr(os, "_exit", sys.exit)
    batch = flatten([Row(np.arange(2), 0, np.arange(2), np.array([1]))])
    with pytest.raises(SystemExit), ranks.running(batch):
        raise torch.OutOfMemoryError("too wide")
    assert "too wide" in capsys.readouterr().err


@pytest.mark.slow
def test_what_cannot_be_shared_is_said() -> None:
    worker = Worker(**ON_CPUS, tensor_parallel=2, weights="int8")
    assert "leave out --tensor-parallel or --weights int8" in worker.ready.error
    worker.close()


def children_of(pid: int) -> list[int]:
    return [int(i) for i in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def folder_of(pid: int) -> Path:
    told = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return Path(told[told.index(b"--folder") + 1].decode())


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("case", "n"), one_in(2, [case for case in UNDERSTOOD if case[0] != "Olmo2"], [2, 4])
)
def test_shares_add_up(case: tuple[str, dict], n: int) -> None:
    """What the shares of a layer give, summed, is what the whole layer gives."""
    name, changes = case
    shares = [list(_share(name, changes, Group(rank, n)).blocks) for rank in range(n)]
    for right, *blocks in zip(decoder_of(make_model(name, changes)).blocks, *shares, strict=True):
        dim, n_heads = right.attention.layout.head_dim, right.attention.layout.n_heads // n
        heads = torch.randn(3, n, n_heads * dim)
        parts = [_product(b.attention.out, heads[:, at]) for at, b in enumerate(blocks)]
        whole = _product(right.attention.out, heads.flatten(1))
        torch.testing.assert_close(sum(parts), whole, atol=1e-4, rtol=1e-4)


def _product(product, x):
    out = x @ torch.cat(product.weights).t()
    return out + torch.cat(product.biases) if product.biases else out


def _share(name: str, changes: dict, group: Group):
    return share_of(decoder_of(make_model(name, changes)), group, torch.device("cpu"))


def test_norms_of_all_heads_are_not_dealt() -> None:
    with pytest.raises(UnsupportedModel, match="norms the queries of all heads together"):
        list(_share("Olmo2", {}, Group(0, 2)).blocks)


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match="4 heads that share 2 of K and V"):
        list(_share("Llama", {}, Group(0, 3)).blocks)


def test_batches_arrive_as_they_are_told() -> None:
    rows = [Row(np.arange(n), 3, np.arange(100, 103 + n), np.array([n - 1])) for n in (1, 4)]
    sent = [flatten(rows), flatten(rows[1:])]
    received = list(batches(io.BufferedReader(io.BytesIO(b"".join(map(frame_of, sent))))))
    for got, right in zip(received, sent, strict=True):
        for name in right.__slots__:
            assert np.array_equal(getattr(got, name), getattr(right, name))


def test_a_batch_that_is_no_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="numbers"):
        list(batches(io.BufferedReader(io.BytesIO(b"\xff" * 56))))
