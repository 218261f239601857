"""Phrasings made of alternatives, and those held out of training.

A template is a text with alternatives in parentheses, `(Sum up|Shorten) the text`, which may be
nested. A hash of the phrasing decides whether it is held out, and so is any that `unseen.txt` has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

from tiny_model import world as w
from tiny_model.world import World

FIRST_HOUR = 5  # the stage of training from which there are other phrasings
OLD_SHARE = 0.35  # of the phrasings of the stages before, in later training
_CHOICE = re.compile(r"\(([^()]*)\)")
_SPACES = re.compile(r" {2,}")
UNSEEN = Path(__file__).with_name("unseen.txt")


def spin(r: Random, template: str) -> str:
    """One phrasing of a template."""
    while (found := _CHOICE.search(template)) is not None:
        chosen = r.choice(found[1].split("|"))
        template = template[: found.start()] + chosen + template[found.end() :]
    return _SPACES.sub(" ", template)


def every(template: str) -> list[str]:
    """All phrasings of a template."""
    found = _CHOICE.search(template)
    if found is None:
        return [_SPACES.sub(" ", template)]
    before, after = template[: found.start()], template[found.end() :]
    return [text for choice in found[1].split("|") for text in every(before + choice + after)]


def plain(text: str) -> str:
    """A text by which phrasings are compared: lower case, one space, no mark at the end."""
    return " ".join(text.lower().split()).rstrip(".:?! ")


@cache
def unseen() -> tuple[re.Pattern[str], ...]:
    """Patterns of phrasings that are kept out of training: `{}` stands for anything."""
    lines = UNSEEN.read_text(encoding="utf-8").splitlines()
    kept = [plain(line) for line in lines if line and not line.startswith("#")]
    return tuple(re.compile(re.escape(line).replace(r"\{\}", ".+")) for line in kept)


@cache
def is_kept_out(kind: str, phrasing: str) -> bool:
    """Whether training has no text with this phrasing."""
    text = plain(re.sub(r"\{\w*\}", "{}", phrasing))
    return w.is_held_out("phrasing", kind, text) or any(p.fullmatch(text) for p in unseen())


def phrase(r: Random, world: World, kind: str, templates: Sequence[str]) -> str:
    """A phrasing of this split, of one of some templates."""
    for _ in range(w.MAX_TRIES):
        text = spin(r, r.choice(templates))
        if is_kept_out(kind, text) == (world.split == "test"):
            return text
    raise AssertionError(f"no phrasing of {kind!r} is in the split {world.split!r}")
