"""Recognises instructions that are for somebody else: an exam's, a letter's, a notice's own words.

Constant text may itself be what is given. Then its instructions speak of things that no prompt
holds, or the reply's label names something that nobody asked for.
"""

from __future__ import annotations

import re

from sgc.passes.changing.movement.antecedents import QUOTED, names_argument
from sgc.passes.changing.movement.vocabulary import (
    DIRECTING,
    ENDS_PHRASE,
    GENERIC,
    LABEL_STOPS,
    OUTPUTS,
    REPLY_LABELS,
    YOURS,
)

_YOUR = re.compile(r"\byour (?!name is\b)((?:[\w'-]+ ?){1,4})", re.I)
# Where no reply can be written, and what it cannot be written with.
_OFF_SCREEN = re.compile(
    r"\b(?:answer|score|question) (?:sheet|card|booklet|box|paper)s?\b|"
    r"\b(?:on|from|in|with|at|over) (?:the|your) (?:\w+ )?(?:card|board|envelope|"
    r"box|pencil|pen|notebook|booklet|phone|desk|door|counter|reception)\b|"
    r"\b(?:in|with an?) (?:pencil|pen|ink)\b|\bby (?:post|mail|phone)\b|\bblock letters\b|"
    r"(?:^|[.!?]\s+)(?:please )?(?:reply|respond|answer|return|send|submit|pay)\b[^.;]* within \w+ "
    r"(?:hour|day|week|month)s?\b",
    re.I,
)
# "the" question is then an argument, or was named before; a phone or a door is neither.
_ANSWERED = re.compile(
    r"\b(?:answer|reply to|respond to) the (?!following\b)((?:[\w'-]+ ?){1,3})", re.I
)
_ASKERS = frozenset({"user", "customer", "client", "person", "sender", "author", "student"})
_LABEL = re.compile(r"\W*([A-Za-z][\w ()/'-]{0,40}):\W*")
STEM = 4  # letters that "summary" and "summarize" share


def sign_of_others(text: str, before: str, nouns: frozenset[str]) -> str:
    """The words of some instructions that show that they are not for the model; "" if none do.

    before: the text in front; nouns: what the arguments are called.
    """
    text = QUOTED.sub(" ", text)
    if found := _OFF_SCREEN.search(text):
        return found.group().strip()
    for found in _YOUR.finditer(text):
        if not (OUTPUTS - {"name", "names"} | YOURS) & set(_phrase(found)):
            return found.group().strip()
    for found in _ANSWERED.finditer(text):
        known = _words(f"{before} {text[: found.start()]}") | nouns | GENERIC | OUTPUTS | _ASKERS
        if not {word.removesuffix("'s") for word in _phrase(found)} & known:
            return found.group().strip()
    return ""


def may_go_on(paragraph: str, nouns: frozenset[str]) -> bool:
    """Whether a paragraph may go on with an argument that is itself written as instructions."""
    return bool(nouns & DIRECTING) and not names_argument(paragraph, nouns)


def is_asked_for(cue: str, text: str, nouns: frozenset[str]) -> bool:
    """Whether a reply's label names what the text asks for.

    Also true where it is no label, or where the text is known to speak of an argument.
    """
    label = _LABEL.fullmatch(cue)
    if label is None or names_argument(text, nouns):
        return True
    names = _words(label.group(1)) - LABEL_STOPS
    stems = {word[:STEM] for word in _words(text)}
    return bool(names & REPLY_LABELS) or any(name[:STEM] in stems for name in names)


def _phrase(found: re.Match[str]) -> list[str]:
    """The words of the noun phrase that a match has found."""
    words = found.group(1).lower().split()
    end = next((i for i, word in enumerate(words) if word in ENDS_PHRASE), len(words))
    return words[:end]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", text.lower()))
