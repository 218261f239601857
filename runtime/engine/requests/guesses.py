"""The guesses of one generation: which tokens may come next, copied from what stood before.

What followed the last occurrence of the text's last few tokens may follow again. A step can run a
few such tokens behind the last one and see at once how many of them are right. Wrong ones cost
time, so a request pays for them from an account: a text that does not repeat itself soon guesses
seldom, and one that does guesses at every step.
"""

from __future__ import annotations

from sgc.runtime.engine.ints import IntBuffer

MOST = 8  # guesses of one row
# How many last tokens must have occurred before. After four, the next tokens are seldom others than
# at the earlier place; after two, they often are, so fewer guesses are worth it.
_LONG, _SHORT = 4, 2
SHORT_WORTH = 3
# The index begins with this many of a text's last tokens, and is made anew at twice as many.
WINDOW = 4096
# The account: a refused guess costs 1.
AT_FIRST, PER_TOKEN, PER_ACCEPTED, AT_MOST = 8.0, 0.1, 1.0, 16.0


class Guesses:
    """left_tree: where the text was last found to leave the paths of the radix tree."""

    __slots__ = (
        "_account",
        "_after_long",
        "_after_short",
        "_n_indexed",
        "_n_paid",
        "_start",
        "left_tree",
    )

    def __init__(self, n_tokens: int) -> None:
        """n_tokens: of the text so far."""
        # The position of the token that last followed these.
        self._after_long: dict[tuple[int, ...], int] = {}
        self._after_short: dict[tuple[int, ...], int] = {}
        self._start = self._n_indexed = 0
        self._account = AT_FIRST
        self._n_paid = n_tokens
        self.left_tree: object = None

    def allowed(self, n_tokens: int) -> int:
        """How many guesses it can pay for now. n_tokens: of the text so far."""
        self._account += PER_TOKEN * (n_tokens - self._n_paid)
        self._account = min(self._account, AT_MOST)
        self._n_paid = n_tokens
        return int(self._account)

    def settle(self, n_accepted: int, n_refused: int) -> None:
        self._account += PER_ACCEPTED * n_accepted - n_refused

    def copied(self, tokens: IntBuffer, n: int) -> list[int]:
        """Up to `n` tokens that followed the last occurrence of the last few."""
        is_next = len(tokens) - self._n_indexed == 2 and len(tokens) > _LONG
        if not is_next or len(tokens) - self._start > 2 * WINDOW:
            self._index(tokens)
            last = tokens.view[-_LONG:].tolist()
        else:  # one token more, which is the usual case
            last = tokens.view[-_LONG - 1 :].tolist()
            self._n_indexed += 1
            self._after_long[tuple(last[:_LONG])] = self._n_indexed
            self._after_short[tuple(last[_LONG - _SHORT : _LONG])] = self._n_indexed
        at = self._after_short.get(tuple(last[-_SHORT:]))
        if at is None:
            return []
        at_long = self._after_long.get(tuple(last[-_LONG:]))
        if at_long is None:
            return _copy(tokens, at, min(n, SHORT_WORTH))
        return _copy(tokens, at_long, n)

    def _index(self, tokens: IntBuffer) -> None:
        """Takes in all runs of tokens that another token follows."""
        end = len(tokens)
        if end - self._start > 2 * WINDOW or self._n_indexed == 0:
            self._start = self._n_indexed = max(0, end - WINDOW)
            self._after_long.clear()
            self._after_short.clear()
        first = max(self._start, self._n_indexed - _LONG + 1)
        run = tokens.view[first : end - 1].tolist()
        for length, after in ((_LONG, self._after_long), (_SHORT, self._after_short)):
            skipped = max(0, self._n_indexed - length + 1 - first)
            shifted = [run[skipped + i :] for i in range(length)]
            places = range(first + skipped + length, end)
            after.update(zip(zip(*shifted, strict=False), places, strict=False))
        self._n_indexed = end - 1


def _copy(tokens: IntBuffer, at: int, n: int) -> list[int]:
    run: list[int] = tokens.view[at : at + n].tolist()
    while len(run) < n:  # the end is reached: assumes that a repetition goes on
        run += run[: n - len(run)]
    return run
