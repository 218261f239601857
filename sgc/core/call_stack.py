"""A program's functions that are running: their paths, and the defaults of their generations."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sgc.core.places import user_loc
from sgc.errors import UsageError


@dataclass(slots=True)
class _Call:
    """path: its place among the calls. heal: None is the run's default. ahead: tokens that one
    request asks for from providers that bill each request; 0: only those of its own generation.
    max_turns: of its loops; None is without a bound.
    """

    path: str
    heal: bool | None
    ahead: int
    max_turns: int | None
    n_calls: int = 0  # calls that it has made


class CallStack:
    """Belongs to one thread at a time.

    default_heal, default_max_turns: those of the outermost function.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._calls: list[_Call] = []
        self._n_maps: Counter[str] = Counter()  # by the path of the function that maps
        self._thread = threading.get_ident()
        self.default_heal: bool | None = None
        self.default_max_turns: int | None = None

    @contextmanager
    def call(
        self,
        name: str,
        heal: bool | None = None,
        path: str = "",
        ahead: int = 0,
        max_turns: int | None = None,
    ) -> Iterator[str]:
        """Enters a call of a function; yields its path, from which seeds are derived.

        heal, max_turns: None inherits the caller's. path: of a mapped call, which is not in
        the caller's count.
        """
        self.refuse_other_threads(name)
        if not path and not self._calls:
            path = name
        elif not path:
            caller = self._calls[-1]
            path = f"{caller.path}/{name}.{caller.n_calls}"
            caller.n_calls += 1
        heal = self.heal if heal is None else heal
        turns = self.max_turns if max_turns is None else max_turns
        self._calls.append(_Call(path, heal, ahead, turns))
        try:
            yield path
        finally:
            self._calls.pop()

    @property
    def heal(self) -> bool | None:
        """Whether the running function's generations heal; None is the run's default."""
        return self._calls[-1].heal if self._calls else self.default_heal

    @property
    def max_turns(self) -> int | None:
        """How many turns a loop of the running function may take; None is without a bound."""
        return self._calls[-1].max_turns if self._calls else self.default_max_turns

    @property
    def ahead(self) -> int:
        """Tokens that one request of the running function asks for; 0: only its generation's."""
        return self._calls[-1].ahead if self._calls else 0

    def next_map(self) -> tuple[str, int]:
        """The running function's path, and the number of the map that it begins."""
        self.refuse_other_threads("sgc.map")
        caller = self._calls[-1].path
        self._n_maps[caller] += 1
        return caller, self._n_maps[caller] - 1

    def adopt_thread(self) -> None:
        """Makes the calling thread the program's."""
        self._thread = threading.get_ident()

    @property
    def is_other_thread(self) -> bool:
        """Whether the calling thread is not the program's."""
        return threading.get_ident() != self._thread

    def refuse_other_threads(self, name: str) -> None:
        """Raises UsageError on any thread but the program's."""
        if self.is_other_thread:
            raise UsageError(
                f"{name} is called by another thread than the one that runs {self._program}",
                where=str(user_loc() or ""),
                hint="streams of one program run in parallel without threads",
            )
