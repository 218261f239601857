"""An engine on an actor: a child process as `sgc serve` starts, which ends with the actor.

If the engine ends, the actor ends too, so that Ray restarts both, perhaps on another node.
"""

from __future__ import annotations

import os
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

from sgc.runtime.engine.launch import EmbeddedEngine

LOOPBACK = "127.0.0.1"
EXIT_CODE = 70  # of an actor whose engine has ended
STOP_MARGIN_S = 5.0


@dataclass(frozen=True, slots=True)
class FleetAsked:
    """The settings of a fleet's engines. home: the node of the process that uses them; tokens: the
    text of a token file, and a name that tells its format; is_open: whether an engine on the home
    node needs no token; arguments: of `sgc serve`.
    """

    model: str | None
    arguments: tuple[str, ...]
    home: str
    tokens: str = field(repr=False)
    token_name: str
    is_open: bool
    start_timeout_s: float


class EngineActor:
    """The actor. `served` reports a failed start, since Ray says little about an actor whose
    constructor fails."""

    def __init__(self, asked: FleetAsked) -> None:
        self._asked = asked
        self._is_stopping = False
        self._folder = tempfile.TemporaryDirectory(prefix="sgc-ray-")  # mode 0700
        self._error: BaseException | None = None
        try:
            self._engine = self._started()
        except Exception as error:  # raised by `served`
            self._error = error
            return
        threading.Thread(target=self._watch, daemon=True).start()

    def served(self) -> dict[str, str]:
        """Where the engine listens. Raises the error that ended its start."""
        if self._error is not None:
            raise self._error
        return {"grpc": self._engine.uri, "http": self._engine.http_url}

    def pids(self) -> dict[str, int]:
        """The ids of the processes, for tests and monitoring."""
        return {"actor": os.getpid(), "engine": self._engine.pid or 0}

    def stop(self, drain_s: float) -> None:
        """Ends the engine once its requests have ended, or after `drain_s` seconds."""
        self._is_stopping = True
        if self._error is None:
            self._engine.drain(drain_s + STOP_MARGIN_S)
            self._engine.stop()
        self._folder.cleanup()

    def _started(self) -> EmbeddedEngine:
        asked, (node, address) = self._asked, _place()
        is_home = node == asked.home
        host = LOOPBACK if is_home else _bracketed(address)
        arguments = [*asked.arguments, "--http", f"{host}:0"]
        if not (is_home and asked.is_open):
            arguments += ["--token-file", str(self._token_file())]
        engine = EmbeddedEngine(asked.model, arguments, asked.start_timeout_s, f"{host}:0")
        return engine.start()

    def _token_file(self) -> Path:
        path = Path(self._folder.name) / self._asked.token_name
        path.touch(mode=0o600)
        path.write_text(self._asked.tokens, encoding="utf-8")
        return path

    def _watch(self) -> None:
        self._engine.wait()
        if not self._is_stopping:
            os._exit(EXIT_CODE)


def _place() -> tuple[str, str]:
    """The id of this process's node, and its address."""
    import ray

    return ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address()


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
