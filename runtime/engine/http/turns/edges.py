"""Text without the white space at its edges, while it grows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Edges:
    """starts_bare, ends_bare: whether white space at the beginning, or the end, is left out."""

    starts_bare: bool = False
    ends_bare: bool = False
    _held: str = ""

    def feed(self, text: str) -> str:
        """The text that can be sent: white space at its end is held back."""
        text = self._held + text
        if self.starts_bare:
            text = text.lstrip()
        bare = text.rstrip() if self.ends_bare else text
        self._held = text[len(bare) :]
        self.starts_bare = self.starts_bare and not bare
        return bare

    def rest(self) -> str:
        """Takes the white space that was held back."""
        held, self._held = self._held, ""
        return held
