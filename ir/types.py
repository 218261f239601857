"""The types of values in a program. There are none for objects of the host, tensors or code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    STREAM = "stream"
    TEXT = "text"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    CHOICE = "choice"
    JSON = "json"
    MEDIA = "media"
    LIST = "list"
    LIVE = "live"  # an object of the run; all that refer to it see it change


@dataclass(frozen=True, slots=True)
class Type:
    """A kind, with the item type of a list and the possible texts of a choice."""

    kind: Kind
    item: Type | None = None
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.kind is Kind.LIST) != (self.item is not None):
            raise ValueError(f"{self.kind} type with item {self.item}: exactly a list has one")
        if self.options and self.kind is not Kind.CHOICE:
            raise ValueError(f"{self.kind} type with options: only a choice has them")

    def __str__(self) -> str:
        if self.item is not None:
            return f"list[{self.item}]"
        return str(self.kind)

    @property
    def n_chars(self) -> int:
        """The approximate length of its text."""
        own = len(self.kind) + sum(len(option) + 1 for option in self.options)
        return own + (self.item.n_chars if self.item is not None else 0)

    @property
    def is_stream(self) -> bool:
        return self.kind is Kind.STREAM


STREAM = Type(Kind.STREAM)
TEXT = Type(Kind.TEXT)
INT = Type(Kind.INT)
FLOAT = Type(Kind.FLOAT)
BOOL = Type(Kind.BOOL)
JSON = Type(Kind.JSON)
MEDIA = Type(Kind.MEDIA)
LIVE = Type(Kind.LIVE)


def list_of(item: Type) -> Type:
    return Type(Kind.LIST, item=item)


def choice_of(options: tuple[str, ...] = ()) -> Type:
    """A text that is one of `options`; empty if the options are known only at run time."""
    return Type(Kind.CHOICE, options=options)
