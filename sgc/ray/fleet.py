"""Engines on Ray: an actor each, which Ray starts and restarts; and their current addresses."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from sgc.errors import EngineUnavailable, SgcError, UsageError
from sgc.ray.asked import settings_of
from sgc.ray.engine_actor import STOP_MARGIN_S, EngineActor, FleetAsked
from sgc.runs.endpoints import require_engine, serve_arguments

MAX_ENGINES = 1024
START_TIMEOUT_S = 600.0  # of one engine, which may have to fetch its model
CONNECT_S = 5.0
LOOK_S = 1.0  # how long actors may take to say where their engines are
NO_ROOM_S = 15.0  # after this, a line says that Ray has not started an actor
# An engine that failed to start is tried again after this long, then twice as long, and so on.
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
DRAIN_S = 20.0  # as `sgc serve` has it
OBJECT_STORE_BYTES = 128 << 20  # of a Ray that is started for engines only, which store nothing
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Served:
    """Where an engine listens: over gRPC, and over HTTP."""

    uri: str
    url: str


@dataclass(slots=True, eq=False)
class _Slot:
    """An engine of the fleet. asked: the pending call that returns where it listens."""

    actor: Any = None
    asked: Any = None
    asked_since: float = 0.0
    served: Served | None = None
    wait_s: float = FIRST_WAIT_S  # the wait after the next failure
    starts_at: float = 0.0
    is_told: bool = False
    error: SgcError | None = None


@dataclass(slots=True)
class _Leaving:
    actor: Any
    stopped: Any
    until: float = field(default=0.0)


class Fleet:
    """`n` engines of one model; a context manager. Used by one thread at a time.

    model: as for `sgc serve --model`; settings: other options of `sgc serve`, with underscores.
    address: of a Ray cluster, "auto" for a running one; without it, the cluster that this process
    is connected to, or $RAY_ADDRESS, else a new cluster on this machine. num_cpus, num_gpus: what
    Ray sets aside for an engine; ray_options: others of its actors. Engines on this machine listen
    on loopback; other engines need a token, which is made here; `token_file` adds the tokens of
    clients.
    """

    def __init__(
        self,
        n: int,
        model: str | None = None,
        *,
        address: str | None = None,
        num_cpus: float = 1,
        num_gpus: float = 0,
        token_file: str | os.PathLike[str] | None = None,
        ray_options: Mapping[str, Any] | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
        tell: Tell = lambda line: None,
        **settings: Any,
    ) -> None:
        require_engine()
        settings = settings_of(settings, num_cpus)
        self._drain_s = float(settings.get("drain_seconds", DRAIN_S))
        self.token = secrets.token_urlsafe(32)
        tokens, name, is_open = _tokens(token_file, self.token)
        self._tell = tell
        self._slots: list[_Slot] = []
        self._leaving: list[_Leaving] = []
        self._is_own = not ray.is_initialized()
        if self._is_own:
            _connect(address)
        arguments = tuple(serve_arguments(settings))
        self._asked = FleetAsked(model, arguments, _home(), tokens, name, is_open, start_timeout_s)
        self._options = {"num_cpus": num_cpus, "num_gpus": num_gpus, "max_restarts": -1,
                         "max_task_retries": -1, **(ray_options or {})}  # fmt: skip
        self.scale(n)

    def scale(self, n: int) -> None:
        """Changes the number of engines. Surplus engines end once their requests have ended, or
        after `drain_seconds`."""
        if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MAX_ENGINES:
            raise UsageError(f"a fleet has 1 to {MAX_ENGINES} engines, found {n!r}")
        while len(self._slots) > n:
            self._leave(self._slots.pop())
        self._slots += [_Slot() for _ in range(n - len(self._slots))]
        self._start()

    def look(self) -> list[Served]:
        """Where the running engines listen now; takes a second at most."""
        self._start()
        asked = [slot.asked for slot in self._slots if slot.asked is not None]
        ready = ray.wait(asked, num_returns=len(asked), timeout=LOOK_S)[0] if asked else []
        for slot in self._slots:
            if slot.asked is not None and slot.asked in ready:
                self._take(slot)
            elif slot.served is None and slot.asked is not None:
                self._tell_of_waiting(slot)
        self._reap()
        return [slot.served for slot in self._slots if slot.served is not None]

    def wait(self, n: int = 1, timeout_s: float = START_TIMEOUT_S) -> list[Served]:
        """Waits until n engines run. Raises an engine's error if no engine of the fleet starts."""
        until = time.monotonic() + timeout_s
        while len(found := self.look()) < n:
            errors = [slot.error for slot in self._slots if slot.error is not None]
            if not found and len(errors) == len(self._slots):
                raise errors[0]
            if time.monotonic() >= until:
                raise EngineUnavailable(
                    f"{len(found)} of {n} engines have started within {timeout_s:g} s",
                    hint="`ray status` tells what the cluster has room for",
                )
            time.sleep(0.05)
        return found

    @property
    def actors(self) -> list[Any]:
        """The handles of the actors."""
        return [slot.actor for slot in self._slots if slot.actor is not None]

    def close(self) -> None:
        """Ends all engines, and the Ray cluster that was started for them."""
        if not ray.is_initialized():
            return
        while self._slots:
            self._leave(self._slots.pop())
        while self._leaving:
            stopping = [each.stopped for each in self._leaving]
            ray.wait(stopping, num_returns=len(stopping), timeout=LOOK_S)
            self._reap()
        if self._is_own:
            ray.shutdown()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self) -> None:
        """Makes missing actors, and asks the others where their engines listen."""
        now = time.monotonic()
        for slot in self._slots:
            if slot.actor is None and now >= slot.starts_at:
                made = ray.remote(EngineActor).options(**self._options)
                slot.actor, slot.is_told = made.remote(self._asked), False
            if slot.actor is not None and slot.asked is None:
                slot.asked, slot.asked_since = slot.actor.served.remote(), now

    def _take(self, slot: _Slot) -> None:
        """Takes the answer of an actor; if there is none, another actor is made after a while."""
        asked, slot.asked = slot.asked, None
        try:
            found = ray.get(asked)
        except RayTaskError as error:
            cause = error.cause if isinstance(error.cause, SgcError) else error
            self._failed(slot, cause)
        except RayActorError as error:
            self._failed(slot, error)
        else:
            slot.served = Served(found["grpc"], found["http"])
            slot.wait_s, slot.error, slot.is_told = FIRST_WAIT_S, None, False

    def _failed(self, slot: _Slot, error: Exception) -> None:
        slot.served = None
        told = error if isinstance(error, SgcError) else EngineUnavailable(_first_line(error))
        slot.error = told
        wait_s = slot.wait_s
        slot.wait_s = min(LONGEST_WAIT_S, 2 * wait_s)
        slot.starts_at = time.monotonic() + wait_s
        ray.kill(slot.actor)
        slot.actor = None
        self._tell(f"an engine did not start, and is tried again in {wait_s:g} s: {told}")

    def _tell_of_waiting(self, slot: _Slot) -> None:
        if not slot.is_told and time.monotonic() - slot.asked_since > NO_ROOM_S:
            slot.is_told = True
            self._tell(
                "an engine has not started yet: it loads its model, or Ray has no room for it "
                "(`ray status` tells; each takes "
                f"{self._options['num_cpus']:g} CPUs and {self._options['num_gpus']:g} GPUs)"
            )

    def _leave(self, slot: _Slot) -> None:
        if slot.actor is not None:
            until = time.monotonic() + self._drain_s + 2 * STOP_MARGIN_S
            if slot.served is None:
                until = 0.0  # it has not started, so it has no requests
            self._leaving.append(_Leaving(slot.actor, slot.actor.stop.remote(self._drain_s), until))

    def _reap(self) -> None:
        """Ends the actors whose engines have ended, or have had the time to end."""
        left = []
        for each in self._leaving:
            is_over = bool(ray.wait([each.stopped], timeout=0)[0])
            if is_over or time.monotonic() >= each.until:
                ray.kill(each.actor)
            else:
                left.append(each)
        self._leaving = left


def _home() -> str:
    """The node of this process."""
    return str(ray.get_runtime_context().get_node_id())


def _connect(address: str | None) -> None:
    """Connects to a cluster, or starts one of this machine's own."""
    options: dict[str, Any] = {"namespace": "sgc", "log_to_driver": False, "logging_level": "error"}
    if address is None and not os.environ.get("RAY_ADDRESS"):
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    try:
        _check_port(address)
        ray.init(address=address, **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"Ray at {address or 'this machine'} cannot be reached: {_first_line(error)}",
            hint="`ray start --head` starts a cluster; without an address one is started here",
        ) from error


def _check_port(address: str | None) -> None:
    """Raises ConnectionError if nobody listens at HOST:PORT, for which Ray waits for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), CONNECT_S).close()
        except OSError as error:
            raise ConnectionError(str(error)) from error


def _tokens(file: str | os.PathLike[str] | None, own: str) -> tuple[str, str, bool]:
    """The text of the engines' token file, its name, and whether clients here need no token."""
    if file is not None:
        path = Path(file).expanduser()
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {path}: {error}") from error
        if path.suffix == ".toml":
            entry = f'[[token]]\nname = "sgc-router"\ntoken = "{own}"\n'
            return f"{text}\n{entry}", "tokens.toml", False
        return f"{text}\n{own}\n", "tokens", False
    if given := os.environ.get("SGC_TOKEN"):
        return f"{given}\n{own}\n", "tokens", False
    return f"{own}\n", "tokens", True


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
