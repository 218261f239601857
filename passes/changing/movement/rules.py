"""The rule-based proposer: which pieces of a segment may lead, and why the others stay.

What moves goes, in its order, directly in front of the first argument. It proposes; `check.py`
decides whether a proposal is legal. Another proposer may take its place (`sgc/proposer/model.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, takewhile

from sgc.passes.changing.movement.antecedents import names_argument
from sgc.passes.changing.movement.directives import (
    asks_for_work,
    is_anchored,
    is_persona,
    mentions,
    speaks_of,
)
from sgc.passes.changing.movement.labels import (
    argument_nouns,
    is_inline,
    is_stated,
    long_labels,
    says_who,
    shared_nouns,
    twin_label,
)
from sgc.passes.changing.movement.lines import split_lines
from sgc.passes.changing.movement.others import is_asked_for, may_go_on, sign_of_others
from sgc.passes.changing.movement.pieces import Kind, Piece
from sgc.passes.changing.movement.pointers import refers_back
from sgc.passes.changing.movement.read import (
    LOCAL,
    MAX_BEFORE_CHARS,
    Setting,
    refusal,
)
from sgc.passes.changing.movement.streams import Segment
from sgc.passes.changing.movement.vocabulary import ANSWERING, ASKED, ENDS_PHRASE, GENERIC

_ITEM = re.compile(r"[-*•+]\s|\(?(?:\d{1,2}|[a-z])[.)]\s|(?:step|part|task) \d", re.I)
# How the argument's text is to be taken: said behind it, it guards; said before it, it is text.
_GUARD = re.compile(
    r"\b(?:ignor\w+|disregard\w*|obey\w*|(?:un)?trust\w*|inject\w*|manipulat\w*|instructions?|"
    r"commands?|requests?|execut\w+|as data|(?:asks?|tells?) you|quotation)\b",
    re.I,
)
_ORDERED = re.compile(
    r"\b(?:after|afterwards?|at the (?:end|bottom)|beneath|underneath|follows?|finally|followed by|"
    r"end of (?:the|this)|later|lastly)\b",
    re.I,
)
_LETTER = re.compile(
    r"(?:dear|hi|hello|hey|greetings|good (?:morning|evening))\b.{0,60}[,!]$", re.I
)
_SIGN_OFF = re.compile(
    r"(?:(?:best|kind|warm|many) )?(?:regards|wishes|thanks|sincerely|cheers|yours)[\w ]{0,12},?$",
    re.I,
)
_ABOVE = re.compile(r"\b(the (?:[\w-]+ )?[\w-]+) above\b", re.I)
_CLOSING = re.compile(
    r"(?:(?:that|this) (?:was|is)|here ends) (?:the end of )?the "
    r"(?:(?:whole|full|entire|complete) )?\w+\.$",
    re.I,
)
_CLOSING_REASON = "it says that the argument ends"
_UNRELATED = "it names neither an argument nor what to answer, and may be part of what is given"
_TOGETHER = "it is together with text that stays"
_BEHIND = "text before it stays, and it may speak of that"
_GOES_ON = "it may go on with the argument, which is called what instructions are"
_NEEDED = "what follows it stays, and may speak of it"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A piece that stays, and why."""

    piece: Piece
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """order: pieces by number as they are to stand; reason: why nothing is proposed at all."""

    order: tuple[int, ...]
    refusals: tuple[Refusal, ...] = ()
    reason: str = ""


def plan(segment: Segment, pieces: tuple[Piece, ...]) -> Plan:
    """What the rules propose for a segment; the order as it is where nothing may move."""
    same = tuple(range(len(pieces)))
    first = next((i for i in same if pieces[i].kind is Kind.ARGUMENT), None)
    if first is None or all(piece.kind is not Kind.TEXT for piece in pieces[first:]):
        return Plan(same)
    reason = _reason_against_all(segment, pieces, first)
    if reason:
        return Plan(same, reason=reason)
    moved, refusals = _Walk(segment, pieces, first).sorted()
    rest = [i for i in same[first:] if i not in moved]
    return Plan((*same[:first], *moved, *rest), tuple(refusals))


def _reason_against_all(segment: Segment, pieces: tuple[Piece, ...], first: int) -> str:
    lines = split_lines(segment.text, frozenset(segment.slots))
    if any(line.is_open for line in lines if line.start < pieces[-1].start):
        return "a delimiter is not closed"
    if any(_is_letter(line.text) for line in lines if not line.is_block):
        return "it looks like a letter"
    for piece in pieces:
        if piece.kind is not Kind.CUE and _has_open_quote(segment.text[piece.start : piece.end]):
            return "a quotation is not closed"
        if piece.kind is not Kind.CUE and _has_open_bracket(segment.text[piece.start : piece.end]):
            return "a bracket is not closed"
    for piece in pieces[first:]:
        guard = _GUARD.search(segment.text, piece.start, piece.end)
        if guard and piece.kind is not Kind.CUE:
            return f"{guard.group()!r} may say how to take the argument's text, and stays behind it"
    twin = twin_label(segment, pieces)
    if twin:
        return f"{twin!r} is there twice, and only places tell the two apart"
    if pieces[-1].kind is Kind.CUE and not _is_cue_asked_for(segment, pieces):
        return "the reply's label names nothing that is asked for: the text may be what is given"
    for piece in pieces[: first + 1]:
        order = _ORDERED.search(segment.text, piece.start, piece.end)
        if order:
            return f"{order.group()!r} in front of the argument speaks of what comes when"
    return ""


def _is_cue_asked_for(segment: Segment, pieces: tuple[Piece, ...]) -> bool:
    cue = segment.text[pieces[-1].start : pieces[-1].end]
    asked = " ".join(segment.text[p.start : p.end] for p in pieces if p.kind is Kind.TEXT)
    return is_asked_for(cue, asked, argument_nouns(segment, pieces))


class _Walk:
    """Goes through what follows the first argument."""

    def __init__(self, segment: Segment, pieces: tuple[Piece, ...], first: int) -> None:
        self.segment = segment
        self.pieces = pieces
        self.first = first
        self.nouns = argument_nouns(segment, pieces)
        self.shared = shared_nouns(segment, pieces)
        self.led = {_normal(self._text(piece)) for piece in pieces[:first]}
        self.labels = long_labels(segment, pieces)
        self.last_argument = max(i for i, p in enumerate(pieces) if p.kind is Kind.ARGUMENT)
        self.has_heading = any(piece.heading_level for piece in pieces[:first])
        self.levels = {p.heading_level for p in pieces if p.kind is Kind.ARGUMENT}

    def sorted(self) -> tuple[list[int], list[Refusal]]:
        """What moves, in order, and why the rest stays: nothing moves past text that stays."""
        moved: list[int] = []
        refusals: list[Refusal] = []
        setting = Setting(self.nouns, GENERIC, self.shared)
        last: list[int] = []  # what moves from directly before
        for group in self._groups():
            if self._closes(group[0]):
                refusals.append(Refusal(self.pieces[group[0]], _CLOSING_REASON))
                group = group[1:]
            if not group:
                continue
            piece = self.pieces[group[0]]
            if piece.kind is Kind.ARGUMENT:
                inline = is_inline(self.segment, piece)
                stated = inline and is_stated(self.segment, piece)
                persona = inline and says_who(self.segment, piece)
                setting = replace(setting, is_inline=inline, is_stated=stated, is_persona=persona)
                last = []
            elif piece.kind is Kind.CUE:
                if last and refers_back(self._text(piece)):
                    moved = [i for i in moved if i not in last]
                    refusals += [Refusal(self.pieces[i], _NEEDED) for i in last]
            elif found := self._group_refusals(group, setting):
                behind = [p for p in self.pieces[group[-1] + 1 :] if p.kind is Kind.TEXT]
                part = self._beginning(group, found, setting) + self._end(group, found, setting)
                moved += part
                led = {self.pieces[i] for i in part}
                refusals += [
                    *(r for r in found if r.piece not in led),
                    *(Refusal(p, _BEHIND) for p in behind),
                ]
                break
            else:
                moved += group
                last = group
        return moved, refusals

    def _closes(self, number: int) -> bool:
        """Whether it says that the argument before it is over, as a delimiter would."""
        is_behind = self.pieces[number - 1].kind is Kind.ARGUMENT if number else False
        return is_behind and bool(_CLOSING.match(self._text(self.pieces[number])))

    def _groups(self) -> Iterator[list[int]]:
        """Arguments and cues by themselves, all text between two of them together."""

        def key(i: int) -> int:
            return -1 if self.pieces[i].kind is Kind.TEXT else i

        for _, group in groupby(range(self.first, len(self.pieces)), key):
            yield list(group)

    def _group_refusals(self, group: list[int], setting: Setting) -> list[Refusal]:
        """Empty if all of a group may lead: what stays could go on with what is before it."""
        belongs = self._belongs(group)
        if belongs:
            return [Refusal(self.pieces[i], belongs) for i in group]
        if setting.is_inline:
            setting = replace(setting, is_apart=True)
            if is_persona(self._text(self.pieces[group[0]])):
                setting = replace(setting, is_inline=False, is_stated=False)
        whole = " ".join(self._text(self.pieces[i]) for i in group)
        # Of text behind an instruction with an argument in it, `refusal` asks more than that.
        is_anchor = is_anchored(whole, self.nouns | GENERIC) or self._is_last_task(group)
        if not (setting.is_inline or is_anchor):
            return [Refusal(self.pieces[i], _UNRELATED) for i in group]
        sign = sign_of_others(whole, self._text_before(group[0]), self.nouns)
        if sign:
            reason = f"{sign!r} may be said to somebody else, in what is given"
            return [Refusal(self.pieces[i], reason) for i in group]
        if may_go_on(self._first_paragraph(group), self.nouns):
            return [Refusal(self.pieces[i], _GOES_ON) for i in group]
        is_between = group[0] < self.last_argument
        if is_between and not self._speaks_of_later(whole, group[-1] + 1):
            return [Refusal(self.pieces[i], LOCAL) for i in group]
        found = self._one_by_one(group, setting, is_between)
        if found and self._has_task(group, found, setting):
            found = self._one_by_one(group, replace(setting, is_task=True), is_between)
        return [*found, *(Refusal(p, _TOGETHER) for p in self._others(group, found) if found)]

    def _one_by_one(self, group: list[int], setting: Setting, is_between: bool) -> list[Refusal]:
        found: list[Refusal] = []
        paragraph = None
        for i in group:
            piece = self.pieces[i]
            # What names an argument says so for its paragraph.
            if piece.paragraph != paragraph:
                setting = replace(setting, is_between=is_between)
            reason = self._refusal(piece, setting)
            if reason:
                found.append(Refusal(piece, reason))
            paragraph = None if reason else piece.paragraph
            before = f"{setting.before} {self._text(piece)}".strip()[-MAX_BEFORE_CHARS:]
            is_loose = setting.is_loose or (not reason and self._is_anchor(piece, setting))
            setting = replace(setting, before=before, is_between=False, is_loose=is_loose)
        return found

    def _has_task(self, group: list[int], found: list[Refusal], setting: Setting) -> bool:
        """Whether text behind all arguments has an instruction about them: then what stands
        beside it need not be one.
        """
        if setting.is_inline or group[0] < self.last_argument:
            return False
        others = self._others(group, found)
        if self.pieces[group[0]] in others and self._is_last_task(group):
            return True
        texts = (self._text(piece) for piece in others)
        return any(names_argument(text, self.nouns) and text[-1] != "?" for text in texts)

    def _is_last_task(self, group: list[int]) -> bool:
        """Whether a paragraph of its own behind all arguments says what to make of them."""
        return group[0] > self.last_argument and asks_for_work(self._text(self.pieces[group[0]]))

    def _belongs(self, group: list[int]) -> str:
        """Why text belongs to the argument before it, by where it stands; "" if it does not."""
        before, piece = self.pieces[group[0] - 1], self.pieces[group[0]]
        if self.segment.text[before.end : piece.start].count("\n") < 2:
            return "no empty line parts it from the argument"
        is_headed = before.heading_level > 0 or self._text(before).startswith("#")
        if is_headed and not piece.heading_level:
            return "it stands under the argument's heading"
        if any(_ITEM.match(self._text(self.pieces[i])) for i in group):
            return "it is a list, which may go on with the argument"
        return ""

    def _beginning(self, group: list[int], found: list[Refusal], setting: Setting) -> list[int]:
        """The paragraphs of a group in front of the first piece that stays, if they may lead.

        By themselves they are instructions that name an argument, and nothing that stays speaks of
        them.
        """
        stays = self._refused(group, found)[0]
        rest = [p for p in self.pieces[stays:] if p.kind is Kind.TEXT]
        if any(refers_back(self._text(piece)) for piece in rest):
            return []
        part = [i for i in group if self.pieces[i].paragraph < self.pieces[stays].paragraph]
        text = " ".join(self._text(self.pieces[i]) for i in part)
        is_led = mentions(text, self.nouns) and not self._group_refusals(part, setting)
        return part if is_led else []

    def _end(self, group: list[int], found: list[Refusal], setting: Setting) -> list[int]:
        """What is behind the pieces of a group that stay, if they stay for naming an argument's
        place alone: "Use the context above to answer. Say so if the context does not tell."
        """
        stays = self._refused(group, found)
        for i in stays:
            unplaced, n_places = _ABOVE.subn(r"\1", self._text(self.pieces[i]))
            if not n_places or self._refusal(self.pieces[i], setting, unplaced):
                return []
        part = [i for i in group if i > stays[-1]]
        text = " ".join(self._text(self.pieces[i]) for i in part)
        is_led = mentions(text, self.nouns) and not self._group_refusals(part, setting)
        return part if is_led else []

    def _speaks_of_later(self, text: str, start: int) -> bool:
        """Whether text between arguments names one behind it, and not only what it asks for.

        "Summarize the article." in front of "Summary: {summary}" tells how the summary came about.
        """
        nouns = argument_nouns(self.segment, self.pieces[start:])
        named = re.findall(r"\b(?:the|each|every|any)(?=((?: [\w'-]+){1,3}))", text.lower())
        phrases = (takewhile(lambda w: w not in ENDS_PHRASE, each.split()) for each in named)
        is_named = any(word.removesuffix("'s") in nouns for phrase in phrases for word in phrase)
        return is_named or (bool(nouns & ASKED) and mentions(text, ANSWERING))

    def _refused(self, group: list[int], found: list[Refusal]) -> list[int]:
        """The pieces that stay for what they say, and not for what stands beside them."""
        own = {refusal.piece for refusal in found if refusal.reason != _TOGETHER}
        return [i for i in group if self.pieces[i] in own]

    def _others(self, group: list[int], found: list[Refusal]) -> list[Piece]:
        refused = {refusal.piece for refusal in found}
        return [self.pieces[i] for i in group if self.pieces[i] not in refused]

    def _is_anchor(self, piece: Piece, setting: Setting) -> bool:
        return not setting.is_inline and speaks_of(self._text(piece), self.nouns)

    def _refusal(self, piece: Piece, setting: Setting, text: str = "") -> str:
        if piece.is_nested:
            return "it stands under the heading of an argument"
        is_alone = self.levels == {0} and not self.has_heading
        if piece.heading_level and self.levels != {piece.heading_level} and not is_alone:
            return "its heading is of another level than the argument's"
        text = text or self._text(piece)
        if setting.is_between and re.match(
            r"(?:please )?(?:read|look|consider|study)\b", text, re.I
        ):
            return LOCAL
        if _normal(text) in self.led:
            return "it repeats what is said in front of the argument"
        is_heading = piece.heading_level > 0
        for label in self.labels:  # "the last question" is the argument behind "Last question:"
            text = re.sub(rf"\b{re.escape(label)}\b", label.split()[-1], text, flags=re.I)
        return refusal(text, setting, is_whole=piece.is_whole, is_heading=is_heading)

    def _first_paragraph(self, group: list[int]) -> str:
        pieces = [self.pieces[i] for i in group]
        first = [piece for piece in pieces if piece.paragraph == pieces[0].paragraph]
        return " ".join(map(self._text, first))

    def _text_before(self, number: int) -> str:
        names = " ".join(name.replace("_", " ") for name in self.segment.slots.values())
        return f"{names} {self.segment.text[: self.pieces[number].start]}"

    def _text(self, piece: Piece) -> str:
        return self.segment.text[piece.start : piece.end]


def _has_open_quote(text: str) -> bool:
    """Whether quotation marks do not come in pairs: what is quoted may go on in another piece."""
    return text.count('"') % 2 == 1 or text.count("“") != text.count("”")


def _has_open_bracket(text: str) -> bool:
    return any(text.count(left) != text.count(right) for left, right in ("[]", "{}"))


def _is_letter(line: str) -> bool:
    return bool(_LETTER.match(line) or _SIGN_OFF.match(line))


def _normal(text: str) -> str:
    return re.sub(r"\W+", " ", text.lower()).strip()
