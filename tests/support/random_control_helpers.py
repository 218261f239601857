"""Helpers in another module that random programs call."""

from __future__ import annotations

import sgc


def framed(text: str) -> str:
    return f"<{text}>"


def cut(text: str) -> str:
    return framed(text)[1:-2]


def kind_of(text: str) -> str:
    if text.strip() in ("yes", "no"):
        return "short"
    return "many" if "," in text else "other"


def asked(s: sgc.ProgramState, text: str) -> str:
    s += "again" + text + sgc.gen("asked", max_tokens=4)
    return str(s["asked"])


class Shelf:
    """Keeps texts."""

    def __init__(self, first: str) -> None:
        self.texts = [first]

    def put(self, text: str) -> None:
        self.texts.append(text.strip())

    def has(self, text: str) -> bool:
        return text in self.texts

    @property
    def shown(self) -> str:
        return "+".join(self.texts)
