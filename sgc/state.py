"""Prompt states as a program sees them: streams that grow, fork, and hold variables."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sgc import words
from sgc.errors import UnknownVariable, UnsupportedParameter, UsageError
from sgc.ir import types
from sgc.ir.graph import Lit, Operand, Ref
from sgc.runtime.executor.options import RANGES, check_parameter
from sgc.session import Session, user_loc
from sgc.symbols import Symbol
from sgc.tracing.markers import has_marker
from sgc.words import (
    DEFAULT_METHOD,
    NOT_YET,
    Appendable,
    Expr,
    Gen,
    RoleBegin,
    RoleEnd,
    Select,
    Sequenced,
)


class ProgramState:
    """A stream of prompt text, and the names set on it.

    `s += x` appends text or an expression; `s["name"]` is what a generation gave. Made by
    running a function, by `fork` and by `copy`; not by hand.
    """

    def __init__(
        self,
        session: Session,
        function_name: str,
        symbol: Symbol,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self.session = session
        self.function_name = function_name
        self.symbol = symbol  # the stream's present state
        self.start = symbol  # its first one: of a fork's child, where it leaves the trunk
        self._names: dict[str, Any] = dict(names or {})
        self._own: dict[str, None] = {}  # names set on this stream, in order
        self._roles: list[str] = []
        self.ret_value: Any = None
        session.states.append(self)

    # -- appending ----------------------------------------------------------------------

    def __iadd__(self, other: Appendable) -> ProgramState:
        self._extend(other)
        return self

    def _extend(self, part: Any) -> None:
        if isinstance(part, str):
            self._append_text(part)
        elif isinstance(part, Sequenced):
            for item in part.parts:
                self._extend(item)
        elif isinstance(part, Gen):
            self._gen(part)
        elif isinstance(part, Select):
            self._select(part)
        elif isinstance(part, RoleBegin):
            self._role_begin(part.role)
        elif isinstance(part, RoleEnd):
            self._role_end(part.role)
        else:
            raise UsageError(
                f"only text and expressions can be appended, found {_shown(part)}",
                where=_here(),
                hint="write str(x) for a number, and s += gen(...) for a generation",
            )

    def _append_text(self, text: str) -> None:
        for is_constant, operand in self.session.text_parts(text):
            if is_constant:
                self._advance("const", text=operand)
            else:
                self._advance("append", value=operand)

    def _advance(self, op: str, **fields: Operand) -> None:
        """Emits an op that takes this stream's state and gives the next one."""
        stream = Ref(self.symbol.name)
        (self.symbol,) = self.session.emit(op, [("s", types.STREAM)], stream=stream, **fields)

    def _gen(self, expr: Gen) -> None:
        refused = [name for name in NOT_YET if name in expr.params]
        if refused:
            raise UnsupportedParameter(
                f"gen({expr.name!r}): {', '.join(refused)} is not available on any backend yet",
                where=_here(),
                hint="leave it out; parameters are never dropped silently",
            )
        fields: dict[str, Operand] = {}
        for key, value in expr.params.items():
            is_list = key in ("stop", "stop_token_ids")
            if key in RANGES and isinstance(value, (str, int, float)):
                self._check_parameter(key, value)
            operand = self.session.operands if is_list else self.session.scalar
            fields[key] = operand(value)
        if expr.name is not None:
            fields["name"] = Lit(_checked_name(expr.name))
        self._sample("gen", expr.name, types.TEXT, fields)

    def _check_parameter(self, name: str, value: Any) -> None:
        """Refuses now, at the user's line, what no run could accept."""
        if self.session.is_abstract(value):
            return
        try:
            check_parameter(name, value)
        except UsageError as error:
            error.where = error.where or _here()
            raise

    def _select(self, expr: Select) -> None:
        if isinstance(expr.choices, str):
            raise UsageError(
                f"select's choices must be a list of texts, found the text {expr.choices!r}",
                where=_here(),
            )
        if not expr.choices:
            raise UsageError("select needs at least one choice", where=_here())
        choices = self.session.operands(expr.choices)
        fields: dict[str, Operand] = {"choices": choices}
        if expr.method != DEFAULT_METHOD:
            fields["method"] = Lit(expr.method)
        for key, value in expr.params.items():
            fields[key] = self.session.scalar(value)
        if expr.name is not None:
            fields["name"] = Lit(_checked_name(expr.name))
        literal = all(isinstance(choice, str) for choice in expr.choices)
        options = tuple(o.value for o in choices if isinstance(o, Lit)) if literal else ()  # type: ignore[union-attr]
        known = options if len(options) == len(expr.choices) else ()
        self._sample("select", expr.name, types.choice_of(known), fields)  # type: ignore[arg-type]

    def _sample(
        self, op: str, name: str | None, type_: types.Type, fields: dict[str, Operand]
    ) -> None:
        results = [("s", types.STREAM), (name or op, type_)]
        stream = Ref(self.symbol.name)
        self.symbol, value = self.session.emit(op, results, stream=stream, **fields)
        if name is not None:
            self._set(name, value)

    # -- roles --------------------------------------------------------------------------

    def _role_begin(self, role: str) -> None:
        if self._roles:
            raise UsageError(
                f"role {role!r} begins inside role {self._roles[-1]!r}; roles do not nest",
                where=_here(),
                hint=f"end {self._roles[-1]!r} first",
            )
        self._roles.append(_checked_name(role))
        self._advance("role_begin", role=Lit(role))

    def _role_end(self, role: str) -> None:
        if self._roles != [role]:
            found = f"{self._roles[-1]!r} is open" if self._roles else "no role is open"
            raise UsageError(f"role {role!r} ends, but {found}", where=_here())
        self._roles.pop()
        self._advance("role_end", role=Lit(role))

    def _role(self, role: str, expr: Appendable | None) -> Any:
        if expr is None:
            return self._role_scope(role)
        self._extend(words.role(role, expr))
        return None

    @contextmanager
    def _role_scope(self, role: str) -> Iterator[ProgramState]:
        self._role_begin(role)
        yield self
        self._role_end(role)

    def system(self, expr: Appendable | None = None) -> Any:
        """Appends a system message, or opens one: `with s.system(): …`."""
        return self._role("system", expr)

    def user(self, expr: Appendable | None = None) -> Any:
        """Appends a user message, or opens one: `with s.user(): …`."""
        return self._role("user", expr)

    def assistant(self, expr: Appendable | None = None) -> Any:
        """Appends an assistant message, or opens one: `with s.assistant(): …`."""
        return self._role("assistant", expr)

    # -- forking ------------------------------------------------------------------------

    def fork(
        self, size: int = 1, position_ids_offset: Sequence[int] | None = None
    ) -> ProgramStateGroup:
        """`size` streams that continue this one's text and names; this one goes on too."""
        if position_ids_offset is not None:
            raise UnsupportedParameter("fork: position_ids_offset is not available", where=_here())
        if self.session.is_abstract(size):
            size = operator.index(size)  # stops the trace, and says how to bind it
        if isinstance(size, bool) or not isinstance(size, int):
            raise UsageError(f"fork takes a whole number, found {_shown(size)}", where=_here())
        if not 1 <= size <= 100_000:
            raise UsageError(f"fork takes from 1 to 100000 children, found {size}", where=_here())
        results = [("s", types.STREAM)] * (size + 1)
        symbols = self.session.emit("fork", results, stream=Ref(self.symbol.name), n=Lit(size))
        self.symbol = symbols[0]
        children = [
            ProgramState(self.session, self.function_name, symbol, self._names)
            for symbol in symbols[1:]
        ]
        for child in children:
            child._roles = list(self._roles)
        return ProgramStateGroup(self, children)

    @contextmanager
    def copy(self) -> Iterator[ProgramState]:
        """A stream that continues this one; at exit its new names are gathered here."""
        group = self.fork(1)
        yield group[0]
        group.join()

    @contextmanager
    def var_scope(self, name: str) -> Iterator[None]:
        """Names the text appended inside the `with` block."""
        start = self.symbol
        yield
        self._set(_checked_name(name), self.session.text_of(self.symbol, since=start))

    # -- names --------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            known = ", ".join(self._names) or "none yet"
            raise UnknownVariable(
                f"no variable {name!r} has been set on this stream; there are: {known}",
                where=_here(),
                hint="a name can be read after the gen or select that sets it was appended",
            )
        return self._read(self._names[name])

    def _read(self, value: Any) -> Any:
        if isinstance(value, Symbol):
            return self.session.read(value)
        if isinstance(value, _Gathered):
            return [self._read(item) for item in value.items]
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        self._set(_checked_name(name), value)

    def _set(self, name: str, value: Any) -> None:
        self._names[name] = value
        self._own[name] = None

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def get_var(self, name: str) -> Any:
        """The same as `s[name]`."""
        return self[name]

    def set_var(self, name: str, value: Any) -> None:
        """The same as `s[name] = value`."""
        self[name] = value

    def variables(self) -> dict[str, Any]:
        """Every name with its value; waits for those still to come."""
        return {name: self._read(value) for name, value in self._names.items()}

    def own_names(self) -> dict[str, Any]:
        """Names set on this stream, not on the trunk before it, as the session knows them."""
        return {name: _ungathered(self._names[name]) for name in self._own}

    # -- reading ------------------------------------------------------------------------

    def text(self) -> str:
        """The whole text so far; waits for what is being generated."""
        text: str = self.session.text_of(self.symbol)
        return text

    def messages(self) -> list[dict[str, str]]:
        """The chat so far as role and content pairs."""
        return self.session.messages_of(self.symbol)

    def sync(self) -> None:
        """Waits until everything appended so far is done."""
        self.text()

    def __repr__(self) -> str:
        return f"ProgramState({self.function_name}, {len(self._names)} variables)"


class _Gathered:
    """A list of values that `join` gathered, some of them still to come."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def _ungathered(value: Any) -> Any:
    return [_ungathered(item) for item in value.items] if isinstance(value, _Gathered) else value


class ProgramStateGroup:
    """The children of a fork."""

    def __init__(self, trunk: ProgramState, children: list[ProgramState]) -> None:
        self.trunk = trunk
        self.states = children

    def __getitem__(self, index: int) -> ProgramState:
        return self.states[index]

    def __setitem__(self, index: int, state: ProgramState) -> None:
        # `group[i] += x` assigns back what `+=` returned.
        if self.states[index] is not state:
            raise UsageError("a fork's child cannot be replaced by another state", where=_here())

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[ProgramState]:
        return iter(self.states)

    def __iadd__(
        self, other: Appendable | Sequence[Appendable] | Callable[[int], Appendable]
    ) -> ProgramStateGroup:
        """Appends to every child: one thing to all, one each, or what `other(i)` gives."""
        if isinstance(other, (str, Expr)):
            parts: list[Any] = [other] * len(self.states)
        elif isinstance(other, (list, tuple)):
            parts = list(other)
        elif callable(other):
            parts = [other(index) for index in range(len(self.states))]
        else:
            raise UsageError(f"cannot append {_shown(other)} to a group", where=_here())
        if len(parts) != len(self.states):
            raise UsageError(
                f"a group of {len(self.states)} takes as many parts, found {len(parts)}",
                where=_here(),
            )
        for state, part in zip(self.states, parts, strict=True):
            state += part
        return self

    def join(self, mode: str = "gather_variable") -> None:
        """Brings the children's results to the trunk; the children stay usable.

        gather_variable: every name that children have set since the fork becomes a list of
        their values, in order. concate_and_append: their texts are appended in order.
        """
        if mode == "gather_variable":
            self._gather()
        elif mode == "concate_and_append":
            for state in self.states:
                self.trunk += self.trunk.session.text_of(state.symbol, since=state.start)
        else:
            raise UsageError(
                f"join has no mode {mode!r}",
                where=_here(),
                hint="modes: gather_variable, concate_and_append",
            )

    def _gather(self) -> None:
        names = dict.fromkeys(name for state in self.states for name in state._own)
        for name in names:
            values = [state._names[name] for state in self.states if name in state._own]
            self.trunk._set(name, _Gathered(values))


def _checked_name(name: Any) -> str:
    if type(name) is not str or not name or has_marker(name):
        raise UsageError(f"a name must be a plain text, found {_shown(name)}", where=_here())
    return name


def _here() -> str:
    return str(user_loc() or "")


def _shown(value: Any) -> str:
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 60 else shown[:57] + '...'}"
