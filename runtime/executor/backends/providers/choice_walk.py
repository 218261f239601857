"""A choice taken token by token: only tokens that continue some choice are allowed.

SGLang does the same for models with `logit_bias` but without structured output. Pure functions,
except for the tokenizer, OpenAI's `tiktoken`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply
from sgc.runtime.executor.patterns.packages import needed

ALLOWED = 100.0  # the largest bias, which leaves no other token a chance


class Encoding(Protocol):
    eot_token: int

    def encode(self, text: str, *, disallowed_special: Any = ...) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str: ...


def encoding_named(name: str) -> Encoding:
    """OpenAI's tokenizer by name; its package loads the vocabulary on first use."""
    instead = ", or use another way: #MODEL?select=check"
    tiktoken = needed("tiktoken", "taking a choice by logit_bias", instead=instead)
    found: Encoding = tiktoken.get_encoding(name)
    return found


@dataclass(frozen=True, slots=True)
class Walk:
    """A position in the choices' tokens. ids: of each choice; alive: the choices still possible."""

    ids: tuple[tuple[int, ...], ...]
    alive: tuple[int, ...]
    depth: int = 0

    @staticmethod
    def begin(choices: Sequence[str], encoding: Encoding) -> Walk:
        ids = tuple(tuple(encoding.encode(c, disallowed_special=())) for c in choices)
        return Walk(ids, tuple(range(len(choices))))._skipped()

    @property
    def chosen(self) -> int | None:
        return self.alive[0] if len(self.alive) == 1 else None

    @property
    def said(self) -> tuple[int, ...]:
        """The tokens taken so far."""
        return self.ids[self.alive[0]][: self.depth]

    def allowed(self, encoding: Encoding) -> dict[int, str]:
        """The allowed next tokens with their texts; the end of text too if a choice ends here."""
        tokens = {self._next(i) for i in self.alive}
        texts = {t: encoding.decode([t]) for t in tokens if t is not None}
        return texts | ({encoding.eot_token: ""} if None in tokens else {})

    def after(self, text: str, encoding: Encoding) -> Walk:
        """The walk after a reply of one token; raises MalformedReply if it was not allowed."""
        fitting = [t for t, each in self.allowed(encoding).items() if each == text]
        if not fitting:
            raise MalformedReply(f"the server said {text[:40]!r}, which no choice goes on with")
        wanted = None if fitting[0] == encoding.eot_token else fitting[0]
        alive = tuple(i for i in self.alive if self._next(i) == wanted)
        return Walk(self.ids, alive, self.depth + 1)._skipped()

    def _next(self, choice: int) -> int | None:
        ids = self.ids[choice]
        return ids[self.depth] if self.depth < len(ids) else None

    def _skipped(self) -> Walk:
        """Skips tokens that all remaining choices share, as they need no request."""
        depth = self.depth
        while len(self.alive) > 1:
            at = {self.ids[i][depth] if depth < len(self.ids[i]) else None for i in self.alive}
            if len(at) > 1 or None in at:
                break
            depth += 1
        return Walk(self.ids, self.alive, depth)
