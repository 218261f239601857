"""The step process: `python -m sgc.runtime.engine.worker.main --fd N --config JSON`.

It owns the model, the pool and the step loop, and speaks `worker.proto` over an inherited
socket with the server process, which does gRPC and text. It ends when that socket closes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable

from sgc.errors import SgcError
from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.model.forward import Accuracy
from sgc.runtime.engine.process import garbage
from sgc.runtime.engine.requests.request import Update
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.engine.worker.intake import Intake
from sgc.runtime.engine.worker.load import Loaded, WorkerConfig, load
from sgc.runtime.engine.worker.outgoing import Outgoing
from sgc.runtime.engine.worker.peer import ending_with_peer
from sgc.runtime.engine.worker.wire import Channel, stats_message


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="sgc.runtime.engine.worker.main", description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="an inherited, connected socket")
    parser.add_argument("--config", required=True, help="JSON; see load.WorkerConfig")
    options = parser.parse_args(arguments)
    # An interrupt goes to the whole process group; the server ends this process in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sock = socket.socket(fileno=options.fd)
    channel = Channel(sock)
    # If the server is gone, nobody waits for replies.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        with ending_with_peer(sock.fileno()):
            ready, loaded = _load(options.config)
        channel.send(ready)
        if loaded is None:
            return 1
        garbage.collect_seldom()
        intake = Intake(loaded.core, loaded.compile)
        serve(channel, loaded.core, intake, loaded.later)
        intake.close()
        loaded.core.close()
    return 0


def _load(config: str) -> tuple[wpb.Ready, Loaded | None]:
    """Loads the model; returns the reply for the server. SGC_DEBUG prints a traceback."""
    try:
        loaded = load(WorkerConfig.from_json(config))
        return _ready(loaded), loaded
    except Exception as error:
        if os.environ.get("SGC_DEBUG"):
            traceback.print_exc()
        return wpb.Ready(error=_reason(error)), None


def _reason(error: Exception) -> str:
    text = str(error).strip()
    if isinstance(error, MemoryError):
        return f"there is not enough memory ({text or 'for its size'})"
    if isinstance(error, SgcError | ValueError | OSError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


COMPILING_S = 0.001  # how often to check for compiled constraints when idle
READING_S = 0.0003  # and what the disk has read


def serve(
    channel: Channel, core: EngineCore, intake: Intake, later: Callable[[], bool] | None = None
) -> None:
    """Reads messages, runs one step and sends the updates, until the socket closes. later: as of
    `load.Loaded`."""
    busy_s, started_s = 0.0, time.perf_counter()
    outgoing = Outgoing(channel)
    while channel.is_open:
        is_idle = not core.has_work
        messages = channel.receive(_wait_s(core, intake, has_more=later is not None))
        if is_idle:
            started_s = time.perf_counter()  # waiting does not count as busy
        for message in messages:
            _read_message(core, intake, message, outgoing)
        if not channel.is_open:
            return
        intake.pass_on_ready()
        updates = intake.take_refusals()
        if core.has_work:
            if not core.is_decoding_only and not core.is_ahead:  # a long step: send what waits
                outgoing.send(is_idle=True)
            updates += _step(core, _sending(outgoing) if core.is_ahead else None)
        for update in updates:
            outgoing.add(update)
        if outgoing.message.HasField("stats"):
            outgoing.message.stats.busy_s = busy_s
        if not core.is_ahead or not core.has_work:  # else while the next step runs
            outgoing.send(is_idle=not core.has_work)
        ended_s = time.perf_counter()
        busy_s, started_s = busy_s + ended_s - started_s, ended_s
        if later is not None and not later():
            later = None


def _wait_s(core: EngineCore, intake: Intake, has_more: bool) -> float | None:
    """How long to wait for a message; None: until one comes. has_more: something else to do."""
    if core.is_loading_only and not has_more:
        return READING_S
    if core.has_work or has_more:
        return 0.0
    return COMPILING_S if intake.is_waiting else None


def _read_message(
    core: EngineCore, intake: Intake, message: wpb.StepInput, outgoing: Outgoing
) -> None:
    for request in message.requests:
        intake.submit(request)
    for request_id in message.cancels:
        intake.cancel(request_id)
        outgoing.drop(request_id)
    if message.flush_cache:
        outgoing.message.flushed = True
        outgoing.message.flushed_tokens += core.flush_cache()
    if message.want_stats:
        outgoing.message.stats.CopyFrom(stats_message(core.stats()))


def _sending(outgoing: Outgoing) -> Callable[[], None]:
    return lambda: outgoing.send(is_idle=False)


def _step(core: EngineCore, meanwhile: Callable[[], None] | None = None) -> list[Update]:
    try:
        return core.step(meanwhile)
    except (BrokenPipeError, ConnectionResetError):  # of what is sent meanwhile
        raise
    except Exception as error:
        traceback.print_exc()
        message = f"a step failed: {type(error).__name__}: {error}"
    try:
        core.fail(message)
    except Exception:
        traceback.print_exc()
        core.reset(message)
    return []


def _ready(loaded: Loaded) -> wpb.Ready:
    limits, facts = loaded.core.limits, loaded.facts
    return wpb.Ready(
        max_context=limits.max_context,
        pool_tokens=limits.pool_tokens,
        vocab_size=limits.vocab_size,
        dtype=facts.dtype,
        device=facts.device,
        weights=facts.weights,
        kv=facts.kv,
        hidden_size=facts.hidden_size,
        takes_images=facts.takes_images,
        accuracy=None if facts.accuracy is None else _accuracy(facts.accuracy),
    )


def _accuracy(found: Accuracy) -> pb.Accuracy:
    return pb.Accuracy(
        tokens=found.n_tokens,
        cross_entropy=found.cross_entropy,
        own_cross_entropy=found.own_cross_entropy,
        divergence=found.divergence,
        equal_share=found.equal_share,
    )


if __name__ == "__main__":
    status = 1
    try:
        status = main()
    except BaseException:  # such as a device that is lost, for which torch would wait below
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(status)  # skips torch's orderly shutdown, which takes 0.1 s
