"""A random program: its statements, and its source in Python."""

from __future__ import annotations

from dataclasses import dataclass

import random_control_carried as carried
import random_control_texts as texts
from random_control_tree import Mark, Statement, rendered

HEAD = """\
import json
import random
from collections import defaultdict
from itertools import groupby

import sgc

LOG = []
PERSON = {
    "type": "object",
    "properties": {
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["age", "tags"],
}


@sgc.tool(effect="effect")
def record(text: str) -> str:
    LOG.append(text)
    return f"r{len(text) % 3}"


@sgc.tool(effect="pure")
def is_odd(text: str) -> bool:
    return len(text) % 2 == 1


class Flaky(ValueError):
    pass


@sgc.tool(effect="pure")
def flaky(text: str) -> str:
    if len(text) % 3 == 0:
        raise (ValueError, Flaky, KeyError)[len(text) // 3 % 3](text)
    return "f" + text


@sgc.tool
def shaky(text: str) -> str:
    LOG.append(text)
    if "e" in text:
        raise RuntimeError(f"e in {text}")
    return text


def fetched(word):
    try:
        return flaky(word)
    except Flaky as error:
        return "flaky " + str(error)


def plain(s, word):
    s += "p" + word
    if word == "yes":
        s += "!"
        return "sure"
    return word
"""


@dataclass
class Made:
    """A program.

    called, body: the bodies of the called function and of the program; drawn: the watched
    constructs; max_turns: the bound of its loops in compiled runs.
    """

    seed: int
    called: list[Statement]
    body: list[Statement]
    drawn: tuple[Mark, ...] = ()
    max_turns: int = 100

    @property
    def marks(self) -> list[Mark]:
        """The drawn constructs that are still in the program."""
        source = self.source()
        return [mark for mark in self.drawn if mark.written in source]

    def source(self) -> str:
        return "\n".join([
            HEAD,
            "",
            texts.HEAD,
            "",
            carried.HEAD,
            "",
            "@sgc.function",
            'def called(t, word: str, depth: str = "d"):',
            '    w, k, words, d = "w", 0, [], {}',
            *rendered(self.called),
            '    return "end"',
            "",
            "",
            f"@sgc.function(max_turns={self.max_turns})",
            "def program(s, q: str, p: str, n: int, is_long: bool):",
            '    w, k, words, d = "w", 0, [], {}',
            *rendered(self.body),
            '    s += "." + sgc.gen("last")',
            "    return [w, k, words, d]",
            "",
        ])  # fmt: skip
