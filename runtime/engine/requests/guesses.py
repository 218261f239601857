"""The guesses of one generation: which tokens may come next, copied from what stood before.

What followed the last occurrence of the text's last few tokens may follow again. A step can run a
few such tokens behind the last one and see at once how many of them are right. Wrong ones cost
time, so a request pays for them from an account: a text that does not repeat itself soon guesses
seldom, and one that does guesses at every step.
"""

from __future__ import annotations

from sgc.runtime.engine.ints import IntBuffer

MOST = 8  # guesses of one row
# How many last tokens must have stood there before, longest first, and how many guesses that is
# worth: two tokens are often followed by others, four seldom.
LENGTHS = ((4, MOST), (2, 3))
# The index begins with this many of a text's last tokens, and is made anew at twice as many.
WINDOW = 4096
# The account: a refused guess costs 1.
AT_FIRST, PER_TOKEN, PER_ACCEPTED, AT_MOST = 8.0, 0.25, 2.0, 16.0


class Guesses:
    """left_tree: where in the radix tree the text was last found to go its own way."""

    __slots__ = ("_account", "_after", "_n_indexed", "_n_paid", "_start", "left_tree")

    def __init__(self, n_tokens: int) -> None:
        """n_tokens: of the text so far."""
        self._after: tuple[dict[tuple[int, ...], int], ...] = tuple({} for _ in LENGTHS)
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
        self._index(tokens)
        end = len(tokens)
        last = tokens.view[max(0, end - LENGTHS[0][0]) :].tolist()
        for (length, most), after in zip(LENGTHS, self._after, strict=True):
            at = after.get(tuple(last[-length:]))
            if at is not None:
                n = min(n, most)
                run: list[int] = tokens.view[at : at + n].tolist()
                while len(run) < n:  # the end is reached: what repeats itself goes on doing so
                    run += run[: n - len(run)]
                return run
        return []

    def _index(self, tokens: IntBuffer) -> None:
        """Takes in all runs of tokens that another token follows."""
        end = len(tokens)
        if end - self._start > 2 * WINDOW or self._n_indexed == 0:
            self._start = self._n_indexed = max(0, end - WINDOW)
            for after in self._after:
                after.clear()
        first = max(self._start, self._n_indexed - LENGTHS[0][0] + 1)
        run = tokens.view[first : end - 1].tolist()
        for (length, _), after in zip(LENGTHS, self._after, strict=True):
            skipped = max(0, self._n_indexed - length + 1 - first)
            shifted = [run[skipped + i :] for i in range(length)]
            places = range(first + skipped + length, end)
            after.update(zip(zip(*shifted, strict=False), places, strict=False))
        self._n_indexed = end - 1
