"""Sixty prompts in phrasings that training never saw (`sixty.toml`), and the rules that grade them.

`python -P tools/tiny_model evaluate` runs them; the model card has the share that is sound, and
every prompt whose reply is not.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tiny_model.first_hour.spin import plain
from tiny_model.text import CLOSE, END, Text

FILE = Path(__file__).with_name("sixty.toml")
MAX_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt and its rules, as sixty.toml says. before: earlier messages, the user's first."""

    phrasing: str
    text: str
    chat: bool = False
    before: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()
    has: tuple[str, ...] = ()
    json: dict[str, Any] | None = None
    matches: str = ""
    words: int = 0

    @property
    def whole(self) -> str:
        """The prompt with its special tokens."""
        if not self.chat:
            return self.text
        text = Text(None)  # type: ignore[arg-type]
        for i, content in enumerate([*self.before, self.text]):
            text.turn("assistant" if i % 2 else "user", content)
        return str(text.ask("<|im_start|>assistant\n"))

    @property
    def stop(self) -> str:
        """What ends the reply: a line, but where several are asked for."""
        if self.chat:
            return CLOSE
        several = "\n" in "".join(self.equal) + self.matches.replace("[^\n]", "").replace(
            "[^.\n]", ""
        )
        return END if several else "\n"

    def is_sound(self, reply: str) -> bool:
        """Whether a reply keeps to all rules of this prompt."""
        said = reply.strip()
        if self.equal and _plain(said) not in {_plain(each) for each in self.equal}:
            return False
        if self.json is not None and _object(said) != self.json:
            return False
        if self.matches and not re.fullmatch(self.matches, said):
            return False
        if self.words and len(said.split()) > self.words:
            return False
        return all(part in said for part in self.has)

    @property
    def has_rules(self) -> bool:
        return bool(self.equal or self.has or self.json or self.matches)


def _plain(text: str) -> str:
    """A reply, whatever its first letter's case, without a full stop."""
    return (text[:1].lower() + text[1:]).removesuffix(".")


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


@cache
def prompts() -> tuple[Prompt, ...]:
    found = []
    for row in tomllib.loads(FILE.read_text(encoding="utf-8"))["prompt"]:
        row["equal"] = tuple(row.pop("is", ()))
        row["has"], row["before"] = tuple(row.get("has", ())), tuple(row.get("before", ()))
        found.append(Prompt(**row))
    return tuple(found)


def pattern_of(phrasing: str) -> re.Pattern[str]:
    """What finds a phrasing of unseen.txt within a text: `{}` stands for a part of a line."""
    return re.compile(re.escape(plain(phrasing)).replace(r"\{\}", r"[^\n]+?"), re.IGNORECASE)
