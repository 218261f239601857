"""Streams in lists: a list of the graph holds the variables and the return value of a stream to
which nothing is appended any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from sgc.core.places import here, is_ours
from sgc.core.session import current_session
from sgc.errors import UnknownVariable
from sgc.tracing.kinds.row_types import RETURNED


class EndedState:
    """A stream in a list, as the program reads it. parts: the stream's variables by name, and its
    return value under RETURNED."""

    __slots__ = ("parts",)

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self.parts = dict(parts)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        from sgc.lang.state import ProgramState

        return type(self) if is_ours(1) else ProgramState

    def __getitem__(self, name: str) -> Any:
        if name is None or name == RETURNED:
            self.refuse(f"is asked for {name!r}")
        if name not in self.parts:
            raise UnknownVariable.among(name, list(self.parts)[1:], here())
        return self.parts[name]

    get_var = __getitem__

    def __contains__(self, name: object) -> bool:
        return name != RETURNED and name in self.parts

    @property
    def ret_value(self) -> Any:
        return self.parts[RETURNED]

    def __iadd__(self, other: Any) -> NoReturn:
        self.refuse("is appended to")

    def __setitem__(self, name: str, value: Any) -> NoReturn:
        self.refuse("is given a variable")

    def __repr__(self) -> NoReturn:
        self.refuse("is shown")

    def __eq__(self, other: object) -> NoReturn:
        self.refuse("is compared")

    __hash__ = __eq__  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse(f"is asked for its {name}")

    def refuse(self, what: str) -> NoReturn:
        """Ends the trace, since the stream itself is needed."""
        session: Any = current_session()
        refuse: Callable[[str], NoReturn] = session.refuse_ended
        refuse(what)
