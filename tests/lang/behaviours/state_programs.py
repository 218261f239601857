"""A program and replies that tests of states share."""

from __future__ import annotations

import sgc


def tagged(text, sampling):
    """A reply that tells the children of a fork apart."""
    return text[-1].upper() * 4


@sgc.function
def simple(s, x):
    s += "ask " + x
    s += sgc.gen("a")
    s += "."
    return "done"
