"""Runs an engine: `python -m sgc.runtime.engine.serve --model M --listen ADDRESS`.

Starts the step process, loads the tokenizer while the model loads, listens, and stops both on
a signal. What is wrong with the command is found before the step process starts, and clients
can connect only once the model is loaded. An error is one message; with SGC_DEBUG set, a
traceback too. Imports no torch. Also called by the command line (`run_server`) and, as a child
process, by `launch.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import os
import signal
import ssl
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sgc.errors import SgcError, UsageError
from sgc.runtime.engine import garbage
from sgc.runtime.engine.models import ModelSource, resolve
from sgc.runtime.engine.names import (
    CACHES,
    DEFAULT_CACHE,
    DEFAULT_POLICY,
    DTYPES,
    POLICIES,
)
from sgc.runtime.engine.template_child import start_probe
from sgc.runtime.engine.tokenizer import Tokenizer, load_tokenizer
from sgc.runtime.engine.tokenizer_files import configured_eos_ids
from sgc.runtime.engine.worker_link import WorkerDied, WorkerLink

T = TypeVar("T")
N_TOKENIZER_THREADS = 2
MOST = {
    "pool_tokens": 100_000_000,
    "max_context": 1_000_000_000,
    "chunk_tokens": 1_000_000,
    "max_running": 100_000,
    "max_waiting": 1_000_000,
    "threads": 1024,
}


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How to serve; None: decided by the model or the machine. metrics: `[host:]port`, or off."""

    model: str | None = None
    listen: str = "127.0.0.1:30100"
    pool_tokens: int | None = None
    max_context: int | None = None
    chunk_tokens: int = 512
    max_running: int = 256
    max_waiting: int = 8192
    policy: str = DEFAULT_POLICY
    cache: str = DEFAULT_CACHE
    shares_in_batch: bool = True
    jumps: bool = True
    dtype: str = "auto"
    threads: int | None = None
    check: bool = False
    token_file: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    metrics: str = "off"
    exit_with_parent: bool = False


def run_server(config: ServerConfig) -> int:
    """Serves until a signal; the exit status. Errors are printed, not raised."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its log lines repeat our errors
    try:
        return asyncio.run(_serve(config))
    except SgcError as error:
        if os.environ.get("SGC_DEBUG"):
            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    finally:
        if config.exit_with_parent:
            _remove_folder(config.listen)


async def _serve(config: ServerConfig) -> int:
    from sgc.runtime.engine.listen import (
        bind,
        check_exposure,
        check_free,
        parse_address,
        read_security,
    )

    check_ranges(config)
    address = parse_address(config.listen)
    security = read_security(config.token_file, config.tls_cert, config.tls_key)
    check_exposure(address, security)
    check_free(address)
    scraped = _metrics_address(config, security)
    source = resolve(config.model)
    link = WorkerLink(worker_config(config, source))
    stop = _stop_event(config.exit_with_parent)
    link.spawn()
    target, probe = "", None
    try:
        probe = start_probe(source.tokenizer_folder)
        tokenizer = load_tokenizer(source.tokenizer_folder)
        from sgc.runtime.engine.server import EngineServer
        from sgc.runtime.engine.template import PLAIN

        probing = _value(PLAIN) if probe is None else asyncio.to_thread(probe.result)
        chat = await _first(probing, stop.wait())
        ready = chat and await _first(link.connect(), stop.wait())
        if ready is None:
            return 0
        _warn(chat, tokenizer, ready.vocab_size)
        facts, shared = _assemble(source, ready, chat, tokenizer, link)
        server = EngineServer(security)
        target = bind(server.grpc, address, security)
        await server.start(facts, shared)
        with _metrics(config, scraped, security, facts, shared) as url:
            garbage.collect_seldom()
            if url:
                print(f"metrics on {url}", file=sys.stderr)
            print(f"listening on {target}", file=sys.stderr, flush=True)
            death = await _first(link.wait_dead(), stop.wait())
        await server.stop(death or "the engine is stopping")
        if death is None:
            return 0
        raise SgcError(death)
    except WorkerDied as error:
        raise SgcError(f"the model cannot be loaded: {error}") from error
    finally:
        if probe is not None:
            probe.close()
        await link.close()
        if target and address.path is not None:
            address.path.unlink(missing_ok=True)


def check_ranges(config: ServerConfig) -> None:
    """Raises `UsageError` for a number that no machine can serve."""
    for name, most in MOST.items():
        value = getattr(config, name)
        if value is not None and not 1 <= value <= most:
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} must be from 1 to {most}, not {value}")


def _warn(chat: Any, tokenizer: Tokenizer, vocab_size: int) -> None:
    unknown = [str(i) for i in tokenizer.eos_ids if i >= vocab_size]
    notes = list(chat.notes)
    if unknown:
        notes.append(
            f"end-of-sequence ids {', '.join(unknown)} are not in the vocabulary of {vocab_size} "
            "and are ignored"
        )
    for note in notes:
        print(f"warning: {note}", file=sys.stderr)


async def _value(value: T) -> T:
    return value


def _remove_folder(listen: str) -> None:
    """The parent made it for this socket, and may not be there any more to remove it."""
    if listen.startswith("unix:"):
        with contextlib.suppress(OSError):
            Path(listen.removeprefix("unix:")).parent.rmdir()  # if it is empty


def worker_config(config: ServerConfig, source: ModelSource) -> dict[str, Any]:
    """What the step process is told; every request brings its own end tokens."""
    return {
        "model_folder": None if source.folder is None else str(source.folder),
        "fake": source.is_fake,
        "tokenizer_folder": str(source.tokenizer_folder),
        "pool_tokens": config.pool_tokens,
        "max_context": config.max_context,
        "chunk_tokens": config.chunk_tokens,
        "max_running": config.max_running,
        "max_waiting": config.max_waiting,
        "policy": config.policy,
        "cache": config.cache,
        "shares_in_batch": config.shares_in_batch,
        "jumps": config.jumps,
        "dtype": config.dtype,
        "check": config.check,
        "threads": config.threads,
        "eos_ids": configured_eos_ids(source.tokenizer_folder),
    }


def _assemble(
    source: ModelSource, ready: Any, chat: Any, tokenizer: Tokenizer, link: WorkerLink
) -> tuple[Any, Any]:
    from sgc.runtime.engine.bounds import ServerLimits
    from sgc.runtime.engine.server import EngineFacts
    from sgc.runtime.engine.session import Shared

    limits = ServerLimits(ready.max_context, ready.pool_tokens, ready.vocab_size)
    threads = ThreadPoolExecutor(N_TOKENIZER_THREADS, "tokenize")
    facts = EngineFacts(source.name, ready, chat, tokenizer, limits)
    return facts, Shared(tokenizer, link, limits, threads)


def _metrics_address(config: ServerConfig, security: Any) -> Any:
    """Where the metrics are served; None if nowhere."""
    if config.metrics == "off":
        return None
    if importlib.util.find_spec("prometheus_client") is None:
        raise UsageError(
            "--metrics needs a package that is not installed: prometheus-client",
            hint="pip install 'sgc[engine]'",
        )
    from sgc.runtime.engine.metrics_http import metrics_address

    return metrics_address(config.metrics, security)


@contextlib.contextmanager
def _metrics(
    config: ServerConfig, address: Any, security: Any, facts: Any, shared: Any
) -> Iterator[str]:
    """Serves the metrics meanwhile; gives their URL, or "" where they are off."""
    if address is None:
        yield ""
        return
    from sgc.runtime.engine.metrics_http import serving_metrics
    from sgc.runtime.engine.server import info_of

    tls = None
    if config.tls_cert and config.tls_key:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(config.tls_cert, config.tls_key)
    with serving_metrics(address, security, tls, shared.stats, info_of(facts), shared.tally) as url:
        yield url


async def _first(wanted: Any, stop: Any) -> Any:
    """The result of `wanted`, or None if `stop` comes first."""
    tasks = [asyncio.ensure_future(wanted), asyncio.ensure_future(stop)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].result() if tasks[0].done() else None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _stop_event(exit_with_parent: bool) -> asyncio.Event:
    """Set by SIGTERM or SIGINT, and if asked by the end of stdin."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if exit_with_parent:
        loop.add_reader(0, _at_end_of_input(loop, stop))
    return stop


def _at_end_of_input(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> Callable[[], None]:
    def on_readable() -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(0, 4096)
        if not data:
            loop.remove_reader(0)
            stop.set()

    return on_readable


def main(argv: Sequence[str] | None = None) -> int:
    return run_server(parse_arguments(argv))


def parse_arguments(argv: Sequence[str] | None = None) -> ServerConfig:
    parser = argparse.ArgumentParser(prog="sgc serve", description="Serve a model over gRPC.")
    add, defaults = parser.add_argument, ServerConfig()
    add("--model", help='a model folder, a hub id, "default" or "fake"')
    add("--listen", default=defaults.listen, help="host:port (port 0: any) or unix:/path")
    add("--pool-tokens", type=_positive, help="token positions the KV pool holds")
    add("--max-context", type=_positive, help="longest prompt and generation, in tokens")
    add("--chunk-tokens", type=_positive, default=defaults.chunk_tokens)
    add("--max-running", type=_positive, default=defaults.max_running)
    add("--max-waiting", type=_positive, default=defaults.max_waiting)
    add("--policy", choices=POLICIES, default=defaults.policy)
    add("--cache", choices=CACHES, default=defaults.cache)
    add("--no-batch-sharing", dest="shares_in_batch", action="store_false")
    add("--no-jump-forward", dest="jumps", action="store_false")
    add("--dtype", choices=DTYPES, default="auto")
    add("--threads", type=_positive, help="threads of the model's computation")
    add("--check", action="store_true", help="check the engine's books after every step")
    add("--token-file", type=Path, help="clients must present this token (else $SGC_TOKEN)")
    add("--tls-cert", type=Path, help="PEM certificate chain")
    add("--tls-key", type=Path, help="PEM private key")
    add("--metrics", default=defaults.metrics, help="Prometheus metrics: [host:]port, or off")
    add(
        "--exit-with-parent",
        action="store_true",
        help="stop when stdin ends; remove the socket's folder",
    )
    values = vars(parser.parse_args(argv))
    for name in ("token_file", "tls_cert", "tls_key"):
        values[name] = None if values[name] is None else str(values[name])
    return ServerConfig(**values)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1, not {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
