"""The tracer's session as abstract values see it: what records what they compute and decide."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgc.core.session import Session
from sgc.core.symbols import Symbol
from sgc.ir import types


class Recorder(Session):
    """A session that collects nodes; what the program reads of them is abstract.

    held: lists and dicts of the program's that are in abstract lists too, as they were then.
    known: of texts, beyond their types. met: what tools and maps return. images: values used as
    images. retired: streams that are published already. path: of a program that decides, else None.
    facts: outcomes of tests on this path. sites: what becomes code. has_untyped: on it a value out
    of JSON was asked for its type.
    """

    is_tracing = True
    known: dict[str, Any]
    met: list[Symbol]
    images: set[str]
    held: list[tuple[Any, object]]
    retired: set[int]
    path: Any
    facts: Any
    sites: Any
    has_untyped: bool = False

    @abstractmethod
    def marker(self, symbol: Symbol) -> str:
        """The marker of a symbol: the same each time, so that equal texts stay equal."""

    @abstractmethod
    def symbol_of(self, number: int) -> Symbol:
        """The symbol that a marker's number stands for."""

    @abstractmethod
    def seen(self, value: Any) -> Any:
        """A value out of JSON that the program reads: None where that is decided."""

    @abstractmethod
    def is_made(self, symbol: Symbol) -> bool:
        """Whether a list is of the program's own making, and no part of another value."""

    @abstractmethod
    def is_code(self, symbol: Symbol) -> bool:
        """Whether a piece of code gives a list, dict or object."""

    @abstractmethod
    def is_parameter(self, name: str) -> bool: ...

    @abstractmethod
    def name_of(self, symbol: Symbol) -> str:
        """A value in the user's own words, for messages."""

    @abstractmethod
    def shown(self, text: str) -> str:
        """A text for error messages: names in braces where values go."""

    @abstractmethod
    def formatted(self, value: Any, spec: str) -> str:
        """The marker of `format(value, spec)`, done when the program runs."""

    @abstractmethod
    def compute(self, fn: str, *args: Any, type_: types.Type | None = None) -> Any:
        """The abstract value of a function of `ir/functions.py`, which cannot fail here."""

    @abstractmethod
    def coded(self, code: str, args: Sequence[Any], type_: types.Type) -> Any:
        """The abstract value of code that is data; where it fails, raises what handlers see."""

    @abstractmethod
    def originals(self, names: dict[str, Any]) -> Mapping[str, Any]:
        """The user's own globals, in place of those that a trace runs over."""

    @abstractmethod
    def is_outside_changed(self) -> bool:
        """Whether the program has changed data of a module so far, which no trace may end with."""

    @abstractmethod
    def characters(self, text: str) -> Iterator[str]:
        """The characters of an abstract text, in a loop that begins."""

    @abstractmethod
    def attempt(self, fn: str, *args: Any) -> Any:
        """None where the function would succeed on this path, else the error's abstract message.

        A decision: both paths are traced.
        """

    @abstractmethod
    def decide(self, test: Symbol) -> bool:
        """Which path this run of the program takes at a test that is decided at run time."""

    @abstractmethod
    def looped(self, loop: Iterator[Any]) -> Iterator[Any]:
        """A loop of our own, which begins."""

    @abstractmethod
    def note_outside(self, values: Any) -> None:
        """Texts that a mapped call is given are values too."""
