"""What fails for one request ends that request alone, with a typed error: the others of its
batch go on unharmed, and what it held is freed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
import pytest

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.requests.logprobs import LogprobLog
from sgc.runtime.engine.requests.penalties import Penalties
from sgc.runtime.engine.requests.request import (
    Generate,
    LogprobsAsked,
    SamplingParams,
    Score,
    Stops,
    Work,
)
from sgc.runtime.engine.requests.text_rules import Guide, StopChecker

ODD = 0
ODD_TOKEN = 666
PROMPT = [5, 6, 7, 8]
PENALISED = SamplingParams(1.0, repetition_penalty=1.2, frequency_penalty=0.3, seed=5)


class AnyText:
    """A constraint that allows everything, and its guide."""

    is_over, may_end, is_free = False, True, False

    def start(self, jumps: bool) -> AnyText:
        return self

    def take(self, ids: Sequence[int]) -> None: ...

    def forced(self) -> list[int]:
        return []

    def write_mask(self, row: np.ndarray) -> None:
        row[:] = -1

    def is_whole_without(self, n_chars: int) -> bool:
        return True

    def check(self) -> None: ...


def kinds() -> list[Generate | Score]:
    """Of every sort that has work of its own in a step."""
    greedy, drawn = SamplingParams(), SamplingParams(1.0, top_p=0.9, seed=3)
    return [
        Generate(9, greedy),
        Generate(9, drawn),
        Generate(9, PENALISED),
        Generate(9, greedy, min_tokens=4, stop_ids=(1, 9)),
        Generate(9, drawn, stop=Stops(("never",))),
        Generate(9, drawn, constraint=AnyText()),
        Generate(9, greedy, logprobs=LogprobsAsked(0, 2)),
        Score(((5, 6, 7), (5, 8), (9,))),
    ]


def innocents(lab) -> list:
    """Their prompts begin as the odd one's does, which shares what it computes."""
    return [lab.request(1 + i, [*PROMPT[:3], 20 + i], kind) for i, kind in enumerate(kinds())]


@pytest.fixture(scope="module")
def right(lab) -> dict:
    return {
        i: o.answer
        for r in innocents(lab)
        for i, o in lab.drive(lab.make_core(), [r]).items()
    }  # fmt: skip


def assert_odd_one_fails(lab, core, odd, right, code=pb.ERROR_CODE_INTERNAL, after=None) -> str:
    """Gives the error's message. after: what to do once the requests are submitted."""
    todo = [odd, *innocents(lab)]
    outcomes = {r.id: lab.Outcome() for r in todo}
    for r in todo:
        core.submit(r)
    if after is not None:
        after(core._live[ODD])
    for _ in range(100):
        for update in core.step():
            outcomes[update.id].ids += update.new_ids
            if update.final:
                outcomes[update.id].last = update
    assert not core.has_work
    said = outcomes.pop(ODD).last
    assert {i: o.answer for i, o in outcomes.items()} == right
    assert said.error is not None
    assert said.error.code == code
    again = lab.drive(core, [innocents(lab)[0]])
    assert again[1].answer == right[1]
    core.flush_cache()
    assert core.stats().free_tokens == core.limits.pool_tokens
    return said.error.message


def one_nan(row: np.ndarray) -> None:
    row[9] = np.nan  # which `min_tokens` bans


def one_infinity(row: np.ndarray) -> None:
    row[3] = np.inf


def nothing_left(row: np.ndarray) -> None:
    row[:] = -np.inf


class Poisoned:
    """A model whose logits of rows with the odd token are changed."""

    def __init__(self, model, poison: Callable[[np.ndarray], None]) -> None:
        self._model, self._poison = model, poison

    def run(self, batch):
        logits = self._model.run(batch)
        for row in range(batch.n_rows):
            first, end = batch.row_starts[row], batch.row_starts[row + 1]
            if ODD_TOKEN in batch.token_ids[first:end]:
                for i in np.flatnonzero((first <= batch.logit_index) & (batch.logit_index < end)):
                    self._poison(logits[i])
        return logits


@pytest.mark.sweep
@pytest.mark.parametrize("poison", [one_nan, one_infinity, nothing_left])
@pytest.mark.parametrize("which", range(len(kinds())))
def test_a_row_that_is_no_numbers_fails_alone(lab, right, which, poison) -> None:
    core = lab.make_core(forward=Poisoned(lab.make_model(4096), poison))
    odd = lab.request(ODD, [*PROMPT, ODD_TOKEN], kinds()[which])
    message = assert_odd_one_fails(lab, core, odd, right)
    assert message == "the model gave logits that are not finite numbers"


@pytest.mark.parametrize("which", [i for i, k in enumerate(kinds()) if isinstance(k, Generate)])
def test_so_does_one_in_the_middle_of_a_generation(lab, right, which) -> None:
    """Long after it was admitted, in a batch of decodes."""
    prompt = [*PROMPT[:3], *range(30, 70)]

    class Later(Poisoned):
        def run(self, batch):
            logits = self._model.run(batch)
            for i, at in enumerate(batch.logit_index):
                if batch.positions[at] == len(prompt) + 2:
                    self._poison(logits[i])
            return logits

    core = lab.make_core(forward=Later(lab.make_model(4096), one_nan))
    assert_odd_one_fails(lab, core, lab.request(ODD, prompt, kinds()[which]), right)


def test_nothing_of_a_row_that_is_no_numbers_is_kept(lab) -> None:
    core = lab.make_core(forward=Poisoned(lab.make_model(4096), one_nan))
    lab.drive(core, [lab.request(ODD, [*PROMPT, ODD_TOKEN], Generate(3))])
    assert core.stats().cached_pool_tokens == 0


def test_a_token_with_no_chance_is_ordinary(lab) -> None:
    def some(row: np.ndarray) -> None:
        row[10:] = -np.inf

    core = lab.make_core(forward=Poisoned(lab.make_model(4096), some))
    odd = [lab.request(i, [*PROMPT, ODD_TOKEN, i], kind) for i, kind in enumerate(kinds())]
    assert all(each.last.error is None for each in lab.drive(core, odd).values())


def test_penalties_that_leave_no_number_are_the_requests_own_fault(lab, right) -> None:
    def large(row: np.ndarray) -> None:
        row[:] = np.float32(3e38)

    core = lab.make_core(forward=Poisoned(lab.make_model(4096), large))
    params = SamplingParams(repetition_penalty=1e-3)
    odd = lab.request(ODD, [*PROMPT, ODD_TOKEN], Generate(3, params))
    with np.errstate(over="ignore"):
        message = assert_odd_one_fails(lab, core, odd, right, pb.ERROR_CODE_INVALID_ARGUMENT)
    assert "penalties" in message


class Panic(BaseException):
    """As a library in Rust raises it."""


class Broken:
    """Something of a request of which one part cannot be used."""

    def __init__(self, whole: object, part: str, error: BaseException) -> None:
        self._whole, self._part, self._error = whole, part, error

    def __getattr__(self, name: str) -> object:
        if name == self._part:
            raise self._error
        return getattr(self._whole, name)


def parts_of(kind: type) -> list[str]:
    return sorted(name for name in vars(kind) if not name.startswith("_"))


OWN = {  # what a request has for itself, with what of it a step uses for no other
    "checker": parts_of(StopChecker),
    "guide": [name for name in parts_of(Guide) if name != "is_whole_without"],
    "penalties": ["seen", "counts", *parts_of(Penalties)],
    "logprobs": [n for n in parts_of(LogprobLog) if n not in ("n_unneeded", "wants")],
}


LIBRARIES_OWN = ("checker", "guide")
BREAKS = [
    (name, part, error)
    for name, parts in OWN.items()
    for part in parts
    for error in (RuntimeError("broken"), KeyError(3), Panic("broken"))
    if name in LIBRARIES_OWN or not isinstance(error, Panic)
]


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "part", "error"), BREAKS)
def test_what_fails_of_a_request_ends_it_alone(lab, right, name, part, error) -> None:
    def break_it(work: Work) -> None:
        setattr(work.decoding, name, Broken(getattr(work.decoding, name), part, error))

    kind = Generate(
        5, PENALISED, stop=Stops(("never",)), constraint=AnyText(), logprobs=LogprobsAsked(0, 2)
    )
    odd = lab.request(ODD, [*PROMPT, 9], kind)
    message = assert_odd_one_fails(lab, lab.make_core(), odd, right, after=break_it)
    assert type(error).__name__ in message


def test_a_score_whose_sums_fail_ends_alone(lab, right) -> None:
    def break_it(work: Work) -> None:
        work.trie.logprobs = lambda: 1 / 0

    odd = lab.request(ODD, [*PROMPT, 9], Score(((5, 6), (7,))))
    assert_odd_one_fails(lab, lab.make_core(), odd, right, after=break_it)


@pytest.mark.parametrize("error", [RuntimeError("broken"), Panic("broken")])
def test_what_fails_while_a_request_is_taken_in_ends_it_alone(lab, right, error) -> None:
    class NoStart(AnyText):
        def start(self, jumps: bool) -> AnyText:
            raise error

    odd = lab.request(ODD, [*PROMPT, 9], Generate(5, constraint=NoStart()))
    assert_odd_one_fails(lab, lab.make_core(), odd, right)


EXTREMES = (-0.0, 5e-324, 1e-320, 1e-45, 1e-38, 1.0, 3.5e38, -1.7e308, float("inf"),
            float("-inf"), float("nan"))  # fmt: skip
WHOLE = (0, -1, 1, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**64 - 1)


def extreme_params() -> list[SamplingParams]:
    """Each field at each extreme, with the others ordinary, greedy and drawn."""
    found = [SamplingParams(logit_bias=((3, x),)) for x in EXTREMES]
    found += [SamplingParams(logit_bias=((i, 1.0),)) for i in WHOLE]
    for field in fields(SamplingParams):
        values = WHOLE if field.type == "int" else EXTREMES if field.type == "float" else ()
        for value in values:
            for temperature in (0.0, 0.8):
                options = {"temperature": temperature, "repetition_penalty": 1.1}
                found.append(SamplingParams(**{**options, field.name: value}))
    return found


def test_no_number_of_a_sampling_harms_another_request(lab, right) -> None:
    """Past the server's checks, too: the core has its own."""
    core = lab.make_core()
    for params in extreme_params():
        odd = lab.request(ODD, [*PROMPT, 9], Generate(3, params))
        outcomes = lab.drive(core, [odd, innocents(lab)[1]])
        said = outcomes.pop(ODD).last
        assert said.error is None or said.error.code == pb.ERROR_CODE_INVALID_ARGUMENT, params
        assert {i: o.answer for i, o in outcomes.items()} == {i: right[i] for i in outcomes}
