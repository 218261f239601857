"""The rounds of a trace check: the arguments and the scripted replies of each.

Texts are nasty (white space, case, digits, quotes, markup), the program's own (its tests may
compare with them), of many lengths (the program may cut them), or equal (the program may compare
them with each other).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

NASTY = (
    "plain", " leading", "trailing ", "two\nlines\n", "", "MiXeD Case", "42", '"quoted" \'too\'',
    "naïve — 日本語 🙂", "a, b, c", "{brace} %s \\n", "yes", "No.", "\t tab",
)  # fmt: skip
_WORDS = "Ab, cd: 12 ef.\n Gh"
LENGTHS = (5000, 300, 1, 50_000, 0)
MAX_REPLY = 5000  # characters; replies stay in all later prompts


@dataclass(frozen=True, slots=True)
class Draw:
    """Texts, and the number that decides which text is drawn for which request."""

    number: int
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Round:
    """texts: the texts for arguments, from `first` on: successive texts if is_spread, else one text
    for all; replies: the texts for generations.
    """

    texts: Sequence[str]
    first: int
    is_spread: bool
    replies: Sequence[str]

    def text(self, index: int) -> str:
        """The text of the argument with this index."""
        return self.texts[(self.first + index * self.is_spread) % len(self.texts)]


def has_long(arguments: Iterable[object]) -> bool:
    """Whether the texts of the arguments are together longer than all replies.

    Code that goes through a text letter by letter may exceed its limits on so long a text, and
    still be of use for shorter texts.
    """
    arguments = [*arguments]
    inner = [each for each in arguments if not isinstance(each, str)]
    is_cut = any(len(part) >= MAX_REPLY for part in _texts_in(inner))  # parts are cut there
    return is_cut or sum(map(len, _texts_in(arguments))) > MAX_REPLY


def _texts_in(values: Iterable[object]) -> Iterator[str]:
    for each in values:
        if isinstance(each, str):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from _texts_in(each)
        elif isinstance(each, dict):
            yield from _texts_in((*each, *each.values()))


def text_of_length(n_chars: int) -> str:
    return (_WORDS * (n_chars // len(_WORDS) + 1))[:n_chars]


def rounds(own: Sequence[str]) -> Iterator[Round]:
    """All rounds, the most useful first; the kinds take turns."""
    own = own or NASTY
    n = max(len(NASTY), len(own))
    # Neighbouring parameters get neighbouring texts: words of one constant, say.
    of_own = (Round(own, number, True, own) for number in range(n))
    nasty = (Round(NASTY, number, True, NASTY) for number in range(n))
    kinds = [of_own, nasty, _equal(own), _long()]
    for together in itertools.zip_longest(*kinds):
        yield from (each for each in together if each is not None)


def _equal(own: Sequence[str]) -> Iterator[Round]:
    """Rounds whose arguments are all one text, and most of whose replies are that text too."""
    for text, other in ((own[0], NASTY[0]), ("yes", "No."), ("", " "), ("a, b, c", "42")):
        yield Round((text,), 0, False, (text, text, other))


def _long() -> Iterator[Round]:
    texts = tuple(map(text_of_length, LENGTHS))
    replies = tuple(text for text in texts if len(text) <= MAX_REPLY)
    for number in range(len(texts)):
        yield Round(texts, number, True, replies)
