"""A module of the user's that programs of tests change, by its name."""

from __future__ import annotations

from typing import Any, ClassVar


class Kept:
    texts: ClassVar[list[str]] = []


LAST: Any = None
TEXTS: list[Any] = []
BY_NAME: dict[str, Any] = {}
KEPT = Kept()


def state() -> str:
    shown = sorted(name for name in globals() if not name.startswith("_"))
    return repr((LAST, TEXTS, BY_NAME, vars(KEPT), Kept.texts, vars(state), shown))
