"""Reads calls from generated text while it grows. The text follows `calls_grammar`, so it is
parsed, not searched; a call that is cut off is reported as far as it came."""

from __future__ import annotations

from dataclasses import dataclass, field

from sgc.runtime.engine.http.turns.formats import CallFormat


@dataclass(frozen=True, slots=True)
class Begun:
    """The beginning of a call: its number and its function's name."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class Arguments:
    """More of a call's arguments."""

    index: int
    text: str


Event = Begun | Arguments


@dataclass(slots=True)
class _Object:
    """Finds the end of a JSON object, text by text."""

    depth: int = 0
    is_in_text: bool = False
    is_escaped: bool = False

    def end_in(self, text: str) -> int | None:
        """The offset after the object's end; None if it goes on."""
        for at, char in enumerate(text):
            if self.is_escaped:
                self.is_escaped = False
            elif self.is_in_text:
                self.is_escaped = char == "\\"
                self.is_in_text = char != '"'
            elif char == '"':
                self.is_in_text = True
            elif char in "{[":
                self.depth += 1
            elif char in "}]":
                self.depth -= 1
                if not self.depth:
                    return at + 1
        return None


@dataclass(slots=True)
class CallText:
    """The calls of one reply."""

    form: CallFormat
    n_calls: int = 0
    _rest: str = ""
    _object: _Object | None = None
    _events: list[Event] = field(default_factory=list)

    def feed(self, text: str) -> list[Event]:
        """The events in the new text."""
        self._rest += text
        while self._begin() if self._object is None else self._go_on():
            pass
        events, self._events = self._events, []
        return events

    def _begin(self) -> bool:
        """Reads up to the next call's arguments; False if they have not begun."""
        before, found, after = self._rest.partition(self.form.between)
        if not found:
            return False
        name = before.rpartition(self.form.before)[2]
        self._events.append(Begun(self.n_calls, name))
        self.n_calls += 1
        self._rest, self._object = after, _Object()
        return True

    def _go_on(self) -> bool:
        """Reads arguments; False if they have not ended."""
        assert self._object is not None
        end = self._object.end_in(self._rest)
        piece, self._rest = self._rest[:end], "" if end is None else self._rest[end:]
        if piece:
            self._events.append(Arguments(self.n_calls - 1, piece))
        if end is None:
            return False
        self._object = None
        return True
