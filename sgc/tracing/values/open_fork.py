"""Forks into a number of streams known only at run time.

The first loop over such a fork begins one child a turn. When a turn ends, its child's variables go
into lists, one for each name; later loops and joins read these lists.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import Enum
from typing import Any, NoReturn

from sgc.core.places import here
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.errors import UsageError
from sgc.ir import types
from sgc.ir.graph import Lit, Ref
from sgc.ir.limits import MAX_CHILDREN
from sgc.lang.append import shown
from sgc.lang.group import ProgramStateGroup
from sgc.lang.state import ProgramState, fork_error
from sgc.tracing.values.abstract import abstract
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_loops import Items
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.abstract_turns import is_for_of
from sgc.tracing.values.computing import whole
from sgc.tracing.values.json.abstract_json import AbstractJson
from sgc.tracing.values.recorder import Recorder

_ONE_LOOP = "do all that a child does in one turn of one `for` over the fork; or " + INTERPRET


class _Phase(Enum):
    """The phases of a fork's first loop."""

    NEW = "new"  # it has not begun
    FIRST = "first"  # its first turn
    LATER = "later"  # its later turns
    WHOLE = "whole"  # it has begun all children
    PARTLY = "partly"  # it has ended, but other children may be left


class Child(ProgramState):
    """A stream of an open fork. is_over: its turn has ended."""

    of: OpenFork
    is_over = False

    def set_derived(self, name: str | None, value: Any) -> None:
        if self.is_over:
            self.of.refuse("is given a variable after its turn of the loop")
        super().set_derived(name, value)


class EndedChild:
    """A child after the loop that began it; its variables can still be read."""

    def __init__(self, fork: OpenFork, index: Any) -> None:
        self._fork, self._index = fork, index

    def __getitem__(self, name: str) -> Any:
        return self._fork.variable(name, self._index)

    get_var = __getitem__

    def __contains__(self, name: object) -> bool:
        return self._fork.has_variable(name)

    def __iadd__(self, other: Any) -> NoReturn:
        self._fork.refuse("is appended to in a second loop")

    def __setitem__(self, name: str, value: Any) -> NoReturn:
        self._fork.refuse("is given a variable in a second loop")

    def __repr__(self) -> NoReturn:
        self._fork.refuse("is shown in a second loop")

    def __eq__(self, other: object) -> NoReturn:
        self._fork.refuse("is compared in a second loop")

    __hash__ = __eq__  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._fork.refuse(f"is asked for its {name} in a second loop")


class OpenFork(ProgramStateGroup[Any]):
    """The children of a fork, whose number is known only at run time.

    symbol: the number of children. _arguments: the arguments that this number is made of. _fork:
    the state of the open fork, which begins children.
    """

    def __init__(self, session: Recorder, trunk: ProgramState, size: AbstractNumber) -> None:
        self.session, self.src_state, self.symbol = session, trunk, size.symbol
        self._arguments = session.note_size(size)
        results = [("s", types.STREAM), ("fork", types.STREAM)]
        stream, n = Ref(trunk.symbol.name), Ref(size.symbol.name)
        trunk.symbol, self._fork = session.emit("open_fork", results, stream=stream, n=n)
        fork, name = Ref(self._fork.name), Lit(trunk.function_name)
        session.emit("publish", [], stream=fork, name=name, keys=(), items=())
        trunk.paths_of_children()
        self._names, self._roles = dict(trunk._names), tuple(trunk.roles)
        self._generated = dict(trunk._generated)
        self._unsure = set(trunk._unsure)
        self._phase = _Phase.NEW
        self._child: Child | None = None  # of the current turn
        self._last: Child | None = None  # the last one whose turn has ended
        self._lists: dict[str | None, AbstractList] = {}  # the values of each name
        self._partial: dict[str | None, None] = {}  # names that not all children have set

    # -- the first loop -----------------------------------------------------------------

    @property
    def is_filled(self) -> bool:
        return True

    def n_items(self) -> Any:
        return abstract(self.symbol, self.session)

    def iterated(self) -> OpenFork:
        """The fork, for a loop; stops the trace inside its first loop, or after a `break` there."""
        if self._phase in (_Phase.FIRST, _Phase.LATER):
            self.refuse("is used again after `break`, or inside the loop over its fork")
        return self

    def sure_item(self, index: Any) -> Child | EndedChild:
        """The child of a turn: a new one in the first loop."""
        if self._phase in (_Phase.WHOLE, _Phase.PARTLY):
            self._needs_all()
            return EndedChild(self, index)
        self._phase = _Phase.FIRST if self._phase is _Phase.NEW else _Phase.LATER
        results = [("fork", types.STREAM), ("s", types.STREAM)]
        self._fork, symbol = self.session.emit("child", results, stream=Ref(self._fork.name))
        trunk = self.src_state
        child = Child(self.session, trunk.function_name, symbol, trunk.path, self._names)
        child.continues(self._roles, self._generated, self._unsure)
        child.of = self
        self._child = child
        return child

    def end_turn(self) -> None:
        """Keeps the variables of the child whose turn ends."""
        child, self._child = self._child, None
        if child is None:
            return
        own = child.own_values()
        self.session.note_asked(own)
        for name, value in own.items():
            self._keep(name, child._read(value))
        self._partial |= {name: None for name in self._lists if name not in own}
        child.is_over, self._last = True, child

    def _keep(self, name: str | None, value: Any) -> None:
        if name in self._lists:
            self._lists[name].append(value)
            return
        if self._phase is _Phase.LATER:
            self._partial[name] = None
        operand = self.session.operand([value])
        assert isinstance(operand, Ref)
        type_ = self.session.type_of(operand)
        self._lists[name] = abstract(Symbol(operand.name, type_), self.session)

    def end_loop(self, is_whole: bool) -> None:
        if self._phase in (_Phase.NEW, _Phase.FIRST, _Phase.LATER):
            self._phase = _Phase.WHOLE if is_whole else _Phase.PARTLY

    # -- after it -----------------------------------------------------------------------

    def _needs_all(self) -> None:
        if self._phase is not _Phase.WHOLE:
            self.refuse(
                "is read after a loop that may not have begun all",
                "loop over the fork with a list of that length, as in "
                "`for f, x in zip(s.fork(len(xs)), xs):`; or " + INTERPRET,
            )

    def variable(self, name: str | None, index: Any) -> Any:
        """A child's variable."""
        if name not in self._lists:
            assert self._last is not None
            return self._last[name]  # type: ignore[index]
        if name in self._partial:
            self.refuse(f"is asked for {name!r}, which not every child sets")
        return self._lists[name].sure_item(index)

    def has_variable(self, name: object) -> bool:
        if name in self._partial:
            self.refuse(f"is asked whether it has {name!r}, which not every child sets")
        assert self._last is not None
        return name in self._last

    def __getitem__(self, index: Any) -> Any:
        n = self.n_items()
        if not isinstance(index, (int, AbstractNumber)):
            self.refuse("is taken by an index that is not a whole number")
        if self.iterated()._phase is _Phase.NEW:
            self.refuse("is used before a loop over its fork")
        self._needs_all()
        found = n + index if index < 0 else index
        if found < 0 or found >= n:
            raise IndexError("list index out of range")
        return EndedChild(self, found)

    def __iter__(self) -> Iterator[Any]:
        if not is_for_of(sys._getframe(1)):
            self.refuse("is used by no `for`")
        return self.session.looped(Items(self.iterated()))

    def __bool__(self) -> bool:
        return True

    def _gather(self) -> None:
        """Gathers the names that children have set; before the loop there are none."""
        for name in self._new_names([self.iterated()._lists]):
            self.src_state.set_derived(name, self._lists[name].symbol)

    def join(self, mode: str = "gather_variable", **options: Any) -> None:
        if mode != "gather_variable" or options:
            self.refuse(f"is joined by {mode!r}")
        super().join(mode)

    def __len__(self) -> NoReturn:
        self.refuse("is needed while tracing, or their number")

    def __setitem__(self, index: Any, state: Any) -> NoReturn:
        self.refuse("is appended to outside a loop over its fork")

    def __iadd__(self, other: Any) -> NoReturn:
        self.refuse("is appended to outside a loop over its fork")

    @property
    def states(self) -> NoReturn:  # type: ignore[override]
        self.refuse("is needed while tracing")

    def refuse(self, what: str, hint: str = _ONE_LOOP) -> NoReturn:
        """Stops the trace; the hint is to bind the arguments that the number is made of."""
        names = self._arguments
        bind = "".join(f" --bind {name}=N" for name in sorted(names))
        stop(
            f"a child of a fork into a number of streams known only at run time {what}",
            hint=(f"give its value when compiling,{bind}; or " if names else "") + hint,
        )


def open_fork(session: Recorder, trunk: ProgramState, size: Any) -> OpenFork:
    """Forks a stream; raises UsageError if `size` is not a number of children."""
    if isinstance(size, AbstractJson):
        whole(size)  # stops the trace
    if not isinstance(size, AbstractNumber) or size.python is not int:
        raise UsageError(f"fork takes a whole number, found {shown(size)}", where=here())
    if not 1 <= size <= MAX_CHILDREN:  # two decisions
        raise fork_error(size)
    return OpenFork(session, trunk, size)
