"""The step process: `python -m sgc.runtime.engine.worker --fd N --config JSON`.

It owns the model, the pool and the step loop, and speaks `worker.proto` over an inherited
socket with the server process, which does gRPC and text. It ends when that socket closes.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import socket
import sys
import traceback

from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.core import EngineCore
from sgc.runtime.engine.load import Loaded, WorkerConfig, load
from sgc.runtime.engine.request import Update
from sgc.runtime.engine.wire import Channel, request_of, stats_message, update_message


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="sgc.runtime.engine.worker", description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="an inherited, connected socket")
    parser.add_argument("--config", required=True, help="JSON; see load.WorkerConfig")
    options = parser.parse_args(arguments)
    # An interrupt goes to the whole process group; the server ends this process in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=options.fd))
    # If the server is gone, so is everyone who waits.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        return _load_and_serve(channel, options.config)
    return 0


def _load_and_serve(channel: Channel, config: str) -> int:
    try:
        loaded = load(WorkerConfig.from_json(config))
    except Exception as error:
        traceback.print_exc()
        is_told = isinstance(error, ValueError | OSError) and str(error)
        channel.send(wpb.Ready(error=str(error) if is_told else repr(error)))
        return 1
    channel.send(_ready(loaded))
    serve(channel, loaded.core)
    return 0


def serve(channel: Channel, core: EngineCore) -> None:
    """Takes what has arrived, makes one step, says what came of it; until the socket ends."""
    while channel.is_open:
        output = wpb.StepOutput()
        for message in channel.receive(block=not core.has_work):
            _take_in(core, message, output)
        if not channel.is_open:
            return
        if core.has_work:
            output.updates.extend(update_message(update) for update in _step(core))
        if output.ByteSize():
            channel.send(output)


def _take_in(core: EngineCore, message: wpb.StepInput, output: wpb.StepOutput) -> None:
    for request in message.requests:
        core.submit(request_of(request))
    for request_id in message.cancels:
        core.cancel(request_id)
    if message.flush_cache:
        output.flushed = True
        output.flushed_tokens += core.flush_cache()
    if message.want_stats:
        output.stats.CopyFrom(stats_message(core.stats()))


def _step(core: EngineCore) -> list[Update]:
    try:
        return core.step()
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
    limits = loaded.core.limits
    return wpb.Ready(
        max_context=limits.max_context,
        pool_tokens=limits.pool_tokens,
        vocab_size=limits.vocab_size,
        dtype=loaded.dtype,
        device=loaded.device,
    )


if __name__ == "__main__":
    sys.exit(main())
