"""Programs around a function that a test is about: it gets a reply, or its words, and what it gives
is told."""

from __future__ import annotations

from typing import Any

import sgc

# Replies of several words, equal ones among them.
WORDS = (
    "", "a", "ab ab c", "abd abc abd x", "no yes no", "bomb poison", "3 4", "c c c x ab",
    "é e\u0301 É",
)  # fmt: skip


def around(body: Any, gets_text: bool = False) -> Any:
    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        found = body(s, s["a"] if gets_text else s["a"].split())
        s += f"{found}" + sgc.gen("b", max_tokens=3)
        return found

    return shown


def around_failing(body: Any) -> Any:
    """The errors that it raises are told, too."""

    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        try:
            found = body(s, s["a"].split())
        except (IndexError, ValueError) as error:
            s += f"{type(error).__name__}: {error}"
            found = None
        s += f"{found}" + sgc.gen("b", max_tokens=3)
        return found

    return shown
