"""What stands around an argument: whether it is a label, and what the argument is called."""

from __future__ import annotations

import re
from collections import Counter

from sgc.passes.changing.movement.directives import is_directive
from sgc.passes.changing.movement.pieces import Kind, Piece
from sgc.passes.changing.movement.streams import SLOT, Segment
from sgc.passes.changing.movement.vocabulary import (
    ADVERBS,
    DETERMINERS,
    LABEL_STOPS,
    READING,
    VERBS,
)

_TAGS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_MARKS = (":", "=", "-", ">", "+", "|", "#", ".", "?", "!", "—", "–")
_ANNOUNCED = re.compile(r"\b(?:here|this is|these are|following|given|consider|read|below)\b", re.I)
# Who the model is to be, and not what is done, as in "You are given {x}".
_PERSONA = re.compile(
    r"\W*(?:you are (?!(?:given|shown|told|asked|provided|presented|reading|seeing|looking)\b)|"
    r"act as|your name is)",
    re.I,
)
_IF = re.compile(r"(?:if|when|whenever|unless|until|while|as long as)\b[^,]*" + SLOT, re.I)


def is_inline(segment: Segment, piece: Piece) -> bool:
    """Whether an argument stands within an instruction or a sentence, and not behind a label.

    "Translate {x} into French" and "How to reset your {x}", but not "Article: {x}".
    """
    text = segment.text[piece.start : piece.end]
    slots = [i - piece.start for i in segment.slots if piece.start <= i < piece.end]
    label = _TAGS.sub(" ", text[: max(slots)])
    if any(map(_is_instruction, label.splitlines())) or _is_unlabelled(label):
        return True
    rest = _TAGS.sub(" ", text[max(slots) + 1 :])
    is_line = "\n" not in text and not piece.is_whole
    return is_line and bool(re.search(r"\w", rest))


def is_stated(segment: Segment, piece: Piece) -> bool:
    """Whether an argument stands within a statement or a condition, no instruction or question.

    "{x} opened the letter.", "Sign at gate {x}", "If {x} is even, ...": the next sentences may go
    on with that.
    """
    text = _TAGS.sub(" ", segment.text[piece.start : piece.end])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(_IF.match(line) for line in lines):
        return True
    if says_who(segment, piece):
        return False
    return not any(
        "?" in line or is_directive(line.replace(SLOT, "x")) or _is_instruction(line)
        for line in lines
    )


def says_who(segment: Segment, piece: Piece) -> bool:
    """Whether an argument is part of who the model is: "You are {x}, the guide of {y}."."""
    return bool(_PERSONA.match(segment.text[piece.start : piece.end].lstrip()))


def _is_instruction(line: str) -> bool:
    """Whether a label tells what to do, as "Summarize the text:" and not "Follow-up question:"."""
    is_heading = line.lstrip().startswith("#") and SLOT not in line
    line = re.sub(r"^\W*[A-Za-z -]{1,30}:\s+(?=\S)", "", line)
    words = [word for word in re.findall(r"[a-z'-]+", line.lower()) if word not in ADVERBS]
    if not words or words[0] not in (VERBS | {"you", "your"}) - READING:
        return False
    is_label = is_heading or line.rstrip(f"\"'“‘([ {SLOT}").endswith((":", "#"))
    return len(words) > 3 or not is_label or bool(DETERMINERS & set(words))


def _is_unlabelled(label: str) -> bool:
    """Whether an argument ends a phrase that is no label."""
    if not label.strip() or label.endswith("\n"):
        return False
    line = label.splitlines()[-1].strip("\"'“‘([*_` ").replace(SLOT, "x")
    is_phrase = bool(re.search(r"\w", line)) and not line.endswith(_MARKS)
    return is_phrase and not _ANNOUNCED.search(line)


def argument_nouns(segment: Segment, pieces: tuple[Piece, ...]) -> frozenset[str]:
    """What the arguments are called: the words of their labels and names, in both numbers."""
    words = {word for names in _labels(segment, pieces) for word in names}
    spans = [(p.start, p.end) for p in pieces if p.kind is Kind.ARGUMENT]
    for slot, name in segment.slots.items():
        if not any(low <= slot < high for low, high in spans):
            continue
        words.update(re.findall(r"[a-z]{2,}", name.lower()))
    return _in_both_numbers(words)


def shared_nouns(segment: Segment, pieces: tuple[Piece, ...]) -> frozenset[str]:
    """What several arguments are called: "scene" of "Scene one:" and "Scene two:"."""
    counts = Counter(word for names in _labels(segment, pieces) for word in names)
    return _in_both_numbers({word for word, n in counts.items() if n > 1})


def _labels(segment: Segment, pieces: tuple[Piece, ...]) -> list[set[str]]:
    """The last words in front of each argument."""
    found: list[set[str]] = []
    for piece in pieces:
        if piece.kind is Kind.ARGUMENT:
            label = segment.text[piece.start : piece.end]
            for part in label.split(SLOT)[:-1]:
                found.append(set(re.findall(r"[a-z][a-z-]+", part.lower())[-3:]))
    return found


def long_labels(segment: Segment, pieces: tuple[Piece, ...]) -> frozenset[str]:
    """Labels of arguments that are several words, such as "Last question:"."""
    found: set[str] = set()
    for piece in pieces:
        if piece.kind is Kind.ARGUMENT:
            lines = segment.text[piece.start : piece.end].split(SLOT)[:-1]
            labels = (re.match(r"\W*([A-Za-z]+(?: [A-Za-z]+){1,2}):\s*$", line) for line in lines)
            found.update(label.group(1).lower() for label in labels if label)
    return frozenset(found)


def twin_label(segment: Segment, pieces: tuple[Piece, ...]) -> str:
    """A label that two arguments have, or one and the cue: only places tell them apart; or ""."""
    owners: dict[str, str] = {}
    for piece in pieces:
        start = piece.start
        for slot in sorted(i for i in segment.slots if piece.start <= i < piece.end):
            label = _plain(segment.text[start:slot])
            start = slot + 1
            if label and owners.setdefault(label, segment.slots[slot]) != segment.slots[slot]:
                return label
        text = segment.text[piece.start : piece.end]
        if piece.kind is Kind.CUE and "```" not in text and _plain(text) in owners:
            return _plain(text)
    return ""


def _plain(label: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", label.lower()))


def _in_both_numbers(words: set[str]) -> frozenset[str]:
    words = words - LABEL_STOPS
    plain = {word.rstrip("s") for word in words if len(word) > 3}
    return frozenset(words | plain | {f"{word}s" for word in plain})
