"""Constrained requests and what holds of their answers, for tests of guided decoding."""

from __future__ import annotations

import json
import re

from engine.core.conftest import Outcome
from engine.generation.conftest import Rig
from jsonschema import Draft202012Validator

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.requests.request import EngineRequest, Generate, SamplingParams
from sgc.runtime.engine.step.core import EngineCore

STOP, LENGTH = pb.FINISH_REASON_STOP, pb.FINISH_REASON_LENGTH
PERSON = json.dumps(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 0, "maximum": 130},
            "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3},
        },
        "required": ["name", "age", "tags"],
    }
)
CONSTRAINTS = [
    ("regex", r"[a-z]{3,8}"),
    ("regex", r"\d{4}-\d{2}-\d{2}"),
    ("regex", r"The answer is (?:yes|no|maybe)\."),
    ("regex", r"(?:[A-Z][a-z]{1,6} ){1,3}!"),
    ("regex", r"[é🙂你]{1,3}x?"),
    ("regex", r"\w{1,5}@\w{2,6}\.(?:com|org)"),
    ("json_schema", PERSON),
    (
        "json_schema",
        '{"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "maxItems":4}',
    ),
    ("json_schema", '{"enum": ["alpha", "beta", {"k": [1, 2]}]}'),
    ("json_schema", '{"type": "string", "maxLength": 6}'),
    ("grammar", 'start: "(" start ")" | /[a-c]{1,3}/'),
    ("grammar", 'root ::= item ("," item)* ";"\nitem ::= [0-9]+'),
]
PROMPT = "Tell me something: "


def is_valid(field: str, text: str, said: str) -> bool:
    if field == "regex":
        return re.fullmatch(text, said) is not None
    if field == "json_schema":
        return Draft202012Validator(json.loads(text)).is_valid(json.loads(said))
    depth = said.count("(")
    lark = rf"\({{{depth}}}[a-c]{{1,3}}\){{{depth}}}"
    return re.fullmatch(r"\d+(,\d+)*;" if "::=" in text else lark, said) is not None


def make_requests(rig: Rig, n: int = 36, max_tokens: int = 40) -> list[EngineRequest]:
    """Of every constraint, greedy and drawn, with penalties, biases, prompts that share much."""
    shared = rig.ids("A long beginning that everyone has, and that is cached once it is known. ")
    requests = []
    for i in range(n):
        field, text = CONSTRAINTS[i % len(CONSTRAINTS)]
        params = SamplingParams(
            temperature=(0.0, 1.0, 1.4)[i % 3],
            top_p=(1.0, 0.9)[i % 2],
            frequency_penalty=(0.0, 0.7)[i % 5 == 0],
            repetition_penalty=(1.0, 1.2)[i % 7 == 0],
            logit_bias=((rig.ids(" ")[0], -3.0), (rig.eos, 2.0)) if i % 4 == 0 else (),
            seed=i,
        )
        kind = Generate(
            max_tokens,
            params,
            min_tokens=(0, 3)[i % 11 == 0],
            stop_ids=(rig.eos,) if i % 6 else (),
            constraint=rig.compile(field, text) if i % 9 else None,
        )
        requests.append(rig.request(i, shared[: 3 + i] + rig.ids(f"Ask {i // 3}: "), kind))
    return requests


def answers(outcomes: dict[int, Outcome]) -> dict[int, tuple]:
    for i, outcome in outcomes.items():
        assert outcome.last is not None, i
        assert outcome.last.error is None, outcome.last.error
    return {i: outcome.answer for i, outcome in outcomes.items()}


def said(rig: Rig, outcome: Outcome) -> str:
    assert outcome.last is not None
    ids = outcome.ids[:-1] if outcome.last.matched_id is not None else outcome.ids
    return rig.text(ids)


def assert_counted(core: EngineCore, outcomes) -> None:
    counters = core.stats().counters
    usages = [outcome.last.usage for outcome in outcomes]
    assert counters.sampled_tokens == sum(len(outcome.ids) for outcome in outcomes)
    assert counters.completion_tokens == sum(usage.completion_tokens for usage in usages)
    assert counters.forced_tokens == sum(usage.forced_tokens for usage in usages)
    for outcome, usage in zip(outcomes, usages, strict=True):
        assert usage.completion_tokens == len(outcome.ids)
        assert usage.prompt_tokens == usage.cached_tokens + usage.computed_tokens


# What it does not depend on
