"""The methods by which a `select` takes a choice: the built-in ones, and a base class for others.

Programs name a built-in method and the executor computes it; called directly, a method does what
SGLang's does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from sgc.errors import UsageError
from sgc.runtime.executor.interface import choice_methods as methods
from sgc.runtime.executor.interface.backend import ChoiceScore, Logprob

DEFAULT_METHOD = "token_length_normalized"
Rows = list[list[Any]]  # [log-probability, token id, text] of each token


@dataclass
class ChoicesDecision:
    """The choice taken, and meta info on how it was taken."""

    decision: str
    meta_info: dict[str, Any] | None = None


class ChoicesSamplingMethod(ABC):
    """A method to take a choice; a user's subclasses run in interpreted programs only."""

    @property
    def requires_unconditional_logprobs(self) -> bool:
        """Whether the method also needs the choices' log-probabilities without the prompt."""
        return False

    @abstractmethod
    def __call__(
        self,
        *,
        choices: list[str],
        normalized_prompt_logprobs: list[float],
        input_token_logprobs: list[Rows],
        output_token_logprobs: list[Rows],
        unconditional_token_logprobs: list[Rows] | None = None,
    ) -> ChoicesDecision: ...


class BuiltIn(ChoicesSamplingMethod):
    """A method that programs and `.sgir` files know by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def requires_unconditional_logprobs(self) -> bool:
        return self.name in methods.NEEDS_UNCONDITIONAL

    def __call__(
        self,
        *,
        choices: list[str],
        normalized_prompt_logprobs: list[float],
        input_token_logprobs: list[Rows],
        output_token_logprobs: list[Rows],
        unconditional_token_logprobs: list[Rows] | None = None,
    ) -> ChoicesDecision:
        if self.requires_unconditional_logprobs and unconditional_token_logprobs is None:
            raise UsageError(f"{self.name} needs unconditional_token_logprobs")
        without = unconditional_token_logprobs or [[] for _ in choices]
        each = zip(input_token_logprobs, output_token_logprobs, without, strict=True)
        scores = [_score(*rows) for rows in each]
        index = methods.pick(scores, self.name, temperature=0.0, uniform=0.0)
        return ChoicesDecision(choices[index], methods.select_meta(self.name, scores))

    def __repr__(self) -> str:
        return f"sgc.{self.name}"


def _score(rows: Rows, after: Rows, alone: Rows) -> ChoiceScore:
    before: Rows = []
    if len(rows) > 1 and rows[0][0] is None:  # servers begin with the token before the choice
        before, alone = rows[:1], alone[1:] if len(alone) == len(rows) else alone
        rows = rows[1:]
    return ChoiceScore(
        ids=tuple(row[1] for row in rows),
        logprobs=tuple(row[0] or 0.0 for row in rows),
        texts=tuple(row[2] if len(row) > 2 else None for row in rows),
        unconditional=tuple(row[0] for row in alone),
        before=tuple(map(_logprob, before)),
        after=tuple(map(_logprob, after)),
    )


def _logprob(row: list[Any]) -> Logprob:
    return row[0], row[1], row[2] if len(row) > 2 else None


class TokenLengthNormalized(BuiltIn):
    def __init__(self) -> None:
        super().__init__("token_length_normalized")


class GreedyTokenSelection(BuiltIn):
    def __init__(self) -> None:
        super().__init__("greedy_token_selection")


class UnconditionalLikelihoodNormalized(BuiltIn):
    def __init__(self) -> None:
        super().__init__("unconditional_likelihood_normalized")


token_length_normalized = TokenLengthNormalized()
greedy_token_selection = GreedyTokenSelection()
unconditional_likelihood_normalized = UnconditionalLikelihoodNormalized()
joint = BuiltIn("joint")


def method_of(method: Any) -> Any:
    """The name of a built-in method; any other method as it is."""
    if method is None:
        return DEFAULT_METHOD
    # A subclass of a built-in method that overrides `__call__` is not built in.
    if isinstance(method, BuiltIn) and type(method).__call__ is BuiltIn.__call__:
        return method.name
    if isinstance(method, str) or callable(method):
        return method
    raise UsageError(f"choices_method must be one of sgc's or a callable, found {method!r}")
