"""The children of a fork: appended to together, and joined."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from sgc.core.places import here
from sgc.core.session import Stream
from sgc.errors import SgcWarning, UsageError
from sgc.ir.graph import Lit, Operand, Ref
from sgc.lang.append import advance, append, shown
from sgc.lang.joins import Gathered, checked_k, choose, take_winners, winners_values
from sgc.lang.words import Appendable, Expr

S = TypeVar("S", bound=Stream)


class ProgramStateGroup(Generic[S]):
    """The children of a fork, in order."""

    def __init__(self, states: list[S], src_state: S) -> None:
        self.states = states
        self.src_state = src_state

    def __getitem__(self, index: int) -> S:
        return self.states[index]

    def __setitem__(self, index: int, state: S) -> None:
        # `group[i] += x` assigns back what `+=` returned.
        if self.states[index] is not state:
            raise UsageError("a fork's child cannot be replaced by another state", where=here())

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[S]:
        return iter(self.states)

    def __iadd__(
        self, other: Appendable | Sequence[Appendable] | Callable[[int], Appendable]
    ) -> ProgramStateGroup[S]:
        """Appends to every child: one part to all, one part each, or what `other(i)` returns."""
        for state, part in zip(self.states, self._parts(other), strict=True):
            append(state, part)
        return self

    def _parts(self, other: Any) -> list[Any]:
        if isinstance(other, (str, Expr)):
            return [other] * len(self.states)
        if callable(other):
            return [other(index) for index in range(len(self.states))]
        if not isinstance(other, (list, tuple)):
            raise UsageError(f"cannot append {shown(other)} to a group", where=here())
        if len(other) != len(self.states):
            raise UsageError(
                f"a group of {len(self.states)} takes as many parts, found {len(other)}",
                where=here(),
            )
        return list(other)

    def join(
        self,
        mode: str = "gather_variable",
        *,
        k: int = 1,
        when: Callable[[S], Any] | None = None,
        kv: str = "exact",
    ) -> None:
        """Brings the children's results to the trunk; the children stay usable.

        gather_variable: every name that children have set since the fork, and that the trunk
        does not have, becomes a list of their values, in order; a name that the trunk has keeps
        its value, with a warning. concate_and_append: their texts are appended in order. first
        and k_of_n: waits until one child, or k children, have ended and meet the predicate
        `when(child)`; gathers only their names, and cuts off the other children: their requests are
        cancelled, and using them is an error. If too few meet it, the run ends with JoinFailed.

        kv: of concate_and_append. approximate: our engine reuses the children's texts as each was
        computed, beside the others, and computes none of them again (parallel context windows,
        docs/joined_contexts.md): the text that follows attends to all of them, and they do not
        attend to each other.
        """
        if kv not in ("exact", "approximate") or (kv != "exact" and mode != "concate_and_append"):
            raise UsageError(
                f"join's mode {mode!r} takes no kv={kv!r}",
                where=here(),
                hint='write mode="concate_and_append", kv="approximate", or leave kv out',
            )
        is_some = mode in ("first", "k_of_n")
        if (when is not None and not is_some) or (k != 1 and mode != "k_of_n"):
            raise UsageError(
                f"join's mode {mode!r} takes no {'k' if k != 1 else 'predicate'}",
                where=here(),
                hint='write mode="k_of_n", k=…, or mode="first", when=…',
            )
        if is_some:
            self._take_first(checked_k(k, len(self.states)), when)
        elif mode == "gather_variable":
            self._gather()
        elif mode == "concate_and_append":
            for n, state in enumerate(self.states):
                span: dict[str, Operand] = {
                    "start": Ref(state.start.name), "end": Ref(state.symbol.name)
                }  # fmt: skip
                if kv == "approximate":
                    span["kv"] = Lit("next" if n else "first")
                advance(self.src_state, "append_span", **span)
        else:
            raise UsageError(
                f"join has no mode {mode!r}",
                where=here(),
                hint="modes: gather_variable, concate_and_append, first, k_of_n",
            )

    def _gather(self) -> None:
        own = [state.own_values() for state in self.states]
        for name in self._new_names(own):
            gathered = [values[name] for values in own if name in values]
            self.src_state.set_derived(name, Gathered(gathered))

    def _take_first(self, k: int, when: Callable[[S], Any] | None) -> None:
        winners = choose(self.states, k, when)
        own = [state.own_values() for state in self.states]
        for name in self._new_names(own):
            value = winners_values(self.src_state.session, winners, own, name)
            self.src_state.set_derived(name, value)
        take_winners(self.states, winners)

    def _new_names(self, own: list[dict[str | None, Any]]) -> Iterator[str | None]:
        """The names that children have set and the trunk does not have."""
        names = dict.fromkeys(name for values in own for name in values)
        self.src_state.session.note_asked(names)
        for name in names:
            if name in self.src_state:
                self._warn_kept(name)
            else:
                yield name

    def _warn_kept(self, name: str | None) -> None:
        if name is not None:
            warnings.warn(
                f"{here()}: join leaves {name!r} as it is, since the stream has it already; read "
                "the children's with forks[i][name], or use another name",
                SgcWarning,
                stacklevel=5,
            )
