"""A random program as a tree of statements, and the marks of its watched constructs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Statement:
    """A statement. kind: its construct; lines: those of a simple statement, or the heads of its
    blocks.
    """

    kind: str
    lines: list[str]
    blocks: list[list[Statement]] = field(default_factory=list)
    before: list[str] = field(default_factory=list)  # lines before the first head
    after: list[str] = field(default_factory=list)

    def render(self, indent: str = "    ") -> Iterator[str]:
        yield from (indent + line for line in self.before)
        if not self.blocks:
            yield from (indent + line for line in self.lines)
        for head, block in zip(self.lines, self.blocks, strict=False):
            yield indent + head
            yield from rendered(block, indent + "    ")
        yield from (indent + line for line in self.after)


def rendered(block: list[Statement], indent: str = "    ") -> Iterator[str]:
    if not block:
        yield indent + "pass"
    for statement in block:
        yield from statement.render(indent)


@dataclass(frozen=True)
class Mark:
    """A watched construct in a program. instead: the source that replaces it, to see whether the
    program's results depend on it.
    """

    kind: str
    written: str
    instead: str

    def without(self, source: str) -> str:
        return source.replace(self.written, self.instead)


@dataclass(frozen=True)
class Place:
    """The place of a statement. sure: names that are set on its stream; maybe: names that are set
    on some paths.
    """

    stream: str = "s"
    depth: int = 0
    sure: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    is_loop: bool = False  # `break` is possible
    is_dynamic: bool = False  # in a loop with an unknown number of iterations
    is_role: bool = False
    is_called: bool = False
    outer: str = "top"
    is_safe: bool = False  # errors are handled
