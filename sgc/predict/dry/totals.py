"""The usage of requests, summed by generation, as predicted or as measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace

from sgc.errors import RunLogError
from sgc.runtime.executor.interface.backend import Usage, sum_costs
from sgc.runtime.executor.log.records import usage_in
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.record import Request

KINDS = ("generate", "score", "commit")


@dataclass(frozen=True, slots=True)
class Total:
    """Sums over requests. prompt_tokens = cached_tokens + computed_tokens; computed_tokens include
    cache_written_tokens. prefetched_tokens: computed ahead of their use, in no other sum. cost_usd:
    None if no price is known.
    """

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    computed_tokens: int = 0
    completion_tokens: int = 0
    prefetched_tokens: int = 0
    cost_usd: float | None = None

    def plus(self, other: Total) -> Total:
        sums = {row.name: getattr(self, row.name) for row in fields(self) if row.name != "cost_usd"}
        sums = {name: value + getattr(other, name) for name, value in sums.items()}
        return Total(**sums, cost_usd=sum_costs([self.cost_usd, other.cost_usd]))

    @staticmethod
    def of(usage: Usage) -> Total:
        if usage.from_shared or usage.from_cache:  # its usage is an equal request's
            return Total()
        told = {name: getattr(usage, name) for name in _OF_USAGE}
        return Total(requests=int(not usage.from_ahead), **told)


_OF_USAGE = tuple(row.name for row in fields(Total) if row.name in Usage.__slots__)


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A generation, choice or commit of a program: its line, its kind and its name."""

    file: str
    line: int
    kind: str
    name: str

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(slots=True)
class Totals:
    """Sums by generation. wall_s: from the first request to the last reply, if it was measured."""

    by_key: dict[Key, Total] = field(default_factory=dict)
    wall_s: float | None = None

    def add(self, key: Key, usage: Usage) -> None:
        self.by_key[key] = self.by_key.get(key, Total()).plus(Total.of(usage))

    def add_all(self, requests: Iterable[Request]) -> None:
        for request in requests:
            self.add(key_of(request.kind, request.name, str(request.loc or "")), request.usage)

    def add_prefetches(self, prefetches: Iterable[Request]) -> None:
        for each in prefetches:
            key = key_of(each.kind, each.name, str(each.loc or ""))
            total = Total(prefetched_tokens=each.usage.computed_tokens)
            self.by_key[key] = self.by_key.get(key, Total()).plus(total)

    def rows(self) -> Iterator[tuple[Key, Total]]:
        """The sums in the order of the program's lines."""
        return iter(sorted(self.by_key.items()))

    @property
    def total(self) -> Total:
        found = Total()
        for each in self.by_key.values():
            found = found.plus(each)
        return found


def key_of(kind: str, name: str, where: str) -> Key:
    """The key of a request. where: `file:line` or ""."""
    file, _, line = where.rpartition(":")
    return Key(file, int(line) if line.isdecimal() else 0, kind, name)


def measured(log: RunLog) -> Totals:
    """The usage of the run that wrote a log, over all its rows."""
    found = Totals()
    starts, ends = [], []
    for record in log.records():
        if record["kind"] not in KINDS:
            continue
        try:
            key = key_of(record["kind"], record.get("name", ""), record.get("line", ""))
            found.add(key, replace(usage_in(record), from_log=False))
            starts.append(float(record["start_s"]))
            ends.append(float(record["end_s"]))
        except (KeyError, TypeError, ValueError) as error:
            raise RunLogError(f"{log.path}: a {record['kind']} is malformed: {error!r}") from error
    found.wall_s = max(ends) - min(starts) if starts else None
    return found
