"""Stop strings in a text that was generated past them, or is still being generated."""

from __future__ import annotations


def first_stop(text: str, stop: tuple[str, ...]) -> tuple[int, str] | None:
    """Where the stop string begins that is the first to be complete, of these the longest, and
    which it is.
    """
    begins = [(text.index(each), each) for each in stop if each in text]
    return min(begins, key=lambda found: (found[0] + len(found[1]), found[0]), default=None)


def n_begun(text: str, stop: tuple[str, ...]) -> int:
    """Length of the longest end of the text with which a stop string begins, or which is one."""
    return max((_n_begun(text, each) for each in stop), default=0)


def _n_begun(text: str, stop: str) -> int:
    longest = min(len(stop), len(text))
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
