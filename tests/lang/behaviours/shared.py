"""Programs, replies and samples that tests of the language share."""

from __future__ import annotations

from dataclasses import replace

import sgc
from sgc.runtime.executor.backends.scripted import PLAIN_CHAT

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


def chat_with(**fields):
    """The plain chat template with other fields."""
    return replace(PLAIN_CHAT, **fields)


def breaks(*words):
    """A reply that fails where the prompt ends with one of the words."""

    def reply(text, sampling):
        if text.endswith(words):
            raise RuntimeError("backend broke")
        return "r"

    return reply


def tagged(text, sampling):
    """A reply that tells the children of a fork apart."""
    return text[-1].upper() * 4


@sgc.function
def simple(s, x):
    s += "ask " + x
    s += sgc.gen("a")
    s += "."
    return "done"


@sgc.function
def greet(s, name, mark="!"):
    s += "hello " + name + mark
    s += sgc.gen("reply")
    return name


def by_text(text, sampling):
    """A reply that says what it was asked."""
    return f"<{text}>"


def one_gen(**params):
    """A program of one generation with these parameters."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g", **params)

    return program
