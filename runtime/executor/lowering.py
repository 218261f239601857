"""What happens to parameters a backend cannot honour: an error, or a check and a retry.

A constraint (`regex`, `json_schema`) that a backend cannot decode under is checked here and the
generation is asked again, a few times; any other parameter it refuses is an error. Nothing
is dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sgc.errors import BackendError, SgcError, UnsupportedParameter, UsageError
from sgc.runtime.executor.backend import Backend, Capabilities, Generated, Prompt, Sampling
from sgc.runtime.executor.seeds import draw_seed

MAX_TRIES = 4

Check = Callable[[str], bool]
_NEUTRAL = {field.name: field.default for field in fields(Sampling)}
# What makes no difference when a backend cannot do it.
_UNSEEN = frozenset({"seed"})


class ConstraintFailed(BackendError):
    """No reply of the backend met the constraint, in as many tries as are made."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a generation is asked for. check: whether a text meets what is not sent."""

    sampling: Sampling
    check: Check | None = None
    what: str = ""

    @property
    def can_stream(self) -> bool:
        return self.check is None

    async def generate(
        self, backend: Backend, prompt: Prompt, on_delta: Callable[[str], None] | None
    ) -> Generated:
        if self.check is None:
            return await backend.generate(prompt, self.sampling, on_delta)
        return await self._checked(backend, prompt, self.sampling)

    async def generate_n(
        self, backend: Backend, prompt: Prompt, seeds: Sequence[int]
    ) -> tuple[Generated, ...]:
        samplings = [replace(self.sampling, seed=seed) for seed in seeds]
        if self.check is None:
            return await backend.generate_n(prompt, samplings)
        return tuple([await self._checked(backend, prompt, each) for each in samplings])

    async def _checked(self, backend: Backend, prompt: Prompt, sampling: Sampling) -> Generated:
        assert self.check is not None
        found = ""
        for number in range(MAX_TRIES):
            reply = await backend.generate(prompt, _retried(sampling, number), None)
            if self.check(reply.text):
                return reply
            found = reply.text
        shown = found if len(found) <= 60 else found[:57] + "..."
        raise ConstraintFailed(
            f"none of {MAX_TRIES} replies met {self.what}; the last was {shown!r}",
            hint="this backend cannot decode under a constraint; it is checked and asked again",
        )


def _retried(sampling: Sampling, number: int) -> Sampling:
    """The sampling of a try: a greedy reply would stay the same, so later ones are drawn."""
    if number == 0:
        return sampling
    temperature = 1.0 if sampling.is_greedy else sampling.temperature
    seed = draw_seed(sampling.seed, "", "retry", number)
    return replace(sampling, temperature=temperature, seed=seed)


def plan_constraint(sampling: Sampling, capabilities: Capabilities) -> Plan:
    """How to ask for a generation; raises UnsupportedParameter for what cannot be done."""
    given = [
        name for name in capabilities.refuses - _UNSEEN if getattr(sampling, name) != _NEUTRAL[name]
    ]
    if not given:
        return Plan(sampling)
    refused = sorted(set(given) - {"regex", "json_schema"})
    if refused:
        raise UnsupportedParameter(
            f"{capabilities.model} cannot honour {', '.join(refused)}",
            hint="leave it out, or run on a backend that can; parameters are never dropped",
        )
    if "regex" in given:
        assert sampling.regex is not None
        return Plan(replace(sampling, regex=None), _matches(sampling.regex), "the pattern")
    assert sampling.json_schema is not None
    check = _validates(sampling.json_schema)
    return Plan(replace(sampling, json_schema=None), check, "the JSON schema")


def _matches(pattern: str) -> Check:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _validates(schema: str) -> Check:
    try:
        import jsonschema
    except ImportError as error:
        raise SgcError(
            "checking a JSON schema needs the package jsonschema, which is not installed",
            hint="pip install jsonschema",
        ) from error
    parsed = json.loads(schema)
    try:
        validator = jsonschema.validators.validator_for(parsed)
        validator.check_schema(parsed)
    except jsonschema.SchemaError as error:
        raise UsageError(f"the JSON schema is invalid: {error.message}") from error
    check: Any = validator(parsed)

    def is_valid(text: str) -> bool:
        try:
            return bool(check.is_valid(json.loads(text)))
        except ValueError:
            return False

    return is_valid
