"""A training text: what the program writes, and what the model is to generate.

The parts are tokenized as the engine does it: each stretch that a program writes as one string,
each generation as one string. Called by `tasks.py`, `shapes.py` and `batches.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

END = "<|endoftext|>"
OPEN, CLOSE = "<|im_start|>", "<|im_end|>"
KEPT_BORDER = 0.25  # prompts that end with a space and are not healed


@dataclass(slots=True)
class Text:
    """parts: (text, whether it is generated)."""

    r: Random
    parts: list[tuple[str, bool]] = field(default_factory=list)

    def ask(self, text: str) -> Text:
        """What the program writes."""
        if self.parts and not self.parts[-1][1]:
            text = self.parts.pop()[0] + text
        if text:
            self.parts.append((text, False))
        return self

    def reply(self, text: str) -> Text:
        """What the model generates. A space that ends the prompt mostly goes over to it, as
        healing does it."""
        ends_open = self.parts and not self.parts[-1][1] and self.parts[-1][0].endswith(" ")
        if ends_open and self.r.random() >= KEPT_BORDER:
            before = self.parts.pop()[0]
            self.ask(before[:-1])
            text = " " + text
        self.parts.append((text, True))
        return self

    def end(self) -> Text:
        """The model ends the text."""
        return self.reply(END)

    def turn(self, role: str, content: str) -> Text:
        """A message that is not generated."""
        return self.ask(f"{OPEN}{role}\n{content}{CLOSE}\n")

    def answer(self, content: str, given: str = "") -> Text:
        """The assistant's message; `given`: its beginning, which the program writes."""
        self.ask(f"{OPEN}assistant\n{given}")
        return self.reply(content + CLOSE).ask("\n")

    @property
    def prompt(self) -> str:
        """All before the last generation (and the end of the text)."""
        generated = [i for i, (text, is_new) in enumerate(self.parts) if is_new and text != END]
        return "".join(text for text, _ in self.parts[: generated[-1]])

    def __str__(self) -> str:
        return "".join(text for text, _ in self.parts)
