"""A training text: the parts that the program writes, and those that the model generates.

Parts are tokenized as in the engine: each run of text that a program writes as one string, and each
generation as one string. `shapes.py`, `programs/` and `batches.py` call it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

END = "<|endoftext|>"
OPEN, CLOSE = "<|im_start|>", "<|im_end|>"
KEPT_BORDER = 0.25  # share of prompts with a final space that are not healed


@dataclass(slots=True)
class Text:
    """parts: (text, whether it is generated)."""

    r: Random
    parts: list[tuple[str, bool]] = field(default_factory=list)

    def ask(self, text: str) -> Text:
        """Appends text that the program writes."""
        if self.parts and not self.parts[-1][1]:
            text = self.parts.pop()[0] + text
        if text:
            self.parts.append((text, False))
        return self

    def reply(self, text: str) -> Text:
        """Appends text that the model generates. It mostly takes over a space that ends the prompt,
        as in healing."""
        ends_open = self.parts and not self.parts[-1][1] and self.parts[-1][0].endswith(" ")
        if ends_open and self.r.random() >= KEPT_BORDER:
            before = self.parts.pop()[0]
            self.ask(before[:-1])
            text = " " + text
        self.parts.append((text, True))
        return self

    def end(self) -> Text:
        """Appends the end of the text, which the model generates."""
        return self.reply(END)

    def turn(self, role: str, content: str) -> Text:
        """Appends a message that is not generated."""
        return self.ask(f"{OPEN}{role}\n{content}{CLOSE}\n")

    def answer(self, content: str, given: str = "") -> Text:
        """Appends the assistant's message. given: its beginning, which the program writes."""
        self.ask(f"{OPEN}assistant\n{given}")
        return self.reply(content + CLOSE).ask("\n")

    @property
    def prompt(self) -> str:
        """All text before the last generation, which is not the end of the text."""
        generated = [i for i, (text, is_new) in enumerate(self.parts) if is_new and text != END]
        return "".join(text for text, _ in self.parts[: generated[-1]])

    def __str__(self) -> str:
        return "".join(text for text, _ in self.parts)
