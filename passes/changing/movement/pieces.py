"""Cuts a segment into pieces: what a proposal puts in another order.

A piece is a sentence or a line of constant text, or an argument with its label and delimiters.
What only makes sense together is one piece: a list and the line that announces it, a block between
delimiters, a section under a heading. `read.py` judges pieces, `check.py` says what may never part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from sgc.passes.changing.movement.lines import END, UNDERLINED, Line, split_lines
from sgc.passes.changing.movement.sentences import split_sentences
from sgc.passes.changing.movement.streams import Segment
from sgc.passes.changing.movement.vocabulary import ADVERBS, FORM_LABELS, TASK_LABELS, VERBS

TERMINATED = re.compile(r"[.!?][\"'”’)\]*_]*$")
# A sentence directly before an argument that says that it comes is part of its label.
_ANNOUNCES = re.compile(
    r"\b(following|below|here(?:'s| is| are)|next|this|these|i will give|"
    r"you will (?:see|be|get|receive|find|read)|i'll give)\b",
    re.I,
)
_BEGINS_REPLY = re.compile(
    r"(?:let's|let us|sure|ok|okay|certainly|of course|here(?:'s| is| are)|i|i'm|i'll|my|thus|so|"
    r"the answer is|therefore|(?:yes|no)(?=[,.]))(?!\w)",
    re.I,
)


class Kind(Enum):
    TEXT = "text"
    ARGUMENT = "argument"
    CUE = "cue"  # the beginning of the reply: stays where it is, before what comes next


# What the reply is to be made of, with its headings.
_OUTLINE = re.compile(
    r"\b(?:these|following|this) (?:\w+ )?"
    r"(?:sections?|headings?|structure|format|outline|layout|template|parts)\b[^.]*:$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a segment's text, without the white space around it.

    paragraph: its number; heading_level: of a section, 0 for anything else; is_whole: it has lines
    of its own; is_nested: it stands in an argument's section that is not the first.
    """

    kind: Kind
    start: int
    end: int
    paragraph: int
    is_whole: bool = False
    heading_level: int = 0
    is_nested: bool = False


def cut(segment: Segment) -> tuple[Piece, ...]:
    """The pieces of a segment in order; together they are its text but for white space."""
    slots = frozenset(segment.slots)
    lines = _merged_outlines(_merged_rules(split_lines(segment.text, slots)))
    pieces = [piece for part in _sections(lines) for piece in _of_section(segment, slots, *part)]
    return tuple(_with_cue(segment, _with_labels(segment, pieces)))


# -- sections --


def _sections(lines: list[Line]) -> Iterator[tuple[list[Line], int, bool]]:
    """Stretches of lines, each with the level of its heading; whether another one is before it."""
    held: list[Line] = []
    level = n_headings = 0
    for line in lines:
        if line.heading_level:
            if held:
                yield held, level, n_headings > 1
            held, level = [], line.heading_level
            n_headings += 1
        held.append(line)
    if held:
        yield held, level, n_headings > 1


def _of_section(
    segment: Segment, slots: frozenset[int], lines: list[Line], level: int, is_later: bool
) -> Iterator[Piece]:
    if level == 0:
        yield from _units(segment, slots, lines)
        return
    last = max((i for i, line in enumerate(lines) if line.has_value), default=None)
    # A line that announces what the model will say is no part of the section before it.
    ends_open = len(lines) > 1 and (lines[-1].is_open or lines[-1].text.endswith(":"))
    text = lines[:-1] if ends_open else lines
    head = text if last is None else lines[: last + 1]
    kind = Kind.TEXT if last is None else Kind.ARGUMENT
    yield Piece(kind, head[0].start, head[-1].end, head[0].start, True, level)
    for piece in _units(segment, slots, lines[len(head) :]):
        yield replace(piece, is_nested=is_later)


# -- units of lines --


def _units(segment: Segment, slots: frozenset[int], lines: list[Line]) -> Iterator[Piece]:
    i = 0
    paragraph = lines[0].start if lines else 0
    while i < len(lines):
        line = lines[i]
        if line.n_blank:
            paragraph = line.start
        if line.is_block or line.is_item or line.is_rule:
            end = _list_end(lines, i) if line.is_item else i + 1
            yield _whole(segment, slots, line.start, lines[end - 1].end, paragraph)
        else:
            end = _wrapped_end(lines, i)
            spans = split_sentences(segment.text, line.start, lines[end - 1].end, slots)
            for low, high in spans[:-1]:
                yield _sentence(slots, low, high, paragraph)
            # The last sentence may announce what comes.
            low = spans[-1][0]
            last = _announced_end(lines, end - 1)
            if last > end:
                yield _whole(segment, slots, low, lines[last - 1].end, paragraph)
            else:
                yield _sentence(slots, low, spans[-1][1], paragraph)
            end = last
        i = end


def _sentence(slots: frozenset[int], low: int, high: int, paragraph: int) -> Piece:
    is_argument = any(slot in slots for slot in range(low, high))
    return Piece(Kind.ARGUMENT if is_argument else Kind.TEXT, low, high, paragraph)


def _whole(segment: Segment, slots: frozenset[int], low: int, high: int, paragraph: int) -> Piece:
    kind = Kind.ARGUMENT if any(low <= slot < high for slot in slots) else Kind.TEXT
    return Piece(kind, low, high, paragraph, is_whole=True)


def _announced_end(lines: list[Line], i: int) -> int:
    """Where what a line announces ends; the line's own end if it announces nothing."""
    end = i + 1
    if not lines[i].is_label or end == len(lines):
        return end
    follower = lines[end]
    if follower.is_item:
        return _list_end(lines, end)
    if follower.n_blank > 1 or lines[i].text[-2:-1] == "\ufffc":
        return end
    if follower.has_value or follower.is_block:
        return end + 1
    end += 1
    while end < len(lines) and not lines[end].n_blank and not lines[end].has_value:
        if lines[end].is_label:
            break
        end += 1
    return end


def _list_end(lines: list[Line], i: int) -> int:
    end = i + 1
    while end < len(lines) and (lines[end].is_item or _goes_on(lines[end - 1], lines[end])):
        end += 1
    return end


def _wrapped_end(lines: list[Line], i: int) -> int:
    """The end of a sentence that was broken into lines."""
    end = i + 1
    while end < len(lines) and _goes_on(lines[end - 1], lines[end]):
        end += 1
    return end


def _goes_on(before: Line, line: Line) -> bool:
    is_plain = not (line.is_block or line.is_rule or line.is_item or before.is_rule)
    return (
        is_plain
        and line.n_blank == 0
        and line.text[0].islower()
        and not TERMINATED.search(before.text)
        and not before.text.endswith(":")
    )


def _merged_rules(lines: list[Line]) -> list[Line]:
    """Lines with what delimits a value made part of it: rules around, before or after it."""
    found: list[Line] = []
    for line in lines:
        if found and line.is_rule and not line.n_blank and _is_title(found[-1], line):
            found.append(_joined([found.pop(), line]))
            continue
        opening = _opening(found, line) if line.is_rule else None
        if opening is not None:
            line = _joined([*found[opening:], line])
            del found[opening:]
        elif found and _delimits(found[-1], line):
            line = _joined([found.pop(), line])
        elif END.match(line.text) and any(each.has_value for each in found):
            first = max(i for i, each in enumerate(found) if each.has_value)
            line = _joined([*found[first:], line])
            del found[first:]
        found.append(line)
    return found


def _merged_outlines(lines: list[Line]) -> list[Line]:
    """Lines with the headings that an instruction asks for made one block: they head nothing."""
    found: list[Line] = []
    i = 0
    while i < len(lines):
        found.append(lines[i])
        i, first = i + 1, i + 1
        if lines[first - 1].has_value or not _OUTLINE.search(lines[first - 1].text):
            continue
        while i < len(lines) and _is_of_outline(lines[i], is_first=i == first):
            i += 1
        if i > first:
            found.append(_joined(lines[first:i]))
    return found


def _is_of_outline(line: Line, is_first: bool) -> bool:
    if line.has_value:
        return False
    return line.heading_level > 0 or (not is_first and not line.n_blank)


def _is_title(before: Line, line: Line) -> bool:
    """Whether a rule underlines a title."""
    is_plain = not (before.has_value or before.is_block or before.is_item)
    return is_plain and bool(UNDERLINED.match(f"{before.text}\n{line.text}"))


def _delimits(before: Line, line: Line) -> bool:
    """Whether one of two lines is a rule, or an end, of the value in the other."""
    is_end = line.is_rule or bool(END.match(line.text))
    return (is_end and before.has_value) or (before.is_rule and line.has_value)


def _opening(found: list[Line], line: Line) -> int | None:
    """The rule that this one closes, if a value lies between."""
    for i in range(len(found) - 1, -1, -1):
        if found[i].is_rule or (found[i].is_block and found[i].text.startswith(line.text[:3])):
            is_pair = found[i].text.split("\n", 1)[0].strip() == line.text
            return i if is_pair and any(each.has_value for each in found[i:]) else None
    return None


def _joined(lines: list[Line]) -> Line:
    first, last = lines[0], lines[-1]
    text = "\n".join(line.text for line in lines)
    has_value = any(line.has_value for line in lines)
    return Line(first.start, last.end, text, first.n_blank, has_value, is_block=True)


# -- labels and the cue --


def _with_labels(segment: Segment, pieces: list[Piece]) -> list[Piece]:
    """Pieces with the text that announces an argument made part of it."""
    found: list[Piece] = []
    for piece in pieces:
        is_first = True
        while piece.kind is Kind.ARGUMENT and found and _is_label(segment, found[-1], is_first):
            before = found.pop()
            piece = replace(piece, start=before.start, paragraph=before.paragraph)
            is_first = False
        found.append(piece)
    return found


def _is_label(segment: Segment, piece: Piece, is_next: bool) -> bool:
    if piece.kind is not Kind.TEXT or piece.heading_level:
        return False
    text = segment.text[piece.start : piece.end]
    if is_next and not TERMINATED.search(text) and "\n" not in text:
        return True
    return not piece.is_whole and bool(_ANNOUNCES.search(text))


def _with_cue(segment: Segment, pieces: list[Piece]) -> list[Piece]:
    if pieces and pieces[-1].kind is Kind.TEXT and _is_cue(segment, pieces[-1]):
        pieces[-1] = replace(pieces[-1], kind=Kind.CUE)
    return pieces


def _is_cue(segment: Segment, piece: Piece) -> bool:
    text = segment.text[piece.start : piece.end]
    lines = text.splitlines()
    if _BEGINS_REPLY.match(text) or text.endswith(":"):
        return True
    if any(line.is_open for line in split_lines(text, frozenset())):
        return True
    if piece.heading_level:
        return len(lines) == 1
    if piece.is_whole:
        label = re.sub(r"[^a-z ]", "", lines[0].lower()).split()
        is_known = bool(label) and (label[-1] in TASK_LABELS | FORM_LABELS or label[0] in VERBS)
        return (lines[0].endswith(":") and not is_known) or len(lines[-1].strip()) < 4
    return not TERMINATED.search(text) and not _is_unfinished_instruction(segment, piece)


def _is_unfinished_instruction(segment: Segment, piece: Piece) -> bool:
    """A line that only lacks its full stop, with nothing that goes on from it directly.

    Behind a form in closed braces nothing goes on.
    """
    text = segment.text[piece.start : piece.end]
    words = text.lower().split()
    is_apart = not segment.is_prompt or "\n" in segment.text[piece.end :]
    is_instruction = words[0] in VERBS | ADVERBS and len(words) > 3
    is_form = text.endswith("}") and text.count("{") == text.count("}")
    return is_instruction and (is_form or (is_apart and text[-1].isalnum()))
