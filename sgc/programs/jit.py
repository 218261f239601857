"""Compiling a function when it is called: once a signature, and not where it cannot be.

A signature is the type of each argument, and the value of each that must be known. What the
program's Python reads of its surroundings is guarded: when it has changed, the function is
traced again. Where a trace stops, runs are interpreted, and `explain` says why.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sgc.errors import SgcError, TraceError
from sgc.ir import types
from sgc.ir.types import Type
from sgc.lang.definition import Definition
from sgc.runtime.executor.interface.media import Media

if TYPE_CHECKING:
    from sgc.lang.signature import Parameter
    from sgc.programs.program import Program

MAX_PROGRAMS = 32  # compiled for one function; beyond, new signatures are interpreted
# Compiled at once for their values; further values only when they are seen again: rows that each
# have a list of their own would cost more to compile than to interpret.
EAGER_VALUES = 4
MAX_SEEN = 4096
MAX_STATIC_CHARS = 1_000_000  # of the static arguments of one signature

Reads = tuple[tuple[str, ...], str]  # a fingerprint, and why it cannot be relied on

_SCALARS: Mapping[type, Type] = {str: types.TEXT, int: types.INT, float: types.FLOAT}


@dataclass(frozen=True, slots=True)
class Specialized:
    """What one signature led to: a program, or why there is none."""

    signature: str
    program: Program | None
    reason: str = ""


class Jit:
    """The programs compiled of one function, by signature."""

    def __init__(self, function: Definition) -> None:
        self._function = function
        self._lock = threading.Lock()
        self._found: dict[tuple[object, ...], tuple[Reads, Specialized]] = {}
        self._reasons: dict[str, Specialized] = {}
        self._seen: set[int] = set()  # hashes of signatures seen once

    def specialize(
        self, arguments: Mapping[str, Any], guards: Reads | None = None
    ) -> tuple[Specialized, dict[str, Any]]:
        """The program for these arguments, and those of them that it still takes.

        guards: what `guards()` gave just now, where many calls are made at once.
        """
        parameters = self._function.signature.parameters
        known: dict[str, Type] = {}
        static: dict[str, Any] = {}
        for parameter in parameters:
            type_ = _type_of(parameter, arguments[parameter.name])
            if type_ is None:
                static[parameter.name] = arguments[parameter.name]
            else:
                known[parameter.name] = type_
        digest, why = _digest(static)
        shown = _shown(known, static)
        if digest is None:
            return self._unguarded(Specialized(shown, None, why)), {}
        key = (tuple(known.items()), digest)
        with self._lock:
            found = self._lookup(key, shown, static, known, guards or self.guards())
        return found, {name: arguments[name] for name in known}

    def _is_new(self, key: tuple[object, ...]) -> bool:
        """Whether to wait for these values to come again before they are compiled for."""
        if len(self._found) < EAGER_VALUES or hash(key) in self._seen:
            return False
        if len(self._seen) < MAX_SEEN:
            self._seen.add(hash(key))
        return True

    def _unguarded(self, found: Specialized) -> Specialized:
        """Remembers, for `explain`, the reasons of signatures that are never looked up."""
        with self._lock:
            if len(self._reasons) < MAX_PROGRAMS:
                self._reasons[found.reason] = found
        return found

    def _lookup(
        self,
        key: tuple[object, ...],
        shown: str,
        static: dict[str, Any],
        known: dict[str, Type],
        reads: Reads,
    ) -> Specialized:
        why = reads[1]
        if key in self._found:
            before, found = self._found[key]
            if before == reads and not _has_changed(found):
                return found
        elif static and self._is_new(key):
            return Specialized(shown, None, "with these values it was called for the first time")
        elif len(self._found) >= MAX_PROGRAMS:
            why = f"{MAX_PROGRAMS} signatures of it are compiled already; the rest are interpreted"
            return Specialized(shown, None, why)
        found = Specialized(shown, None, why) if why else self._compile(shown, static, known)
        self._found[key] = (reads, found)
        return found

    def _compile(self, shown: str, static: dict[str, Any], known: dict[str, Type]) -> Specialized:
        from sgc.programs.program import compile_function

        try:
            program = compile_function(self._function, static, types_of=known, is_strict=True)
        except TraceError as error:
            return Specialized(shown, None, str(error))
        except SgcError as error:
            # The interpreter finds the same fault, and tells it where the run is.
            return Specialized(shown, None, str(error))
        return Specialized(shown, program)

    def guards(self) -> Reads:
        """What the program's Python is and reads, and why that cannot be relied on."""
        from sgc.tracing.watch.reads import reads_of

        return reads_of(self._function)

    def explain(self) -> str:
        """A line for each signature seen: compiled, or why not."""
        lines = []
        for found in [*(found for _, found in self._found.values()), *self._reasons.values()]:
            outcome = "compiled" if found.program is not None else f"interpreted: {found.reason}"
            lines.append(f"{self._function.name}({found.signature}): {outcome}")
        return "\n".join(lines) or f"{self._function.name} has not been called yet"


def _has_changed(found: Specialized) -> bool:
    """Whether the environment or a file that the program was compiled with is another now."""
    from sgc.tracing.watch.ambient import changed

    return found.program is not None and bool(changed(found.program.graph.guards))


def _type_of(parameter: Parameter, value: Any) -> Type | None:
    """The type an argument is abstract of; None where its value must be known."""
    if isinstance(value, (Media, bytes)) or callable(getattr(value, "save", None)):
        return types.MEDIA
    if parameter.is_static or type(value) not in _SCALARS:
        return None
    if parameter.is_typed and parameter.type.kind is types.Kind.FLOAT:
        return types.FLOAT
    return _SCALARS[type(value)]


def _digest(static: Mapping[str, Any]) -> tuple[str | None, str]:
    """The static arguments as one text; none, and why, where they cannot be guarded."""
    from sgc.tracing.watch.guards import plain

    texts = []
    for name, value in static.items():
        text = plain(value)
        if text is None or len(text) > MAX_STATIC_CHARS:
            what = type(value).__name__
            return None, f"argument {name!r} is a {what}, whose value cannot be guarded"
        texts.append(f"{name}={type(value).__name__}:{text}")
    return "\n".join(texts), ""


def _shown(known: Mapping[str, Type], static: Mapping[str, Any]) -> str:
    parts = [f"{name}: {type_}" for name, type_ in known.items()]
    for name, value in static.items():
        text = repr(value)
        parts.append(f"{name}={text if len(text) <= 30 else text[:27] + '...'}")
    return ", ".join(parts)
