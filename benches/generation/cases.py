"""Shared by the benches of jump-forward decoding: a character in JSON, as a regex and a schema.

`jump_forward.py`, `distributions.py` and `mask_cost.py` use it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Generated, Prompt, Sampling, TextRun

HOUSES = ("Gryffindor", "Slytherin", "Ravenclaw", "Hufflepuff")
BLOODS = ("Pure-blood", "Half-blood", "Muggle-born")
JOBS = (
    "student", "teacher", "auror", "ministry of magic", "death eater", "order of the phoenix",
)  # fmt: skip
FATES = ("Alive", "Deceased")
OUTCOMES = {"house": HOUSES, "blood status": BLOODS, "occupation": JOBS, "alive": FATES}
WORDS = r"[\w\d\s]{1,16}"


def _one_of(outcomes: Sequence[str]) -> str:
    return f"({'|'.join(outcomes)})"


# benchmark/json_jump_forward of SGLang's repository.
REGEX = (
    "\\{\n"
    f'    "name": "{WORDS}",\n'
    f'    "house": "{_one_of(HOUSES)}",\n'
    f'    "blood status": "{_one_of(BLOODS)}",\n'
    f'    "occupation": "{_one_of(JOBS)}",\n'
    '    "wand": \\{\n'
    f'        "wood": "{WORDS}",\n'
    f'        "core": "{WORDS}",\n'
    '        "length": [0-9]{1,2}\\.[0-9]{0,2}\n'
    "    \\},\n"
    f'    "alive": "{_one_of(FATES)}",\n'
    f'    "patronus": "{WORDS}",\n'
    f'    "bogart": "{WORDS}"\n'
    "\\}"
)
_TEXT = {"type": "string", "maxLength": 16}
_WAND = {
    "wood": {**_TEXT, "title": "Wood"},
    "core": {**_TEXT, "title": "Core"},
    "length": {"type": "integer", "minimum": 1, "maximum": 99, "title": "Length"},
}
_PERSON = {
    "name": {**_TEXT, "title": "Name"},
    **{name: {"enum": list(of), "type": "string"} for name, of in OUTCOMES.items()},
    "wand": {"$ref": "#/$defs/Wand"},
    "patronus": {**_TEXT, "title": "Patronus"},
    "bogart": {**_TEXT, "title": "Bogart"},
}
SCHEMA: dict[str, Any] = {
    "$defs": {
        "Wand": {
            "properties": _WAND, "required": list(_WAND), "title": "Wand", "type": "object",
        },
    },
    "properties": _PERSON, "required": list(_PERSON), "title": "Person", "type": "object",
}  # fmt: skip
CONSTRAINTS: dict[str, dict[str, str]] = {
    "regex": {"regex": REGEX},
    "schema": {"json_schema": json.dumps(SCHEMA)},
}
MAX_TOKENS = 600


@dataclass(frozen=True, slots=True)
class Run:
    """One arm of one repetition."""

    seconds: float
    steps: int
    found: tuple[Generated, ...]

    @property
    def requests_a_second(self) -> float:
        return len(self.found) / self.seconds


async def ask(
    backend: EngineBackend, prompts: Sequence[Prompt], samplings: Sequence[Sampling], batch: int
) -> Run:
    """Makes all requests, `batch` of them in flight."""
    room = asyncio.Semaphore(batch)

    async def one(prompt: Prompt, sampling: Sampling) -> Generated:
        async with room:
            return await backend.generate(prompt, sampling)

    before = (await backend.stats()).steps
    started_s = time.perf_counter()
    found = await asyncio.gather(*map(one, prompts, samplings))
    seconds = time.perf_counter() - started_s
    return Run(seconds, (await backend.stats()).steps - before, tuple(found))


def prompts_of(rep: int, n: int) -> list[Prompt]:
    """The prompts of a repetition, which are new in each."""
    return [
        (TextRun(f"Character {rep * 100 + i} is in Harry Potter. Fill in what is known of it:\n"),)
        for i in range(n)
    ]


def unconstrained(n_tokens: int, seed: int, **asked: str) -> Sampling:
    """A sampling of exactly `n_tokens` tokens."""
    return Sampling(n_tokens, n_tokens, seed=seed, ignore_eos=True, **asked)  # type: ignore[arg-type]


def short(value: Any) -> float:
    """A number with four digits."""
    return float(f"{float(value):.4g}")
