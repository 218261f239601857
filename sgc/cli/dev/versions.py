"""The versions of a program that were run, and which of its requests each one sent."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_VERSIONS = 50
MAX_CHARS = 200_000  # of a version's text while it runs


def finite(value: Any, told: Callable[[float], Any] = lambda _: None) -> Any:
    """A value that a page can read: JSON has no NaN and no infinity. told: what stands for them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else told(value)
    if isinstance(value, dict):
        return {name: finite(each, told) for name, each in value.items()}
    return [finite(each, told) for each in value] if isinstance(value, list) else value


@dataclass(slots=True)
class Version:
    """state: running, done, failed or stopped. asked, kept: the names of generations and choices
    that were sent to a model, and of those that were answered without.
    """

    number: int
    arguments: Mapping[str, Any]
    state: str = "running"
    asked: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    text: str = ""
    error: str = ""
    returned: Any = None
    took_s: float = 0.0
    has_page: bool = False

    def told(self, with_text: bool) -> dict[str, Any]:
        return {
            "number": self.number, "state": self.state, "asked": self.asked, "kept": self.kept,
            "text": self.text[-MAX_CHARS:] if with_text else "", "error": self.error,
            "returned": finite(self.returned, str), "took_s": round(self.took_s, 3),
            "arguments": dict(self.arguments), "has_page": self.has_page,
        }  # fmt: skip


class Versions:
    """The last versions, and a count of changes that readers wait for.

    folder: where a version's arguments, log and page are, as `N.args.json`, `N.log`, `N.html`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about: dict[str, Any] = {}
        self.all: list[Version] = []
        self._n_changes = 0
        self._changed = asyncio.Event()

    def begin(self, arguments: Mapping[str, Any]) -> Version:
        number = self.all[-1].number + 1 if self.all else 1
        made = Version(number, dict(arguments))
        self.all.append(made)
        for old in self.all[:-MAX_VERSIONS]:
            for path_of in (self.arguments, self.log, self.page):
                path_of(old.number).unlink(missing_ok=True)
        del self.all[:-MAX_VERSIONS]
        self.change()
        return made

    def arguments(self, number: int) -> Path:
        return self.folder / f"{number}.args.json"

    def log(self, number: int) -> Path:
        return self.folder / f"{number}.log"

    def page(self, number: int) -> Path:
        return self.folder / f"{number}.html"

    def change(self) -> None:
        """Wakes those who wait for a change."""
        self._n_changes += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def state(self, seen: int, wait_s: float) -> dict[str, Any]:
        """Returns all versions once something changed since `seen`, or after `wait_s` seconds."""
        if seen == self._n_changes:
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            except TimeoutError:
                pass
        # The page shows the last version's text; the others' texts are on their own pages.
        versions = [each.told(each is self.all[-1]) for each in self.all]
        return {"changes": self._n_changes, **self.about, "versions": versions}
