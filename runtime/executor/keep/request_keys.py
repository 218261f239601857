"""Keys of requests: equal requests have equal keys, in any program and at any place.

Unlike the fingerprints of a run's log, they include the roles of messages, for backends that take
messages: a record of a log is found by its place in the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sgc.runtime.executor.interface.backend import Joined, Prompt, Sampling, TextRun
from sgc.runtime.executor.log.records import fingerprint, prompt_parts, sampling_parts


def generation_key(prompt: Prompt, sampling: Sampling) -> str:
    """The key of a generation; a greedy one ignores its seed."""
    asked = replace(sampling, seed=0) if sampling.is_greedy else sampling
    return _key("generate", prompt, sampling_parts(asked))


def score_key(prompt: Prompt, choices: tuple[str, ...], unconditional: bool) -> str:
    return _key("score", prompt, [choices, unconditional])


def _key(kind: str, prompt: Prompt, asked: Any) -> str:
    roles = [
        [n, mark.start, mark.end, mark.role, mark.is_begin]
        for n, segment in enumerate(_flat(prompt))
        if isinstance(segment, TextRun)
        for mark in segment.roles
    ]
    return fingerprint(kind, prompt_parts(prompt), roles, asked)


def _flat(prompt: Prompt) -> Iterator[Any]:
    for segment in prompt:
        if isinstance(segment, Joined):
            for part in segment.parts:
                yield from _flat(part)
        else:
            yield segment
