"""A model on a device, up to the kernels: on the CPU, which stands in for a GPU, and with a graph
that runs its computation again as one. Kernels in Triton run in its interpreter (where there is a
GPU, on it): `device`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from engine.core.conftest import drive, request
from engine.core.model.test_fused import UNDERSTOOD, VOCAB, make_model
from torch import Tensor
from triton_interpreter import replace_once

from sgc.errors import LoadError
from sgc.kernels.flashinfer.inputs import cascaded
from sgc.kernels.triton import sampling
from sgc.kernels.triton.paged.blocks import Shape
from sgc.kernels.triton.paged.items import plan_items
from sgc.runtime.engine.model.device import places
from sgc.runtime.engine.model.device.graphs import sizes
from sgc.runtime.engine.model.device.logits import DeviceLogits, DrawnTokens
from sgc.runtime.engine.model.device.model import DeviceModel
from sgc.runtime.engine.model.device.places import Place, find_place
from sgc.runtime.engine.model.device.runners import (
    Sizes,
    _run_widest,
    device_factories,
    fused_on,
    make_ready,
    siblings,
)
from sgc.runtime.engine.model.device.sent_draws import send
from sgc.runtime.engine.model.device.way import DeviceWay, ragged_of
from sgc.runtime.engine.model.forward import Forward, Row, flatten
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.runner import ModelRunner, Needs, UnsupportedModel
from sgc.runtime.engine.model.self_check import check_model, own_answers
from sgc.runtime.engine.model.ways import fused_runner
from sgc.runtime.engine.requests.draws import Draw
from sgc.runtime.engine.requests.request import EngineRequest, Generate, SamplingParams, Score
from sgc.runtime.engine.step.batch import build
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.engine.step.drawing import draw_tokens
from sgc.runtime.engine.step.faults import Faults
from sgc.runtime.engine.step.host_logits import HostLogits
from sgc.runtime.engine.worker.main import _step

replace_once()

STAND_IN = Place(torch.device("cpu"), "torch")
N_PAGES = 2000
# One of each kind of layer: norms, rotations, windows, soft caps, parallel blocks, experts.
KINDS = ("Qwen3", "Llama", "Gemma2", "Cohere", "Phi", "GPT2", "Olmo2", "Mixtral")
ONE_OF_EACH = [KINDS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in KINDS[1:])]


@pytest.fixture(scope="module")
def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclass
class Replayed:
    """In a graph's place: it writes what is computed again into the same memory."""

    n: int = 0

    def __call__(self, compute: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
        logits = compute().clone()

        def replay() -> None:
            self.n += 1
            logits.copy_(compute())

        return replay, logits


def core_of(forward: Forward, **options: object) -> EngineCore:
    return EngineCore(
        forward, pool_tokens=N_PAGES, max_context=400, vocab_size=VOCAB, check=True, **options
    )


def requests(seed: int, is_greedy: bool = True, n: int = 7) -> Iterator[EngineRequest]:
    """Prompts that share beginnings, with generations and choices."""
    rng = np.random.default_rng(seed)
    trunk = rng.integers(0, VOCAB, 60)
    for i in range(n):
        prompt = np.concatenate([trunk[: rng.integers(1, 60)], rng.integers(0, VOCAB, 1 + i)])
        if i % 3 == 2:
            choices = [rng.integers(0, VOCAB, n).tolist() for n in (1, 3)]
            yield request(i, prompt, Score(tuple(map(tuple, choices))))
        else:
            params = SamplingParams() if is_greedy else SamplingParams(0.9, seed=i, top_k=20)
            yield request(i, prompt, Generate(6, params))


def answers(core: EngineCore, asked: Iterable[EngineRequest]) -> dict[int, tuple]:
    return {i: outcome.answer for i, outcome in drive(core, asked, per_step=2).items()}


def said(found: dict[int, tuple]) -> dict[int, tuple]:
    """All but the log-probabilities of choices, of which the last digits may differ."""
    return {i: answer[:4] for i, answer in found.items()}


def ready(runner: ModelRunner) -> ModelRunner:
    runner.pool = runner.new_pool(N_PAGES)
    return runner


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "changes"), UNDERSTOOD)
def test_tokens_are_those_of_the_cpu_engine(name: str, changes: dict) -> None:
    ours = ready(fused_on(STAND_IN)(make_model(name, changes), 1))
    cpus = ready(fused_runner(make_model(name, changes), 1))
    got, right = (answers(core_of(runner), requests(5)) for runner in (ours, cpus))
    assert said(got) == said(right)
    for i, answer in got.items():
        ours_of, theirs = answer[4], right[i][4]
        assert np.allclose(np.concatenate([[], *ours_of]), np.concatenate([[], *theirs]), atol=1e-3)


def on_triton(name: str, device: torch.device, capture: object = None) -> ModelRunner:
    model = make_model(name, dict(UNDERSTOOD).get(name, {})).to(device)
    place = Place(device, "triton")
    runner = fused_on(place)(model, 1)
    way = runner.way
    assert isinstance(way, DeviceWay)
    if not place.is_gpu and isinstance(way._compute, DeviceModel):
        way._capture = None if way._compute.waits_for_host else capture
    runner.pool = runner.new_pool(N_PAGES)
    return runner


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_kernels_in_triton_give_the_same_tokens(name: str, device: torch.device) -> None:
    """Without graphs, then with, and with steps that are sent before tokens are known."""
    right = answers(
        core_of(ready(fused_runner(make_model(name, dict(UNDERSTOOD)[name]), 1))), few()
    )
    replayed = Replayed()
    runner = on_triton(name, device, replayed)
    assert said(answers(core_of(runner), few())) == said(right)
    way = runner.way
    assert isinstance(way, DeviceWay)
    way.capture(runner.pool, 3, 400)
    ahead = core_of(runner, lookup=False, is_ahead=True)
    assert said(answers(ahead, few())) == said(right)
    assert replayed.n > 0 or device.type != "cpu" or name == "Mixtral"


def few() -> Iterator[EngineRequest]:
    return requests(6, n=3)


@pytest.mark.slow
def test_draws_on_the_device_depend_on_the_request_alone(device: torch.device) -> None:
    runner = on_triton("Llama", device)
    together = answers(core_of(runner), requests(7, is_greedy=False, n=2))
    for one in requests(7, is_greedy=False, n=2):
        assert said(answers(core_of(runner), [one])) == said({one.id: together[one.id]})


@pytest.mark.parametrize("kind", [HostLogits, DeviceLogits])
@pytest.mark.parametrize("at", [[1, 0, 3], [2, 0, 1, 3], [4], [3, 4], [0, 0, 2]])
def test_rows_of_logits_are_those_that_are_asked_for(kind: type, at: list[int]) -> None:
    """As of requests that ask for log-probabilities: first of prompts', then of drawn tokens."""
    values = torch.arange(10.0).view(5, 2)
    logits = kind(values.numpy() if kind is HostLogits else values)
    assert np.array_equal(np.stack(list(logits.rows(at))), values[at])
    assert logits.draw(at, [Draw(SamplingParams())] * len(at)) == [1] * len(at)


def test_a_step_without_logits_draws_nothing() -> None:
    assert draw_tokens(build([]), HostLogits(np.zeros((0, 3), np.float32)), {}, Faults()) == {}
    nothing = DeviceLogits(torch.zeros(0, 3))
    assert draw_tokens(build([]), nothing, {}, Faults()) == {}


def test_a_step_without_memory_ends_its_requests_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the model, and where tokens are drawn; what follows is answered as if nothing was."""
    runner = ready(fused_on(STAND_IN)(make_model("Llama", {}), 1))
    core = core_of(runner, is_ahead=True)
    asked = list(requests(8))
    right = answers(core_of(runner), asked[3:])
    heard: list[int] = []
    for name, failing in ((".logits", DeviceWay), (".draw", HostLogits)):
        for one in asked[:3]:
            core.submit(one)
        with monkeypatch.context() as broken:
            broken.setattr(failing, name[1:], _out_of_memory)
            while core.has_work:
                heard += [
                    update.id
                    for update in _step(core)
                    if update.error is not None and "OutOfMemoryError" in update.error.message
                ]
    assert set(heard) == {0, 1, 2}
    assert said(answers(core, asked[3:])) == said(right)


def test_two_steps_are_under_way_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[tuple[str, object]] = []

    class Event:
        def record(self) -> None:
            happened.append(("records", self))

        def synchronize(self) -> None:
            happened.append(("waits for", self))

    monkeypatch.setattr(torch.cuda, "Event", Event)
    way = DeviceWay(lambda *_: torch.zeros(0, 2), STAND_IN)
    way.place = Place(torch.device("cuda"), "torch")
    for _ in range(3):
        way._keep_close()
    whats, events = zip(*happened, strict=True)
    assert whats == ("records", "waits for", "records", "waits for", "records")
    assert events[1] is events[0]  # what came before the last step, not the last step
    assert events[3] is events[2]


def test_a_gpu_that_is_lost_ends_the_process() -> None:
    """Else every request would fail from then on, with nobody to start it anew."""
    way = DeviceWay(lambda *_: torch.zeros(0, 2), STAND_IN)
    way.place = Place(torch.device("cuda"), "torch")
    way._queued = SimpleNamespace(synchronize=_illegal)
    core = core_of(ModelRunner(make_model("Llama", {}), way, N_PAGES))
    core.submit(next(requests(8)))
    with pytest.raises(SystemExit, match="cuda computes no more: CUDA error: an illegal memory"):
        _step(core)


def _illegal() -> None:
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


def test_a_token_that_could_not_be_drawn_is_no_fault_of_the_next_step(
    device: torch.device,
) -> None:
    """It is sent before that is known, and a GPU that is asked for row -1 of a table is lost."""
    runner = on_triton("Llama", device)
    one = np.zeros(1, np.int64)
    batch = flatten([Row(one, 0, one + row, one) for row in range(2)])
    drawn = DrawnTokens(torch.tensor([-1, 5], device=device))
    found = list(runner.run_after(batch, drawn, [0, 1]).rows([0, 1]))
    assert np.isfinite(found).all()


def _out_of_memory(*_: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory")


def test_the_current_gpu_is_the_one_that_computes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Triton launches on the current one, whatever its arguments are on."""
    taken: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    with pytest.raises(LoadError):
        load_model(str(tmp_path), place=Place(torch.device("cuda", 1), "triton"))
    assert taken == [torch.device("cuda", 1)]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_draws_are_sent_where_no_kernel_is_compiled_anew_for_them(n: int) -> None:
    params = [SamplingParams(0.5 + i, top_p=0.9, top_k=i, min_p=0.1 * i, seed=i) for i in range(n)]
    draws = [Draw(one, allowed=np.ones(40, np.bool_)) for one in params]
    rows = send(draws, 40, torch.device("cpu")).rows
    for sent, right in (
        (rows.temperature, [one.temperature for one in params]),
        (rows.top_k, [one.top_k for one in params]),
        (rows.top_p, [one.top_p for one in params]),
        (rows.min_p, [one.min_p for one in params]),
        (rows.point, [draw.point for draw in draws]),
        (rows.is_masked, [True] * n),
    ):
        assert sent is not None
        assert sent.storage_offset() * sent.element_size() % 16 == 0
        assert np.allclose(sent, right)


def test_heads_that_no_kernel_has_are_refused_at_load(device: torch.device) -> None:
    model = make_model("Llama", {"head_dim": 288})
    own = own_answers(model)
    runner = fused_on(Place(device, "triton"))(model.to(device), 1)
    with pytest.raises(UnsupportedModel, match="heads of 288 numbers; at most 256 are supported"):
        check_model(runner, own)


def test_sizes_of_graphs() -> None:
    for most in (1, 2, 7, 16, 100, 256, 1000):
        found = sizes(most)
        assert found == sorted(set(found))
        assert found[-1] == most


@pytest.mark.parametrize(
    ("device_name", "attention", "says"),
    [
        ("cuda", "auto", "there is no cuda"),
        ("cuda:7", "auto", "there is no cuda:7"),
        ("tpu", "auto", "--device must be auto, cpu or cuda, not 'tpu'"),
        ("mps", "auto", "--device must be auto, cpu or cuda, not 'mps'"),
        ("cpu", "triton", "--attention triton is for models on a GPU"),
        ("cpu", "flashinfer", "--attention flashinfer is for models on a GPU"),
    ],
)
def test_a_place_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, device_name: str, attention: str, says: str
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(LoadError, match=says):
        find_place(device_name, attention)


@pytest.mark.parametrize(
    ("there", "attention"),
    [
        ((), "torch"),
        (("triton",), "triton"),
        (("triton", "flashinfer"), "triton"),  # it could not compile its kernels
        (("triton", "flashinfer", "nvcc"), "flashinfer"),
        (("triton", "flashinfer", "flashinfer_jit_cache"), "flashinfer"),
    ],
)
def test_what_attends_is_the_fastest_that_is_there(
    monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], attention: str
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(places, "_is_installed", lambda package: package in there)
    monkeypatch.setattr(places, "_has_nvcc", lambda: "nvcc" in there)
    assert find_place("cuda", "auto").attention == attention


def test_what_only_our_cpu_kernels_do_is_refused_on_a_device() -> None:
    model = make_model("Llama", {})
    with pytest.raises(UnsupportedModel, match="add --device cpu, or leave out --weights int8"):
        device_factories(model, Needs(weights="int8"), STAND_IN)


def test_a_pool_is_made_before_the_first_step() -> None:
    runner = fused_on(STAND_IN)(make_model("Llama", {}), 1)
    make_ready(runner, Sizes(pool_tokens=64))
    assert runner.pool.n_pages == 64
    assert len(runner.pool.layers) == 2


def test_rows_attend_together_before_the_first_request_asks_for_it() -> None:
    ragged = ragged_of(siblings(2))
    assert cascaded(ragged).trunks is not None
    starts, page_starts, pages = (
        t.numpy() for t in (ragged.row_starts, ragged.page_starts, ragged.pages)
    )
    items = plan_items(
        starts, page_starts, pages, Shape(8, 2, 64, 64, 132), window=None, shares=True
    )
    assert len(items.many)


@pytest.mark.slow
def test_draws_are_made_before_the_first_request(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their kernels are compiled, and the memory that they take is known."""
    seen: set[tuple[int, bool, bool, bool]] = set()
    real = sampling.sample

    def sample(logits: Tensor, rows: sampling.SamplingRows, *rest: object) -> Tensor:
        seen.add((len(logits), rows.any_top_p, *(one is not None for one in rest)))
        return real(logits, rows, *rest)

    monkeypatch.setattr(sampling, "sample", sample)
    runner = on_triton("Llama", device)
    runner.max_context = 4
    _run_widest(runner, 6, 3)  # more than a row may have
    assert seen == {(3, cuts, masks, cuts) for cuts in (False, True) for masks in (False, True)}
