"""The backend for one draw of a program, behind the run's log.

A request in the log is not made again; a new one is written when its reply comes. The requests of a
draw are numbered, including tries whose reply a constraint rejected.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from sgc.errors import RunLogError
from sgc.runtime.executor.interface.backend import (
    Backend,
    Generated,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
    Usage,
)
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.interface.log import Json, Log
from sgc.runtime.executor.interface.place import Place
from sgc.runtime.executor.log.kept_replies import KeptReplies
from sgc.runtime.executor.log.records import (
    fingerprint,
    prompt_parts,
    sampling_parts,
    shown_prompt,
    usage_json,
    usage_of,
)
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.record import Request

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Logged:
    """A backend behind a run's log."""

    backend: Backend
    log: Log

    def at(self, place: Place) -> Backend:
        return LoggedBackend(self.backend, self.log, place)


class LoggedBackend(KeptReplies):
    """The backend for one draw, or one commit.

    Prefetches are not logged: a hint changes no result.
    """

    def __init__(self, backend: Backend, log: Log, place: Place) -> None:
        super().__init__(backend)
        self._log = log
        self._place = {"row": place.row, "path": place.path, "ordinal": place.ordinal}
        self._told = {"name": place.name, "line": place.line}
        self._number = 0

    async def generation(self, prompt: Prompt, sampling: Sampling) -> Json:
        return self._request("generate", prompt, {"sampling": sampling_parts(sampling)})

    async def choice(self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool) -> Json:
        asked = {"choices": choices, "unconditional": unconditional}
        return self._request("score", prompt, asked)

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        request = self._request("commit", prompt, {"heads": heads})
        usage = await self.find(request, usage_of)
        if usage is None:
            start_s = time.monotonic()
            usage = await super().commit_prefix(prompt, heads)
            await self.keep(request, usage_json(usage), start_s)
        return usage

    def _request(self, kind: str, prompt: Prompt, asked: Json) -> Json:
        """Returns the record of this draw's next request, without its reply."""
        number, self._number = self._number, self._number + 1
        return {
            "kind": kind,
            **self._place,
            "number": number,
            **self._told,
            "fingerprint": fingerprint(kind, prompt_parts(prompt), asked),
            "prompt": shown_prompt(prompt),
            **asked,
        }

    async def find(self, request: Json, decode: Callable[[Json], T]) -> T | None:
        names = ("kind", "row", "path", "ordinal", "number")
        what = f"{request['kind']} {request['name']}".rstrip()
        found = self._log.find_same(
            tuple(request[name] for name in names), request["fingerprint"], what, request["line"]
        )
        if found is None:
            if self._log.is_replay and request["kind"] != "commit":  # a commit changes no result
                raise not_in_log(self._log, what, request["line"])
            return None
        try:
            return decode(found["reply"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunLogError(f"{self._log.path}: the reply to {what} is malformed") from error

    async def keep(self, request: Json, reply: Json, start_s: float) -> None:
        if self._log.is_replay:
            return
        times = {"start_s": start_s, "end_s": time.monotonic()}
        walls = {name: self._log.wall_s(seconds) for name, seconds in times.items()}
        self._log.append({**request, **walls, "reply": reply})


def log_as(log: Log, row: str, drawn: Request, shared: Request) -> None:
    """Copies a draw's records, all its tries included, to another draw that shares its replies.

    A later run that makes both requests finds both in the log.
    """
    if log.is_replay or log.find(shared.kind, row, shared.path, shared.ordinal, 0) is not None:
        return
    told = {"name": shared.name, "line": str(shared.loc or "")}
    place = {"path": shared.path, "ordinal": shared.ordinal}
    for number in count():
        found = log.find(drawn.kind, row, drawn.path, drawn.ordinal, number)
        if found is None:
            return
        reply = found["reply"]
        reply = {**reply, "usage": {**reply["usage"], "from_shared": True}}
        log.append({**found, **place, **told, "reply": reply})


def not_in_log(log: Log, what: str, where: str) -> RunLogError:
    return RunLogError(
        f"the log {log.path} does not have {what}: the run that wrote it did not get so far",
        where=where,
        hint="continue it on a backend: sgc run … --resume " + log.path,
    )


class ReplayBackend(Backend):
    """A backend for replays: every reply comes from the log, and a missing one is an error."""

    def __init__(self, log: RunLog) -> None:
        self._log = log

    async def capabilities(self) -> Capabilities:
        return self._log.capabilities()

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        raise not_in_log(self._log, "a generation", "")

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        raise not_in_log(self._log, "a choice", "")
