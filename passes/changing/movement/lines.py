"""Cuts a text into lines and blocks: what stands between delimiters is one block.

A block is a line, or all that lies between a pair of delimiters: fences, tags, triple quotes,
brackets. Values are single characters here, whose places the caller knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r"(```+|~~~+)")
TRIPLE = re.compile(r'("""|\'\'\')')
TAG = re.compile(r"<([A-Za-z][\w.-]*)(?:\s[^<>]*)?(?<!/)>|\[([A-Za-z][\w -]{0,30})\]")
PAIRS = {"<<<": ">>>", "{{": "}}", "«": "»", "“": "”", "‘‘": "’’"}
BEGIN = re.compile(
    r"^\W*(?:(?:BEGIN|START)(?: OF)? |(?:The )?(?:Begin(?:ning)?|Start) of (?:the )?)"
    r"([\w '’]+?)\W*$"
)
END = re.compile(
    r"^\W*(?:(?:END|STOP)(?: OF)?\b[A-Z ]*|(?:The )?End of (?:the )?[\w '’]{1,40}|"
    r"[A-Z ]+ ENDS?)\W*$"
)
RULE = re.compile(r"^\s*([-=*_#~+.>])(?:\s?\1){2,}\s*$")
HEADING = re.compile(r"^\s*(#{1,6})\s+\S.*$")
TITLE = re.compile(r"^\s*(\*\*[^*\n]{1,60}\*\*:?|[A-Z][A-Z0-9 /&'-]{2,50}:?|==+ .{1,50} ==+)\s*$")
ITEM = re.compile(
    r"^\s*(?:[-*•–+]|\(?\d{1,2}[.)]|\(?[a-zA-Z][.)]|\(?[ivx]{1,4}[.)])(?:\s+|$)|^\s*step \d+\b",
    re.I,
)
# A step of a scale: "3 - exactly what was asked for", "90-100: no mistakes".
SCALE = re.compile(
    r"^\s*(?:[A-Z][\w /-]{1,30}: )?\d{1,3}(?:\s?[-–]\s?\d{1,3})?\s*(?:[=:]|\s[-–])\s+\S"
)
UNDERLINED = re.compile(r"^\w[^\n.!?:]{0,50}\n(?:-{3,}|={3,})$")
LABEL_LEVEL = 7
_CLOSES = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line or a block; start and end are without the white space around it.

    n_blank: empty lines before it; is_block: it has delimiters of its own; is_open: a delimiter in
    it is not closed.
    """

    start: int
    end: int
    text: str
    n_blank: int
    has_value: bool
    is_block: bool = False
    is_open: bool = False

    @property
    def is_rule(self) -> bool:
        """A line of dashes or the like."""
        return bool(RULE.match(self.text))

    @property
    def is_item(self) -> bool:
        return not self.is_rule and bool(ITEM.match(self.text) or SCALE.match(self.text))

    @property
    def heading_level(self) -> int:
        """1 to 6 for a heading, LABEL_LEVEL for a title, 0 for any other line."""
        if self.has_value or self.is_rule or END.match(self.text):
            return 0
        if UNDERLINED.match(self.text):
            return LABEL_LEVEL
        if self.is_block:
            return 0
        heading = HEADING.match(self.text)
        if heading:
            return len(heading.group(1))
        letters = re.sub(r"[^A-Za-z]", "", self.text)
        is_title = bool(TITLE.match(self.text)) and len(letters) > 3
        return LABEL_LEVEL if is_title else 0

    @property
    def is_label(self) -> bool:
        """Whether it announces what follows: `Text:`, or a heading."""
        return self.text.endswith(":") or self.heading_level > 0


def split_lines(text: str, slots: frozenset[int]) -> list[Line]:
    """The lines and blocks of a text, in order; empty lines are none."""
    found: list[Line] = []
    unclosed: set[str] = set()  # what closes nothing from here on; looked for once
    n_blank = position = 0
    while position < len(text):
        end, is_block, is_open = _extent(text, position, unclosed)
        raw = text[position:end]
        body = raw.strip()
        if body:
            start = position + len(raw) - len(raw.lstrip())
            stop = start + len(body)
            has_value = any(i in slots for i in range(start, stop))
            found.append(Line(start, stop, body, n_blank, has_value, is_block, is_open))
            n_blank = 0
        else:
            n_blank += 1
        position = end + 1
    return found


def _extent(text: str, start: int, unclosed: set[str]) -> tuple[int, bool, bool]:
    """Where the line or block that begins here ends; whether it is a block, or left open."""
    end = _line_end(text, start)
    is_open = False
    for closing, kind in _closings(text[start:end]):
        at = None if closing.pattern in unclosed else _find_close(text, end, closing)
        if at is not None:
            return at, True, False
        unclosed.add(closing.pattern)
        if kind == "fence":
            return len(text), True, True
        is_open |= kind == "tag"
    return end, False, is_open


def _closings(line: str) -> Iterator[tuple[re.Pattern[str], str]]:
    """What closes each delimiter that the line opens, and of which kind that is.

    A fence runs to the end of the text if nothing closes it, a tag alone on its line is left open,
    and others are no delimiters then.
    """
    for pattern in (FENCE, TRIPLE):
        marks = pattern.findall(line)
        if len(marks) % 2:
            yield re.compile(re.escape(marks[-1])), "fence"
    for tag in TAG.finditer(line):
        name = tag.group(1) or tag.group(2)
        left, right = ("<", ">") if tag.group(1) else ("[", "]")
        closing = re.compile(re.escape(f"{left}/{name}{right}"), re.I)
        if not closing.search(line, tag.end()):
            is_form = re.match(r"\s*[:=–-]", line[tag.end() :])  # "<name>: <score>"
            is_first = not re.search(r"\w", line[: tag.start()])
            is_alone = tag.group(1) is not None and is_first and not is_form
            yield closing, "tag" if is_alone else "bracket"
    for left, right in PAIRS.items():
        if line.count(left) > line.count(right):
            yield re.compile(re.escape(right)), "bracket"
    begin = BEGIN.match(line)
    if begin:
        end = rf"^\W*(?:the )?(?:end|stop)(?: of)?(?: the)? {re.escape(begin.group(1))}\W*$"
        yield re.compile(end, re.I | re.M), "bracket"
    opens = line.strip()[:1]
    if opens in ("{", "[") and line.count(opens) > line.count(_CLOSES[opens]):
        yield re.compile(rf"^\s*{re.escape(_CLOSES[opens])}", re.M), "bracket"


def _find_close(text: str, end: int, closing: re.Pattern[str]) -> int | None:
    """The end of the line in which a delimiter is closed."""
    found = closing.search(text, end)
    return None if found is None else _line_end(text, found.end())


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end
