"""Writes the function of a piece: its values are arguments, names of its module, or written out."""

from __future__ import annotations

import ast
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterable
from functools import partial
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from sgc.runtime.executor.code.mutation import may_mutate
from sgc.tracing.kinds.members import holds_member
from sgc.tracing.kinds.records import is_record, parts_of
from sgc.tracing.pieces.effects.changes import (
    DECIDING,
    changes_outside,
)
from sgc.tracing.pieces.forms import MAX_DEPTH, is_operand, plain_key
from sgc.tracing.pieces.names import parameters
from sgc.tracing.pieces.owned import is_changeable
from sgc.tracing.pieces.piece import Piece
from sgc.tracing.pieces.text.constants import (
    NotData,
    factory_of,
    holds_defaulting,
    literal,
)
from sgc.tracing.pieces.text.library import pythons
from sgc.tracing.pieces.text.module_text import ModuleText
from sgc.tracing.values.abstract import AbstractList, is_abstract
from sgc.tracing.values.json.dict_views import dict_of, part_of

_CALLED = (FunctionType, BuiltinFunctionType, ModuleType, type)


class EntryWriter:
    """Writes the function and, with `module`, the text of the module that ends with it."""

    def __init__(self, module: ModuleText, used: Iterable[str] = ()) -> None:
        self.module = module
        self.args: list[Any] = []
        self.params: list[str] = []
        self.inputs: list[str] = []
        self._before: list[tuple[str, Any, str]] = []  # names, values, and these as expressions
        self._used = {*used}
        self.changing: frozenset[str] = frozenset()

    def code(self, piece: Piece, fresh: Collection[str] = ()) -> str:
        """The text of a piece. fresh: lists that the code copies first."""
        body = self.module.rewritten(piece.plain).body
        if piece.is_statement:
            one = len(piece.targets) == 1
            result = piece.targets[0] if one else f"[{', '.join(piece.targets)}]"
            returned = ast.parse(result, mode="eval").body
            body = [*body, ast.Return(returned)]
        else:
            (expression,) = body
            body = [ast.Return(expression.value)]
        copies = [each for name in sorted(fresh) for each in ast.parse(f"{name} = [*{name}]").body]
        function = self._entry([*copies, *body], piece.changes)
        changers = dict(piece.changers)
        is_changing = self.module.changes_outside(self.changing, changers) or changes_outside(
            function, parameters(function.args), self.changing, changers
        )
        if is_changing and self.module.may_be_changed(function, self.changing, changers):
            raise NotData("it may change an object outside of it")
        return self.module.text(ast.fix_missing_locations(function))

    def _entry(self, body: list[ast.stmt], changes: Collection[str]) -> ast.FunctionDef:
        """The function of a piece. If the code may change anything, values written out in it that
        are not among its changes are marked, since a called function might still change them."""
        name = self.module.free_name("piece")
        is_marked = self.module.may_change or may_mutate(body)
        lines = []
        for each, value, text in self._before:
            is_kept = each not in changes and is_changeable(value)
            is_kept = is_kept and (is_marked or holds_defaulting(value))
            lines.append(f"{each} = unchanged({text})" if is_kept else f"{each} = {text}")
        head = f"def {name}({', '.join(self.params)}):\n"
        entry = ast.parse(head + "".join(f"    {line}\n" for line in [*lines, "pass"]))
        (function,) = entry.body
        assert isinstance(function, ast.FunctionDef)
        function.body[-1:] = body
        return function

    def take(self, name: str, value: Any) -> None:
        """Adds a variable's value: bound in the module, as an argument, or written out."""
        if isinstance(value, _CALLED) and not is_abstract(value):
            self.module.bind(name, value)
        elif name in DECIDING and callable(value) and not is_abstract(value):
            raise NotData(f"{name} is not Python's {name}")
        elif type(value) is AbstractList and part_of(value):
            if value.session.view_state(value.symbol) == "stale":
                raise NotData("it takes a view of a dict that has changed since")
            of = self.written(dict_of(value), name)
            self._before.append((name, None, f"{of}.{part_of(value)}()"))
        elif is_operand(value):
            self._param(name, name, value)
        else:
            self._before.append((name, value, self.written(value, name)))

    def _param(self, param: str, name: str, value: Any) -> None:
        self.params.append(param)
        self.inputs.append(name)
        self.args.append(value)

    def written(self, value: Any, name: str, depth: int = MAX_DEPTH) -> str:
        """A value as an expression, with parameters for its parts that are operands."""
        if is_operand(value):
            param = f"{name}_{len(self.params)}"
            while param in self._used:
                param += "_"
            self._used.add(param)
            self._param(param, name, value)
            return param
        kind = type(value)
        if not depth:
            raise NotData("it nests too deeply")
        if kind in (list, tuple):
            parts = "".join(f"{self.written(item, name, depth - 1)}, " for item in value)
            return f"[{parts}]" if kind is list else f"({parts})"
        if kind in (set, frozenset):
            return self._set(value, name)
        if kind is deque:
            parts = self.written(list(value), name, depth - 1)
            return f"{self._library(deque)}({parts}, {value.maxlen})"
        if kind in (dict, Counter, defaultdict, OrderedDict):
            return self._mapping(value, name, depth)
        if is_record(value):
            return self._record(value, name, depth)
        if kind is partial:
            return self._partial(value, name, depth)
        return self.module.written(value, name)

    def _partial(self, value: partial[Any], name: str, depth: int) -> str:
        given = [*value.args, *value.keywords.values()]
        if any(map(is_changeable, given)):
            raise NotData("a partial holds a changeable value")
        function = self.module.written(pythons(value.func), f"{name}_function")
        parts = [function, *(self.written(each, name, depth - 1) for each in value.args)]
        named = value.keywords.items()
        parts += [f"{key}={self.written(each, name, depth - 1)}" for key, each in named]
        return f"{self._library(partial)}({', '.join(parts)})"

    def _set(self, value: Any, name: str) -> str:
        keys = [plain_key(each) for each in value]
        is_plain = all(key is each for key, each in zip(keys, value, strict=True))
        return self._literal(value if is_plain else type(value)(keys), name)

    def _literal(self, value: Any, name: str) -> str:
        if holds_member(value):
            return self.module.written(value, name)
        text, writer = literal(value)
        self.module.note_lost(name, writer)
        return text

    def _mapping(self, value: Any, name: str, depth: int) -> str:
        parts = ", ".join(
            f"{self._literal(plain_key(key), name)}: {self.written(item, name, depth - 1)}"
            for key, item in value.items()
        )
        if type(value) is defaultdict:
            return f"{self._library(defaultdict)}({factory_of(value, self._library)}, {{{parts}}})"
        is_plain = type(value) is dict
        return f"{{{parts}}}" if is_plain else f"{self._library(type(value))}({{{parts}}})"

    def _record(self, value: Any, name: str, depth: int) -> str:
        self.module.bind(type(value).__name__, type(value))
        parts = ", ".join(
            f"{part!r}: {self._part(item, part, name, depth - 1)}"
            for part, item in parts_of(value).items()
        )
        return f"restored({type(value).__name__}, {{{parts}}})"

    def _part(self, value: Any, attribute: str, name: str, depth: int) -> str:
        before = self.module.lost.copy()
        text = self.written(value, name, depth)
        if self.module.lost != before:
            self.module.lost[attribute] = self.module.lost[name]
        return text

    def _library(self, kind: type) -> str:
        self.module.bind(kind.__name__, kind)
        return kind.__name__
