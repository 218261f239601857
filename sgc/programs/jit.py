"""Compiles a function when it is called, once per signature, if it can be compiled.

A signature is the type of each argument, and the value of each argument that tracing needs. Lists,
dicts and other data are typed by their annotation, or else by their parts if these are alike, so
rows with different data share a program. What the program's Python reads of its surroundings is
guarded: when it has changed, the function is traced again. If a trace stops, runs are interpreted,
and `explain` says why.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sgc.core import shapes
from sgc.errors import SgcError
from sgc.ir import types
from sgc.ir.analysis.interpreted import left_of
from sgc.ir.types import Type
from sgc.lang.definition import Definition
from sgc.programs.given_objects import problem_with
from sgc.runtime.executor.interface.argument_shapes import lowered, misfit, parsed, shown
from sgc.runtime.executor.interface.media import Media

if TYPE_CHECKING:
    from sgc.lang.signature import Parameter
    from sgc.programs.program import Program

MAX_PROGRAMS = 32  # compiled for one function; further signatures are interpreted
# Signatures with values that are compiled at once; later ones only when they are seen again: rows
# that each have a list of their own would cost more to compile than to interpret.
EAGER_VALUES = 4
# Times in a row that what a signature reads had changed before it was called again.
MAX_RETRACED = 8
MAX_SEEN = 4096
MAX_DATA = 4  # data arguments of a function; with more, fixing only one of them is not tried
MAX_STATIC_CHARS = 1_000_000  # of the static arguments of one signature

Reads = tuple[tuple[str, ...], str]  # a fingerprint, and why it cannot be relied on

_SCALARS: Mapping[type, Type] = {str: types.TEXT, int: types.INT, float: types.FLOAT}


class Told(NamedTuple):
    """The type of an argument that stays a parameter, and for data its schema."""

    type: Type
    schema: str = ""


@dataclass(frozen=True, slots=True)
class Specialized:
    """The outcome for one signature: its program, or the reason why there is none or only a part.

    is_by_type: data is taken by its type, which is tried before its values. needs: the numeric
    arguments whose values tracing needs.
    """

    signature: str
    program: Program | None
    reason: str = ""
    is_by_type: bool = False
    needs: frozenset[str] = frozenset()


class Jit:
    """The programs compiled of one function, by signature."""

    def __init__(self, function: Definition) -> None:
        self._function = function
        self._lock = threading.Lock()
        self._found: dict[tuple[object, ...], tuple[Reads, Specialized]] = {}
        self._reasons: dict[str, Specialized] = {}
        self._retraced: dict[tuple[object, ...], int] = {}  # in a row, as what is read had changed
        self._seen: set[int] = set()  # hashes of signatures seen once
        self._by_value: dict[tuple[object, ...], frozenset[str]] = {}  # data taken by its value
        self._needed: dict[tuple[object, ...], frozenset[str]] = {}  # numbers taken by their value

    def specialize(
        self, arguments: Mapping[str, Any], guards: Reads | None = None
    ) -> tuple[Specialized, dict[str, Any]]:
        """The program for these arguments, and those of them that it still takes.

        guards: what `guards()` just returned, if many calls are made at once.
        """
        if problem := problem_with(arguments, self._function.signature):
            return self._unguarded(Specialized(_shown({}, arguments), None, problem)), {}
        reads = guards or self.guards()
        types, data = self._types_of(arguments)
        key = tuple((types | data).items())
        needed = self._needed.get(key, frozenset())
        while True:
            found = self._of_types(arguments, _without(types, needed), data, reads)
            more = found[0].needs & types.keys() - needed
            if found[0].program is not None and len(self._needed) < MAX_SEEN:
                self._needed[key] = needed
            if found[0].program is not None or not more:
                return found
            needed |= more

    def _of_types(
        self,
        arguments: Mapping[str, Any],
        types: dict[str, Told],
        data: dict[str, Told],
        reads: Reads,
    ) -> tuple[Specialized, dict[str, Any]]:
        """The program for the types of all data; if tracing needs values, with as few as possible:
        the value of one argument, else of all.
        """
        key = tuple((types | data).items())
        is_known = not data or bool(reads[1]) or key in self._by_value
        one = [frozenset({name}) for name in data] if 1 < len(data) <= MAX_DATA else []
        tried = [frozenset[str](), *one, frozenset(data)]
        for by_value in [self._by_value.get(key, frozenset(data))] if is_known else tried:
            by_type = {name: told for name, told in data.items() if name not in by_value}
            found, rest = self._specialize(arguments, types | by_type, reads)
            if found.program is not None and not found.reason:
                break
        if not is_known and len(self._by_value) < MAX_SEEN:
            self._by_value[key] = by_value
        return found, rest

    def _types_of(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Told], dict[str, Told]]:
        """The types of scalar and media arguments, and those of data arguments."""
        signature = self._function.signature
        types: dict[str, Told] = {}
        data: dict[str, Told] = {}
        for parameter in signature.parameters:
            value = arguments[parameter.name]
            if parameter.name in (signature.rest, signature.options):
                continue
            type_ = _type_of(parameter, value)
            if type_ is not None:
                types[parameter.name] = Told(type_)
            elif (told := _told(parameter, value)) is not None:
                data[parameter.name] = told
        return types, data

    def _specialize(
        self, arguments: Mapping[str, Any], types: Mapping[str, Told], reads: Reads
    ) -> tuple[Specialized, dict[str, Any]]:
        """The program for arguments of these types, and the values of the others."""
        names = self._function.signature.names
        known = {name: types[name] for name in names if name in types}
        static = {name: arguments[name] for name in names if name not in types}
        digest, why = _digest(static)
        shown = _shown(known, static)
        if digest is None:
            return self._unguarded(Specialized(shown, None, why)), {}
        key = (tuple(known.items()), digest)
        with self._lock:
            found = self._lookup(key, shown, static, known, reads)
        return found, {name: arguments[name] for name in known}

    def _is_new(self, key: tuple[object, ...]) -> bool:
        """Whether to compile for these values only when they come again."""
        n_found = sum(not _is_tried_first(each) for _, each in self._found.values())
        if n_found < EAGER_VALUES or hash(key) in self._seen:
            return False
        if len(self._seen) < MAX_SEEN:
            self._seen.add(hash(key))
        return True

    def _unguarded(self, found: Specialized) -> Specialized:
        """Records, for `explain`, why a signature that is never looked up is interpreted."""
        with self._lock:
            if len(self._reasons) < MAX_PROGRAMS:
                self._reasons[found.reason] = found
        return found

    def _lookup(
        self,
        key: tuple[object, ...],
        shown: str,
        static: dict[str, Any],
        known: dict[str, Told],
        reads: Reads,
    ) -> Specialized:
        why = reads[1]
        if key in self._found:
            before, found = self._found[key]
            if before == reads and not _has_changed(found):
                self._retraced.pop(key, None)
                return found
            self._retraced[key] = self._retraced.get(key, 0) + 1
            if self._retraced[key] > MAX_RETRACED:
                why = "what it reads has changed from call to call"
        elif static and self._is_new(key):
            return Specialized(shown, None, "with these values it was called for the first time")
        elif len(self._found) >= MAX_PROGRAMS:
            why = f"{MAX_PROGRAMS} signatures of it are compiled already; the rest are interpreted"
            return Specialized(shown, None, why)
        found = Specialized(shown, None, why) if why else self._compile(shown, static, known)
        self._found[key] = (reads, found)
        return found

    def _compile(self, shown: str, static: dict[str, Any], known: dict[str, Told]) -> Specialized:
        is_by_type = any(told.schema for told in known.values())
        types_of = {name: told.type for name, told in known.items()}
        schemas = {name: told.schema for name, told in known.items() if told.schema}
        from sgc.programs.compiling import compile_function

        try:
            program = compile_function(
                self._function, static, types_of=types_of, schemas=schemas, is_strict=True,
                may_be_in_python=True,
            )  # fmt: skip
        except SgcError as error:
            # An error in the program is raised by the interpreter too, at its place in the run.
            needs = getattr(error, "needs", frozenset[str]())
            return Specialized(shown, None, str(error), is_by_type, needs)
        left = left_of(program.graph) if is_by_type else None
        return Specialized(shown, program, str(left or ""), is_by_type)

    def guards(self) -> Reads:
        """The fingerprint of the program's Python and its reads, and why it is not reliable."""
        from sgc.tracing.watch.reads import reads_of

        return reads_of(self._function)

    def explain(self) -> str:
        """A line for each signature seen: compiled, or why not."""
        lines = []
        for found in [*(found for _, found in self._found.values()), *self._reasons.values()]:
            is_by_value = _is_tried_first(found)
            otherwise = "compiled for its values" if is_by_value else "interpreted"
            is_compiled = found.program is not None and not is_by_value
            outcome = "compiled" if is_compiled else f"{otherwise}: {found.reason}"
            lines.append(f"{self._function.name}({found.signature}): {outcome}")
        return "\n".join(lines) or f"{self._function.name} has not been called yet"


def _is_tried_first(found: Specialized) -> bool:
    """Whether programs for the values of some arguments replace it."""
    return bool(found.needs or (found.is_by_type and found.reason))


def _without(types: Mapping[str, Told], names: frozenset[str]) -> dict[str, Told]:
    return {name: told for name, told in types.items() if name not in names}


def _has_changed(found: Specialized) -> bool:
    """Whether the environment or a file that the program was compiled with has changed."""
    from sgc.tracing.watch.ambient import changed

    return found.program is not None and bool(changed(found.program.graph.guards))


def _type_of(parameter: Parameter, value: Any) -> Type | None:
    """The type of a scalar or media argument; None for data, and if its value must be known."""
    if isinstance(value, (Media, bytes)) or callable(getattr(value, "save", None)):
        return types.MEDIA
    if parameter.is_static or parameter.schema or type(value) not in _SCALARS:
        return None
    if parameter.is_typed and parameter.type.kind is types.Kind.FLOAT:
        return types.FLOAT
    return _SCALARS[type(value)]


def _told(parameter: Parameter, value: Any) -> Told | None:
    """The type of data by its annotation, else by its value; None if neither gives one."""
    if parameter.schema and parsed(parameter.schema):
        schema = parsed(parameter.schema)
        fits_it = misfit(lowered(value, schema, takes_data=False), schema) is None
        return Told(parameter.type, parameter.schema) if fits_it else None
    if type(value) not in (list, dict) and (not parameter.schema or value is None):
        return None
    schema = shapes.of_value(value)
    return None if schema is None else Told(shapes.type_of(schema), json.dumps(schema))


def _digest(static: Mapping[str, Any]) -> tuple[str | None, str]:
    """The static arguments as one text; None, and the reason, if they cannot be guarded."""
    from sgc.tracing.watch.guards import plain

    texts = []
    for name, value in static.items():
        text = plain(value, keeps_order=True)  # which a program may have gone over
        if text is None or len(text) > MAX_STATIC_CHARS:
            what = type(value).__name__
            return None, f"argument {name!r} is a {what}, whose value cannot be guarded"
        texts.append(f"{name}={type(value).__name__}:{text}")
    return "\n".join(texts), ""


def _shown(known: Mapping[str, Told], static: Mapping[str, Any]) -> str:
    parts = [
        f"{name}: {shown(parsed(told.schema)) if told.schema else told.type}"
        for name, told in known.items()
    ]
    for name, value in static.items():
        text = repr(value)
        parts.append(f"{name}={text if len(text) <= 30 else text[:27] + '...'}")
    return ", ".join(parts)
