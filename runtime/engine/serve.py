"""Runs an engine: `python -m sgc.runtime.engine.serve --model M --listen ADDRESS`.

It checks the options, starts the step process, and leaves the rest to `serving.py`. Loading the
model takes longest, so whatever can be imported meanwhile is not imported before: no gRPC, no
asyncio, no tokenizers. An error prints one message, and with SGC_DEBUG set a traceback too. The
command line calls `run_server`, and `launch.py` runs this module as a child process.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sgc.errors import SgcError, UsageError
from sgc.runtime.engine.config import Checked, ServerConfig, check, worker_config
from sgc.runtime.engine.logs.log import FORMATS, PLAIN, Log
from sgc.runtime.engine.names import (
    ATTENTION,
    DTYPES,
    HELD_AS,
    LAST_TOKEN,
    MEAN,
    POLICIES,
    REASONING_NAMES,
    TOOL_FORMAT_NAMES,
    size_of,
)
from sgc.runtime.engine.worker import process as worker_process

if TYPE_CHECKING:
    from sgc.runtime.engine.http.beside import Beside


def run_server(config: ServerConfig, beside: Callable[[], Beside] | None = None) -> int:
    """Serves until a signal; returns the exit status. Errors are printed, not raised.

    beside: makes what else is on the HTTP site, while the model loads."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its log lines repeat our errors
    try:
        checked = check(config)
        is_plain = config.log_format == PLAIN
        worker = worker_process.spawn(worker_config(config, checked.source), is_heard=not is_plain)
        return _serve(checked, worker, beside)
    except SgcError as error:
        if os.environ.get("SGC_DEBUG"):
            import traceback

            traceback.print_exc()
        who = "sgc: " if config.tells and config.log_format == PLAIN else ""
        Log(config.log_format).tell("error", f"{who}error: {error}", "error")
        return 2 if isinstance(error, UsageError) else 1
    finally:
        if config.exit_with_parent:
            _remove_folder(config.listen)


def _serve(
    checked: Checked,
    worker: worker_process.WorkerProcess,
    beside: Callable[[], Beside] | None,
) -> int:
    try:
        import asyncio

        from sgc.runtime.engine.serving import serve

        other = None if beside is None else beside()
    except BaseException:
        worker.abandon()
        raise
    return asyncio.run(serve(checked, worker, other))


def _remove_folder(listen: str) -> None:
    """Removes the folder that the parent made for this socket; the parent may have ended."""
    if listen.startswith("unix:"):
        with contextlib.suppress(OSError):
            Path(listen.removeprefix("unix:")).parent.rmdir()  # if it is empty


def main(argv: Sequence[str] | None = None) -> int:
    return run_server(parse_arguments(argv))


def parse_arguments(argv: Sequence[str] | None = None) -> ServerConfig:
    parser = argparse.ArgumentParser(prog="sgc serve", description="Serve a model over gRPC.")
    add, defaults = parser.add_argument, ServerConfig()
    add("--model", help='a model folder, a GGUF file, a hub id, "default" or "fake"')
    add("--served-model-name", help="what clients call the model; by default its own name")
    add("--listen", default=defaults.listen, help="host:port (port 0: any) or unix:/path")
    add("--pool-tokens", type=_positive, help="token positions the KV pool holds")
    add("--max-context", type=_positive, help="longest prompt and generation, in tokens")
    add("--chunk-tokens", type=_positive, default=defaults.chunk_tokens)
    add("--max-running", type=_positive, default=defaults.max_running)
    add("--max-waiting", type=_positive, default=defaults.max_waiting)
    add("--policy", choices=POLICIES, default=defaults.policy)
    add("--no-batch-sharing", dest="shares_in_batch", action="store_false")
    add("--no-jump-forward", dest="jumps", action="store_false")
    add(
        "--lookup", action=argparse.BooleanOptionalAction, help="guess next tokens; on CPUs it does"
    )
    add("--dtype", choices=DTYPES, default="auto")
    add("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    add("--attention", choices=ATTENTION, default="auto", help="what attends on a GPU")
    add("--memory-fraction", type=_share, default=defaults.memory_fraction,
        help="how much of a GPU's memory to take")  # fmt: skip
    add("--tensor-parallel", type=_positive, default=1, help="GPUs that share the model")
    add("--weights", choices=HELD_AS, default="auto", help="int8: weights in eight bits")
    add("--kv", choices=HELD_AS, default="auto", help="int8: K and V in eight bits")
    add("--kv-dir", type=os.path.expanduser, help="a folder for evicted K and V, for later engines")
    add("--kv-dir-size", dest="kv_dir_bytes", type=_size, default=defaults.kv_dir_bytes,
        help="how much it may hold, such as 8GiB")  # fmt: skip
    add("--adapter", action="append", default=[], metavar="NAME=FOLDER", help="a LoRA adapter that "
        "requests may ask for; may be given several times")  # fmt: skip
    add("--threads", type=_positive, help="threads of the model's computation")
    add("--deterministic", action="store_true", help="a reply does not depend on what runs beside")
    add("--pooling", choices=("auto", LAST_TOKEN, MEAN), default=defaults.pooling,
        help="what embeddings are made of; auto: the folder's, else the last token")  # fmt: skip
    add("--check", action="store_true", help="check the engine's invariants after every step")
    add("--token-file", type=Path, help="tokens, one a line (else $SGC_TOKEN, one)")
    add("--tls-cert", type=Path, help="PEM certificate chain")
    add("--tls-key", type=Path, help="PEM private key")
    add("--metrics", default=defaults.metrics, help="Prometheus metrics: [host:]port, or off")
    add("--http", default=defaults.http, help="OpenAI's and SGLang's HTTP: [host:]port, or off")
    add("--drain-seconds", dest="drain_s", type=_seconds, default=defaults.drain_s,
        help="how long requests that are under way may go on after SIGTERM")  # fmt: skip
    add("--max-request-seconds", dest="max_request_s", type=_seconds_above_0,
        help="how long one request may take, its wait included")  # fmt: skip
    add("--log-format", choices=FORMATS, default=PLAIN, help="json: one object a line")
    add("--access-log", action=argparse.BooleanOptionalAction, help="a line for each request")
    add("--log-prompts", action="store_true", help="prompts in the access log")
    add("--otlp", help="where spans are sent: http://HOST:PORT, or env")
    add("--tool-format", choices=TOOL_FORMAT_NAMES, default=defaults.tool_format,
        help="how the model writes tool calls; auto: as its chat template does")  # fmt: skip
    add("--reasoning-format", choices=REASONING_NAMES, default=defaults.reasoning_format,
        help="the tag around the model's reasoning; off: none is split off")  # fmt: skip
    add(
        "--exit-with-parent",
        action="store_true",
        help="stop when stdin ends; remove the socket's folder",
    )
    values = vars(parser.parse_args(argv))
    for name in ("token_file", "tls_cert", "tls_key"):
        values[name] = None if values[name] is None else str(values[name])
    values["adapter"] = tuple(values["adapter"])
    return ServerConfig(**values)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1, not {text!r}")
    return int(text)


def _size(text: str) -> int:
    try:
        return size_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 86400, not {text!r}")
    return seconds


def _seconds_above_0(text: str) -> float:
    seconds = _seconds(text)
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"must be above 0, not {text!r}")
    return seconds


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.05 <= share <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0.05 to 1, not {text!r}")
    return share


if __name__ == "__main__":
    sys.exit(main())
