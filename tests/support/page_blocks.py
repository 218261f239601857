"""The blocks of a page of docs, in order, and the convention by which they run.

- A block with a title writes a file of that name: ```` ```python title="prog.py" ````.
- `python` without a title runs; the blocks of a page share their names.
- `console` has commands after `$ `, each with what it prints; `…` stands for anything.
- `sh` runs to its end, and must succeed. `sgc serve` and `sgc route` go on beside what follows.
- A comment `<!-- run LANGUAGE` … `-->` is a block that readers do not see.
- `<!-- not run: WHY -->` above a block leaves it out, and `<!-- exits: 1 -->` expects that code.

Other languages (`text`, `json`, …) without a title are only shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

RUN = ("python", "console", "sh")
_HIDDEN = re.compile(r"<!-- run (\S+)(?: title=\"([^\"]+)\")?\n(.*?)^-->", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"<!-- (not run|exits): (.+?) -->\s*\Z")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page. line: where its text begins; why_not: why it is not run."""

    language: str
    title: str | None
    text: str
    line: int
    why_not: str | None = None
    exits: int = 0

    @property
    def runs(self) -> bool:
        return self.why_not is None and (self.title is not None or self.language in RUN)


def tokens_of(text: str) -> list:
    return MarkdownIt("commonmark").enable("table").parse(text)


@cache
def blocks_of(path: Path) -> list[Block]:
    """All blocks of a page, and the comments that are blocks."""
    found: list[Block] = []
    mark: tuple[str, str] | None = None
    for token in tokens_of(path.read_text(encoding="utf-8")):
        line = (token.map or [0])[0] + 2
        if token.type == "fence":
            found.append(_block(token.info, token.content, line, mark))
            mark = None
        elif token.type == "html_block":
            marked = _MARK.search(token.content)
            mark = (marked[1], marked[2]) if marked else None
            for hidden in _HIDDEN.finditer(token.content):
                found.append(Block(hidden[1], hidden[2], hidden[3], line))
        elif token.type != "inline" and mark is not None:
            raise AssertionError(f"{path.name}:{line}: a mark that is above no block: {mark}")
    return found


def _block(info: str, text: str, line: int, mark: tuple[str, str] | None) -> Block:
    language = info.split()[0] if info.split() else "text"
    title = re.search(r'title="([^"]+)"', info)
    kind, said = mark or ("", "")
    return Block(
        language,
        title[1] if title else None,
        text,
        line,
        why_not=said if kind == "not run" else None,
        exits=int(said) if kind == "exits" else 0,
    )


@dataclass(frozen=True, slots=True)
class Typed:
    """A command of a console block, and what it prints."""

    command: str
    expected: str
    line: int


def typed_in(block: Block) -> list[Typed]:
    """The commands of a console block; one that ends with a backslash goes on in the next line."""
    found: list[Typed] = []
    lines = block.text.splitlines(keepends=True)
    at = 0
    while at < len(lines):
        assert lines[at].startswith("$ "), f"no command: {lines[at]!r}"
        start = at
        command = lines[at][2:]
        while command.rstrip("\n").endswith("\\"):
            at += 1
            command += lines[at]
        at += 1
        begin = at
        while at < len(lines) and not lines[at].startswith("$ "):
            at += 1
        found.append(Typed(command.strip(), "".join(lines[begin:at]), block.line + start))
    return found


def fits(expected: str, printed: str) -> bool:
    """Whether what was printed is what was expected; `…` stands for anything."""
    parts = [re.escape(part) for part in _plain(expected).split("…")]
    return re.fullmatch(".*?".join(parts), _plain(printed), re.DOTALL) is not None


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


# What differs from run to run.
_DIFFERS = (
    (re.compile(r"\b\d+\.\d+( ?)s\b"), r"…\1s"),
    (re.compile(r"\bseed \d{3,}\b"), "seed …"),
    (re.compile(r"\b\d+(\.\d+)? ms\b"), "… ms"),
)


def shortened(printed: str) -> str:
    """What was printed, as a page shows it."""
    for pattern, by in _DIFFERS:
        printed = pattern.sub(by, printed)
    return _plain(printed) + "\n" if printed.strip() else ""
