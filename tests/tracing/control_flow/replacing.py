"""Objects, and functions that replace their methods, of another module than the program's."""

from __future__ import annotations

from typing import Any


class Open:
    def __init__(self, v: str):
        self.v = v

    def both(self, x: str) -> str:
        return f"{self.v}+{x}"


class Slotted:
    __slots__ = ("both", "v")

    def __init__(self, v: str):
        self.v, self.both = v, lambda x: f"{v}+{x}"


def replaces(box: Any, x: str) -> str:
    box.both = lambda y: f"other {y}"
    return x


def replaces_by_name(box: Any, x: str) -> str:
    if x == "yes":
        setattr(box, "both", lambda y: f"other {y}")  # noqa: B010
    return x
