"""The shared part of drivers of asynchronous engines: concurrent chats, and programs."""

from __future__ import annotations

import asyncio
from typing import Any

from protocol import Chats, Tally  # makes `arrivals` importable

import arrivals  # isort: skip


class AsyncioPeer:
    """A peer with the methods of `programs_asyncio.Engine`, which subclasses define."""

    folder: str  # of the model, for its tokenizer
    way_to_select = "score"

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()

    async def generate(self, ids: list[int], n_out: int, tally: Tally) -> list[int]:
        raise NotImplementedError

    async def match(self, ids: list[int], regex: str, n_max: int, tally: Tally) -> list[int]:
        raise NotImplementedError("this peer's driver has no regular expressions")

    async def select(self, ids: list[int], choices: list[list[int]], tally: Tally) -> int:
        raise NotImplementedError("this peer's driver does not select")

    def run_chats(self, chats: Chats) -> Tally:
        return self.loop.run_until_complete(self._run_chats(chats))

    def run_program(self, program: str, texts: list[str], select: str) -> Tally:
        import programs_asyncio  # imports `tokenizers`, which token workloads do not need
        from texts import judged

        tally, self.way_to_select = Tally(), select
        answers = self.loop.run_until_complete(
            programs_asyncio.run_rows(self, self.folder, program, texts, tally)
        )
        tally.extra = judged(program, answers)
        return tally

    def run_arrivals(self, programs: list[dict[str, Any]]) -> Tally:
        tally = Tally()

        async def ask(ids: list[int], n_out: int, hint: arrivals.Hint) -> list[int]:
            return await self.generate(ids, n_out, tally)

        times = self.loop.run_until_complete(arrivals.run(programs, ask))
        tally.extra = {"times_s": times}
        return tally

    async def _run_chats(self, chats: Chats) -> Tally:
        tally = Tally()
        tally.first_ids = list(await asyncio.gather(*(self._chat(t, tally) for t in chats)))
        return tally

    async def _chat(self, turns: list[dict[str, Any]], tally: Tally) -> int:
        history: list[int] = []
        first_id = -1
        for turn in turns:
            history += turn["ids"]
            made = await self.generate(history, turn["n_out"], tally)
            assert len(made) == turn["n_out"], f"{len(made)} ids, not {turn['n_out']}"
            history += made
            first_id = made[0] if first_id < 0 else first_id
        return first_id

    def close(self) -> None:
        self.loop.close()
