"""The first pass over the rows of a job: what is wrong with them, and which of them are run.

Memory does not grow with the length of texts: the pass keeps a hash of each row's key, and a few
rows that represent all.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sgc.errors import SgcError, UsageError
from sgc.ir.types import Type
from sgc.runs.rows.hashes import Hashes
from sgc.runs.rows.records import BadRow, InputRow
from sgc.runs.rows.source import RowSource

MAX_SAMPLES = 4096  # rows that represent all
MAX_TOLD = 10  # bad rows that are reported one by one
Check = Callable[[Mapping[str, Any]], object]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which rows of a source are run. end: the first index that is not read; bits: one for each
    index below `end`; None for all.
    """

    end: int | None = None
    bits: bytes | None = None

    def among(self, rows: Iterator[InputRow | BadRow]) -> Iterator[InputRow]:
        for row in rows:
            if self.end is not None and row.index >= self.end:
                return
            is_in = self.bits is None or self.bits[row.index >> 3] >> (row.index & 7) & 1
            if is_in and isinstance(row, InputRow):
                yield row


@dataclass(frozen=True, slots=True)
class Asked:
    """Which rows a user wants. limit: the first ones; sample: that many, drawn by the seed."""

    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    skip_bad: bool = False


@dataclass(slots=True)
class Survey:
    """The result of the pass. samples: rows that represent all, in the types of arguments and in
    the values that all rows share.
    """

    chosen: Chosen = field(default_factory=Chosen)
    n_rows: int = 0
    n_bad: int = 0
    samples: list[InputRow] = field(default_factory=list)


class Keys:
    """Refuses keys that come twice."""

    def __init__(self, source: RowSource) -> None:
        self._source = source
        self._seen = Hashes()

    def add(self, row: InputRow) -> None:
        """Raises UsageError, naming both rows, for a key that was added before."""
        if not self._seen.add(row.key) and (first := self._first(row)) is not None:
            raise UsageError(
                f"{row.place}: the key {row.key!r} is that of {first} too",
                hint=f"give each row a {self._source.columns.key} of its own",
            )

    def _first(self, row: InputRow) -> str | None:
        """The place of the earlier row with this key; None if only the hashes are equal."""
        for each in self._source.read():
            if each.index == row.index:
                return None
            if isinstance(each, InputRow) and each.key == row.key:
                return f"line {each.line}" if each.file == row.file else each.place
        return None


def survey(
    source: RowSource,
    types: Mapping[str, Type],
    check: Check,
    asked: Asked,
    tell: Tell,
    is_by_type: bool = True,
) -> Survey:
    """Reads all rows once. Raises UsageError for a bad row unless they are skipped, and for a key
    that comes twice.

    check: raises if arguments do not fit; is_by_type: whether that depends on their types alone.
    """
    found, kinds, keys, draw = Survey(), _Kinds(), Keys(source), _draw(asked)
    bad = array("Q")
    end = 0
    for row in source.read(types):
        end = row.index + 1
        try:
            if isinstance(row, BadRow):
                raise UsageError(row.why)
            _check_texts(row)
            if kinds.is_new(row.arguments) or not is_by_type:
                check(row.arguments)
        except SgcError as error:
            place = row.place
            if not asked.skip_bad:
                hint = "\n  ".join(filter(None, [error.hint, _way_out(row, source, types, check)]))
                raise UsageError(f"{place}: {error.message}", hint=hint) from error
            found.n_bad += 1
            bad.append(row.index)
            if found.n_bad <= MAX_TOLD:
                tell(f"{place}: {error.message}; the row is left out")
            continue
        keys.add(row)
        kinds.add(row, found.samples)
        found.n_rows += 1
        draw.take(row.index)
        if found.n_rows == asked.limit:
            break
    if found.n_bad > MAX_TOLD:
        tell(f"{found.n_bad} bad rows in all are left out")
    if not found.n_rows:
        raise UsageError(f"{source.name} has no rows", hint="one JSON object of arguments a line")
    if asked.sample is not None:
        found.n_rows = min(found.n_rows, asked.sample)
    found.chosen = _chosen(end, bad, draw.indices)
    return found


def _way_out(
    row: InputRow | BadRow, source: RowSource, types: Mapping[str, Type], check: Check
) -> str:
    """A hint about columns that are not arguments, if nothing else is wrong."""
    if isinstance(row, BadRow) or source.columns.is_loose:
        return ""
    known = {name: value for name, value in row.arguments.items() if name in types}
    if len(known) == len(row.arguments):
        return ""
    try:
        check(known)
    except SgcError:
        return ""
    return "--ignore-columns leaves other columns out; --key NAME takes one as the rows' key"


def _chosen(end: int, bad: array[int], drawn: array[int] | None) -> Chosen:
    if drawn is None and not bad:
        return Chosen(end)  # rows that are added to a file later have not been checked
    bits = bytearray((end >> 3) + 1) if drawn is not None else bytearray(b"\xff" * ((end >> 3) + 1))
    for index in drawn or ():
        bits[index >> 3] |= 1 << (index & 7)
    for index in bad:
        bits[index >> 3] &= ~(1 << (index & 7))
    return Chosen(end, bytes(bits))


class _All:
    indices: array[int] | None = None

    def take(self, index: int) -> None: ...


class _Reservoir(_All):
    """As many indices as asked for, each set of them as likely as any other (Vitter 1985)."""

    def __init__(self, n: int, seed: int) -> None:
        self._n, self._n_seen = n, 0
        self._random = random.Random(seed)
        self.indices: array[int] = array("Q")

    def take(self, index: int) -> None:
        self._n_seen += 1
        if len(self.indices) < self._n:
            self.indices.append(index)
        elif (place := int(self._random.random() * self._n_seen)) < self._n:
            self.indices[place] = index


def _draw(asked: Asked) -> _All:
    return _All() if asked.sample is None else _Reservoir(asked.sample, asked.seed)


class _Kinds:
    """The types of arguments seen so far, and which names have had two values."""

    def __init__(self) -> None:
        self._seen: set[object] = set()
        self._first: Mapping[str, Any] | None = None
        self._same: set[str] = set()
        self._kind: object = None

    def is_new(self, arguments: Mapping[str, Any]) -> bool:
        self._kind = tuple([(n, _kind(v)) for n, v in arguments.items()])
        return self._kind not in self._seen

    def add(self, row: InputRow, samples: list[InputRow]) -> None:
        """Adds a row to the samples, if it differs from them."""
        arguments = row.arguments
        is_other = False
        if self._first is None:
            self._first, self._same, is_other = arguments, set(arguments), True
        elif self._same:
            first = self._first
            other = {n for n in self._same if n not in arguments or arguments[n] != first[n]}
            is_other = bool(other)
            self._same -= other
        if self._kind not in self._seen and len(self._seen) < MAX_SAMPLES:
            self._seen.add(self._kind)
            is_other = True
        if is_other:
            samples.append(row)


def _kind(value: Any) -> object:
    if isinstance(value, list):
        return list, frozenset(map(_kind, value))
    if isinstance(value, dict):
        return dict, frozenset((name, _kind(each)) for name, each in value.items())
    return value.__class__


def _check_texts(row: InputRow) -> None:
    """Raises UsageError for a text that cannot be written as UTF-8."""
    name = None
    try:
        _encode(row.key)
        for name, value in row.arguments.items():  # noqa: B007, told below
            _encode(value)
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{'custom_id' if name is None else f'argument {name!r}'} is not valid Unicode: "
            f"{error.reason}",
            hint="it holds half of a surrogate pair; write the whole character",
        ) from error


def _encode(value: Any) -> None:
    if isinstance(value, str):
        if not value.isascii():
            value.encode("utf-8")
    elif isinstance(value, list):
        for each in value:
            _encode(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            _encode(name)
            _encode(each)
