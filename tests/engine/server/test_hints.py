"""What the compiler and a tenant say beside the prompt: the last-use mark, the cache's salt, and
what is left of a program."""

from __future__ import annotations

import pytest

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.preparing.bounds import MAX_REMAINING, RequestError, ServerLimits
from sgc.runtime.engine.preparing.prepare import Prepared, prepare_all
from sgc.runtime.engine.requests.request import ProgramRun
from sgc.runtime.engine.text.tokenizer import load_tokenizer
from sgc.runtime.engine.worker.wire import request_of

LIMITS = ServerLimits(max_context=1000, pool_tokens=1000, vocab_size=100_000)
SHARED = "A rather long beginning that is shared. "


def prepared(**hints) -> Prepared | RequestError:
    request = pb.Request(id=1, commit=pb.Commit(), **hints)
    request.prompt.segments.add().text.text = SHARED + "And an end that is not."
    request.prompt.segments.add().tokens.ids.extend([5, 6, 7])
    return prepare_all([request], load_tokenizer(DEFAULT_FOLDER), LIMITS)[0]


def n_reusable(segment: int, offset: int) -> int | None:
    made = prepared(reusable=pb.Position(segment=segment, offset=offset))
    assert isinstance(made, Prepared), made
    return request_of(made.work).n_reusable


def test_a_last_use_mark_becomes_a_number_of_tokens() -> None:
    tokenizer = load_tokenizer(DEFAULT_FOLDER)
    whole = prepared()
    assert isinstance(whole, Prepared)
    assert request_of(whole.work).n_reusable is None
    ids = list(whole.work.tokens)
    kept = n_reusable(0, len(SHARED))
    assert kept is not None
    assert 0 < kept < len(ids) - 3
    assert SHARED.startswith(tokenizer.backend.decode(ids[:kept]).rstrip())
    assert n_reusable(1, 0) <= n_reusable(1, 2) <= n_reusable(2, 0)
    assert n_reusable(0, 0) <= 1  # the beginning of sequence, if there is one


@pytest.mark.parametrize(("segment", "offset"), [(3, 0), (2, 1), (0, 10_000), (1, 4)])
def test_a_mark_outside_of_the_prompt_is_refused(segment: int, offset: int) -> None:
    made = prepared(reusable=pb.Position(segment=segment, offset=offset))
    assert isinstance(made, RequestError)
    assert "reusable" in made.message


def test_a_salt_is_the_requests_namespace_and_short() -> None:
    made = prepared(cache_salt=b"tenant")
    assert isinstance(made, Prepared)
    assert request_of(made.work).namespace == b"tenant"
    refused = prepared(cache_salt=b"x" * 65)
    assert isinstance(refused, RequestError)
    assert "cache salt: 65, of at most 64" in refused.message


@pytest.mark.parametrize(
    ("run", "expected"),
    [(None, None), (pb.ProgramRun(id=7), ProgramRun(7)),
     (pb.ProgramRun(id=2**64 - 1, remaining=0), ProgramRun(2**64 - 1, 0)),
     (pb.ProgramRun(id=7, remaining=MAX_REMAINING), ProgramRun(7, MAX_REMAINING))],
)  # fmt: skip
def test_what_is_left_of_a_program_is_passed_on(run, expected) -> None:
    made = prepared(run=run)
    assert isinstance(made, Prepared)
    assert request_of(made.work).run == expected


def test_what_no_program_can_have_left_is_refused_by_name() -> None:
    made = prepared(run=pb.ProgramRun(id=7, remaining=MAX_REMAINING + 1))
    assert isinstance(made, RequestError)
    assert "run: remaining tokens of the program" in made.message
