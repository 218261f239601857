"""Random requests for fake engines, and what the naive model says is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from engine.core.conftest import Letters, Naive, letter

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.names import POOLINGS
from sgc.runtime.engine.requests.request import (
    Commit,
    Embed,
    EngineRequest,
    Generate,
    ProgramRun,
    SamplingParams,
    Score,
    Stops,
)

VOCAB = 61  # so small that prompts, choices and generations often coincide
SPACES = (b"", b"", b"one", b"two")
OWNERS = (b"", b"", b"somebody")


def make_requests(seed: int, n: int = 20) -> list[EngineRequest]:
    """Prompts along a small tree, some equal, some beginnings of others; several namespaces."""
    rng, of_programs = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    trunks = [rng.integers(3, VOCAB, 30).tolist() for _ in range(2)]
    branches = [t[: rng.integers(5, 30)] + rng.integers(3, 8, 12).tolist() for t in trunks * 2]
    requests = []
    for i in range(n):
        base = branches[rng.integers(0, len(branches))]
        prompt = (
            base[: rng.integers(1, len(base) + 1)] + rng.integers(3, 8, rng.integers(0, 6)).tolist()
        )
        space = SPACES[rng.integers(0, len(SPACES))]
        n_reusable = int(rng.integers(0, len(prompt) + 3)) if rng.integers(0, 4) == 0 else None
        tokens = np.array(prompt, np.int64)
        kind = _kind(rng)
        if i % 10 == 9:
            kind = Embed(POOLINGS[int(of_programs.integers(0, len(POOLINGS)))])
        owner, run = OWNERS[of_programs.integers(0, len(OWNERS))], _run(of_programs)
        requests.append(EngineRequest(i, tokens, kind, space, n_reusable, owner, run))
    return requests


def _run(rng: np.random.Generator) -> ProgramRun | None:
    """Some tell nothing, some not what is left, and some lie."""
    left = None if rng.integers(0, 3) == 0 else int(rng.choice([0, 7, 60, 10**6]))
    return None if rng.integers(0, 4) == 0 else ProgramRun(int(rng.integers(0, 5)), left)


def _kind(rng: np.random.Generator) -> Generate | Score | Commit:
    which = rng.integers(0, 8)
    if which == 0:
        return Commit()
    if which <= 2:
        choices = [rng.integers(3, 8, rng.integers(1, 5)) for _ in range(rng.integers(1, 5))]
        return Score(tuple(tuple(choice.tolist()) for choice in choices))
    params = SamplingParams(
        temperature=float(rng.choice([0, 0.7, 1.3])),
        top_p=float(rng.choice([1, 0.9])),
        top_k=int(rng.choice([-1, 20])),
        frequency_penalty=float(rng.choice([0, 0, 1.5])),
        repetition_penalty=float(rng.choice([1, 1, 1.5])),
        seed=int(rng.integers(0, 4)),
    )
    stop = _stop(rng) if rng.integers(0, 3) == 0 else ()
    min_tokens = int(rng.choice([0, 0, 4]))
    return Generate(int(rng.integers(0, 25)), params, min_tokens, Stops(stop), stop_ids=(1,))


def _stop(rng: np.random.Generator) -> tuple[str, ...]:
    """A single letter, and a long one whose parts come at different times."""
    letters = [letter(i) for i in rng.integers(3, VOCAB, 3).tolist()]
    return letters[0], "".join(letters[1:])


def make_long_requests(seed: int, n: int = 20) -> list[EngineRequest]:
    """Generations that do not end before they are preempted, with state to be kept meanwhile:
    penalties, draws, and stops of many letters that they come to say."""
    rng = np.random.default_rng(seed)
    naive, shared = Naive(VOCAB), rng.integers(3, VOCAB, 10)
    requests = []
    for i in range(n):
        params = SamplingParams(
            temperature=float(i % 2), frequency_penalty=(i % 3) / 2, repetition_penalty=1.3, seed=i
        )
        tokens = np.concatenate([shared[: i % 11], rng.integers(3, VOCAB, 12)])
        said = naive.generate(tokens, Generate(30, params))
        stop = "".join(map(letter, said[rng.integers(5, 10) : rng.integers(15, 30)]))
        requests.append(EngineRequest(i, tokens, Generate(30, params, stop=Stops((stop,))), b"one"))
    return requests


def need(request: EngineRequest) -> int:
    """The most pages it can hold."""
    kind, n = request.kind, len(request.tokens)
    if isinstance(kind, Generate):
        return n + kind.max_tokens
    return n + sum(map(len, kind.choices)) if isinstance(kind, Score) else n


@dataclass(frozen=True)
class Answer:
    ids: tuple[int, ...] = ()
    ending: tuple = (pb.FINISH_REASON_UNSPECIFIED, "", None)
    choices: tuple = ()
    embedding: tuple[float, ...] = ()


def right_answers(requests: Sequence[EngineRequest]) -> dict[int, Answer]:
    naive = Naive(VOCAB)
    return {r.id: _right_answer(naive, r) for r in requests}


def _right_answer(naive: Naive, request: EngineRequest) -> Answer:
    kind = request.kind
    if isinstance(kind, Generate):
        ids = naive.generate(request.tokens, kind)
        return Answer(tuple(ids), _ending(kind, ids))
    if isinstance(kind, Score):
        return Answer(choices=tuple(map(tuple, naive.score(request.tokens, kind))))
    if isinstance(kind, Embed):
        return Answer(embedding=naive.embed(request.tokens, kind))
    return Answer()


def _ending(kind: Generate, ids: list[int]) -> tuple:
    checker = Letters(kind.stop)
    matched = [checker.feed([i], n >= kind.min_tokens) for n, i in enumerate(ids, start=1)][-1:]
    if ids and ids[-1] in kind.stop_ids:
        return pb.FINISH_REASON_STOP, "", ids[-1]
    if matched and matched[0]:
        return pb.FINISH_REASON_STOP, matched[0].text, None
    return pb.FINISH_REASON_LENGTH, "", None
