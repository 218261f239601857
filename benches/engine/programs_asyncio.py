"""The programs of workload W5, written competently for an engine with asyncio.

Branches of a program run concurrently, and so do rows, up to 64. Prompts are token ids: text pieces
are tokenized once and generated ids kept, so that a prefix cache finds all it can. The drivers of
the peers share it, so it imports only `tokenizers`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import texts as t
from tokenizers import Tokenizer

MAX_IN_FLIGHT = 64


class Engine(Protocol):
    """A peer's driver; generation is greedy. generate: makes exactly n_out ids. match: makes a text
    that matches the regular expression, of at most n_max ids; an end token may follow."""

    async def generate(self, ids: list[int], n_out: int, tally: Any) -> list[int]: ...

    async def match(self, ids: list[int], regex: str, n_max: int, tally: Any) -> list[int]: ...

    async def select(self, ids: list[int], choices: list[list[int]], tally: Any) -> int: ...


class Client:
    """An engine, with a tokenizer and the tally of a run."""

    def __init__(self, engine: Engine, folder: str, tally: Any) -> None:
        tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
        self._engine, self._tally, self._tokenizer = engine, tally, tokenizer
        self._encode = lru_cache(4096)(lambda text: tuple(tokenizer.encode(text).ids))

    def ids(self, *pieces: str | list[int]) -> list[int]:
        """Concatenates pieces: texts are tokenized, ids are kept."""
        joined: list[int] = []
        for piece in pieces:
            joined += self._encode(piece) if isinstance(piece, str) else piece
        return joined

    async def gen(self, ids: list[int], n_out: int) -> list[int]:
        return await self._engine.generate(ids, n_out, self._tally)

    async def match(self, ids: list[int], regex: str, n_max: int) -> str:
        made = await self._engine.match(ids, regex, n_max, self._tally)
        text: str = self._tokenizer.decode(made)
        return text

    async def select(self, ids: list[int], choices: tuple[str, ...]) -> int:
        return await self._engine.select(ids, [self.ids(each) for each in choices], self._tally)


async def essay_judge(client: Client, text: str) -> Any:
    head = client.ids(t.JUDGE_HEAD + text + "\n")
    judgments = await asyncio.gather(
        *(
            client.gen(head + client.ids(t.JUDGE_ASK.format(each)), t.N_JUDGMENT)
            for each in t.DIMENSIONS
        )
    )
    ids = list(head)
    for dimension, judgment in zip(t.DIMENSIONS, judgments, strict=True):
        ids += client.ids(dimension + ":", judgment, "\n")
    return await client.gen(ids + client.ids(t.JUDGE_END), t.N_SUMMARY)


async def tree_of_thought(client: Client, text: str) -> Any:
    head = client.ids(t.TREE_HEAD + text + "\n")
    found = await asyncio.gather(*(_plan(client, head, i + 1) for i in range(t.N_PLANS)))
    ids = list(head)
    for ways in found:
        for solution, rating in ways:
            ids += client.ids(solution, t.TREE_RATE, rating)
    return await client.gen(ids + client.ids(t.TREE_END), t.N_BEST)


async def _plan(client: Client, head: list[int], number: int) -> list[Any]:
    ids = head + client.ids(t.TREE_PLAN.format(number))
    ids += await client.gen(ids, t.N_PLAN)
    return await asyncio.gather(*(_way(client, ids, j + 1) for j in range(t.N_WAYS)))


async def _way(client: Client, plan: list[int], number: int) -> tuple[list[int], list[int]]:
    ids = plan + client.ids(t.TREE_SOLVE.format(number))
    solution = await client.gen(ids, t.N_SOLVE)
    return solution, await client.gen(client.ids(ids, solution, t.TREE_RATE), t.N_RATE)


async def multi_chain(client: Client, text: str) -> Any:
    head = client.ids(t.CHAIN_HEAD + text + "\n")
    asks = [client.ids(t.CHAIN_ASK.format(i + 1)) for i in range(t.N_CHAINS)]
    chains = await asyncio.gather(*(client.gen(head + ask, t.N_CHAIN) for ask in asks))
    ids = list(head)
    for ask, chain in zip(asks, chains, strict=True):
        ids += client.ids(ask, chain, "\n")
    return await client.gen(ids + client.ids(t.CHAIN_END), t.N_ANSWER)


async def few_shot_select(client: Client, text: str) -> Any:
    return await client.select(client.ids(text), t.CHOICES)


async def json_by_regex(client: Client, text: str) -> Any:
    ids = client.ids(t.CHARACTER_ASK.format(text))
    return await client.match(ids, t.CHARACTER, t.N_CHARACTER)


PROGRAMS: dict[str, Callable[[Client, str], Awaitable[Any]]] = {
    function.__name__: function
    for function in (essay_judge, tree_of_thought, multi_chain, few_shot_select, json_by_regex)
}


async def run_rows(
    engine: Engine, folder: str, program: str, texts: list[str], tally: Any
) -> list[Any]:
    """The answers of the rows, in order."""
    client, room = Client(engine, folder, tally), asyncio.Semaphore(MAX_IN_FLIGHT)

    async def row(text: str) -> Any:
        async with room:
            return await PROGRAMS[program](client, text)

    return await asyncio.gather(*map(row, texts))
