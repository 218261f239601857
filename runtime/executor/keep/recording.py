"""Recordings: the requests and replies of a backend, so that a run can be repeated without it.

A recording knows requests, not programs, so the order of different requests does not matter. Equal
requests receive their replies in the recorded order, and further ones the last reply again. If
requests differ only in their seeds, one that was not recorded receives the next unused reply. The
file has one JSON line for each reply, and only its owner may read it: it holds prompts and replies.
"""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from sgc.errors import RunLogError, UsageError
from sgc.runtime.executor.interface.backend import (
    Backend,
    Generated,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
)
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.interface.log import Json, Key
from sgc.runtime.executor.keep.not_recorded import not_recorded
from sgc.runtime.executor.keep.request_keys import generation_key, score_key
from sgc.runtime.executor.log.file import Form, LogFile
from sgc.runtime.executor.log.kept_replies import KeptReplies
from sgc.runtime.executor.log.records import (
    capabilities_json,
    capabilities_of,
    fingerprint,
    generated_of,
    sampling_parts,
    scored_of,
    shown_prompt,
)

FORM = Form(
    "sgc_recording", 1, "a recording",
    {"backend": (), "run": (), "reply": ("fingerprint", "number")},
)  # fmt: skip

R = TypeVar("R", Generated, Scored)
T = TypeVar("T")


class Recorder(KeptReplies):
    """A backend whose replies are written to a new file."""

    def __init__(self, backend: Backend, file: LogFile) -> None:
        super().__init__(backend)
        self._file = file
        self._counts: Counter[str] = Counter()
        self._adapter = ""

    @staticmethod
    def begin(path: str | os.PathLike[str]) -> LogFile:
        """Makes a new file. Raises UsageError if it already is a recording."""
        file = LogFile.open(os.fspath(path), FORM)
        if any(key[0] == "reply" for key in file.places()):
            file.close()
            raise UsageError(f"{file.path} already is a recording", hint="name another file")
        return file

    def with_adapter(self, name: str) -> Recorder:
        found = super().with_adapter(name)
        found._adapter = name
        return found

    def note_seed(self, seed: int) -> None:
        """Records the seed of the run."""
        self._file.append({"kind": "run", "seed": seed})

    async def capabilities(self) -> Capabilities:
        found = await self.inner.capabilities()
        if self._file.find(("backend",)) is None:
            self._file.append({"kind": "backend", "capabilities": capabilities_json(found)})
        return found

    async def generation(self, prompt: Prompt, sampling: Sampling) -> _Asked:
        return _Asked.generation(prompt, sampling, self._adapter)

    async def choice(self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool) -> _Asked:
        return _Asked.choice(prompt, choices, unconditional, self._adapter)

    async def find(self, request: _Asked, decode: Callable[[Json], T]) -> T | None:
        return None  # every reply is recorded

    async def keep(self, request: _Asked, reply: Json, start_s: float) -> None:
        key = request.key
        number = self._counts[key]
        self._counts[key] += 1
        told = {"of": request.of, "fingerprint": key, "number": number}
        shown = {"unseeded": request.unseeded, "prompt": request.prompt, **request.fields}
        self._file.append({"kind": "reply", **told, **shown, "reply": reply})

    async def close(self) -> None:
        """Closes the file; the endpoint closes the backend."""
        self._file.close()


class Replayer(Backend):
    """A backend whose replies come from a recording; a missing one is an error.

    seed: the seed of the recorded run, if known.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = LogFile.read(os.fspath(path), FORM)
        try:
            self._by_key, self._unseeded = self._indexed()
            run = self._file.find(("run",)) or {}
        except BaseException:
            self._file.close()
            raise
        seed = run.get("seed")
        self.seed = seed if isinstance(seed, int) else None
        self._adapter = ""
        self._asked: Counter[str] = Counter()
        self._used: set[Key] = set()

    def with_adapter(self, name: str) -> Replayer:
        found = copy.copy(self)  # it shares the replies, and which of them are used
        found._adapter = name
        return found

    def _indexed(self) -> tuple[dict[str, list[Key]], dict[str, list[Key]]]:
        """Returns the keys of the replies' records by request, and by request without its seed."""
        by_key: dict[str, list[Key]] = {}
        unseeded: dict[str, list[Key]] = {}
        for place in self._file.places():
            if place[0] == "reply":
                by_key.setdefault(place[1], []).append(place)
                record = self._file.find(place) or {}
                unseeded.setdefault(str(record.get("unseeded")), []).append(place)
        return by_key, unseeded

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def n_replies(self) -> int:
        return sum(map(len, self._by_key.values()))

    @property
    def n_unused(self) -> int:
        """How many recorded replies were not requested."""
        return self.n_replies - len(self._used)

    async def capabilities(self) -> Capabilities:
        found = self._file.find(("backend",)) or {}
        try:
            return capabilities_of(found["capabilities"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunLogError(f"{self.path}: it does not name the backend: {error}") from error

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        reply = self._next(_Asked.generation(prompt, sampling, self._adapter), generated_of)
        if on_delta is not None and reply.text:
            on_delta(reply.text)
        return reply

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        asked = _Asked.choice(prompt, choices, unconditional, self._adapter)
        return self._next(asked, scored_of)

    async def close(self) -> None:
        self._file.close()

    def _next(self, asked: _Asked, decode: Callable[[Json], R]) -> R:
        place = self._place(asked.key, asked.unseeded)
        if place is None:
            raise not_recorded(self._file, asked.of, asked.prompt, asked.fields)
        self._used.add(place)
        record = self._file.find(place) or {}
        try:
            reply = decode(record["reply"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunLogError(f"{self.path}: a reply is malformed: {error}") from error
        return replace(reply, usage=replace(reply.usage, from_cache=False, from_shared=False))

    def _place(self, key: str, unseeded: str) -> Key | None:
        if key in self._by_key:
            places = self._by_key[key]
            self._asked[key] += 1
            return places[min(self._asked[key], len(places)) - 1]
        return next((p for p in self._unseeded.get(unseeded, ()) if p not in self._used), None)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request. of: generate or score; key, unseeded: its keys with and without the seed; prompt:
    the end of its text; fields: its other fields.
    """

    of: str
    key: str
    unseeded: str
    prompt: str
    fields: Json

    @staticmethod
    def generation(prompt: Prompt, sampling: Sampling, adapter: str) -> _Asked:
        key = _adapted(generation_key(prompt, sampling), adapter)
        unseeded = _adapted(generation_key(prompt, replace(sampling, seed=0)), adapter)
        fields = {"sampling": sampling_parts(sampling), **_named(adapter)}
        return _Asked("generate", key, unseeded, shown_prompt(prompt), fields)

    @staticmethod
    def choice(
        prompt: Prompt, choices: tuple[str, ...], unconditional: bool, adapter: str
    ) -> _Asked:
        key = _adapted(score_key(prompt, choices, unconditional), adapter)
        asked = {"choices": list(choices), "unconditional": unconditional}
        fields: Json = {**asked, **_named(adapter)}
        return _Asked("score", key, key, shown_prompt(prompt), fields)


def _adapted(key: str, adapter: str) -> str:
    """The key of a request to a model with an adapter."""
    return fingerprint("adapter", adapter, key) if adapter else key


def _named(adapter: str) -> Json:
    return {"adapter": adapter} if adapter else {}
