"""Finds stop strings in a text that continues after them, or is still being generated."""

from __future__ import annotations


def first_stop(text: str, stop: tuple[str, ...]) -> tuple[int, str] | None:
    """The start of the stop string that ends first, and the string; of several with the same end,
    the longest.
    """
    begins = [(text.index(each), each) for each in stop if each in text]
    return min(begins, key=lambda found: (found[0] + len(found[1]), found[0]), default=None)


def n_begun(text: str, stop: tuple[str, ...]) -> int:
    """The length of the longest suffix of the text that begins a stop string or is one."""
    return max((_n_begun(text, each) for each in stop), default=0)


def _n_begun(text: str, stop: str) -> int:
    longest = min(len(stop), len(text))
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
