"""Runs an engine: `python -m sgc.runtime.engine.serve --model M --listen ADDRESS`.

Finds what is wrong with the command, starts the step process, and leaves the rest to
`serving.py`. Everything waits for the step process, so nothing is imported before it starts
that can be imported while it loads: no gRPC, no asyncio, no tokenizers. An error is one
message; with SGC_DEBUG set, a traceback too. Also called by the command line (`run_server`)
and, as a child process, by `launch.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgc.errors import SgcError, UsageError
from sgc.runtime.engine.model.json_files import configured_eos_ids
from sgc.runtime.engine.model.models import ModelSource, resolve
from sgc.runtime.engine.names import (
    CACHES,
    DEFAULT_CACHE,
    DEFAULT_POLICY,
    DTYPES,
    POLICIES,
)
from sgc.runtime.engine.server.listen import (
    Address,
    Security,
    check_exposure,
    check_free,
    parse_address,
    read_security,
)
from sgc.runtime.engine.worker import process as worker_process

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
    """How to serve; None: decided by the model or the machine. metrics, http: `[host:]port`, or
    off."""

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
    http: str = "off"
    exit_with_parent: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """A command in which nothing is wrong. scraped, http: where metrics and HTTP are served, None
    if nowhere."""

    config: ServerConfig
    address: Address
    security: Security
    scraped: Any
    http: Address | None
    source: ModelSource


def run_server(config: ServerConfig) -> int:
    """Serves until a signal; the exit status. Errors are printed, not raised."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its log lines repeat our errors
    try:
        checked = check(config)
        worker = worker_process.spawn(worker_config(config, checked.source))
        return _serve(checked, worker)
    except SgcError as error:
        if os.environ.get("SGC_DEBUG"):
            import traceback

            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    finally:
        if config.exit_with_parent:
            _remove_folder(config.listen)


def _serve(checked: Checked, worker: worker_process.WorkerProcess) -> int:
    try:
        import asyncio

        from sgc.runtime.engine.serving import serve
    except BaseException:
        worker.abandon()
        raise
    return asyncio.run(serve(checked, worker))


def check(config: ServerConfig) -> Checked:
    """Raises `SgcError` for what is wrong with a command, before anything is started."""
    check_ranges(config)
    address = parse_address(config.listen)
    security = read_security(config.token_file, config.tls_cert, config.tls_key)
    check_exposure(address, security)
    check_free(address)
    scraped = _metrics_address(config, security)
    http = _http_address(config, security)
    return Checked(config, address, security, scraped, http, resolve(config.model))


def check_ranges(config: ServerConfig) -> None:
    """Raises `UsageError` for a number that no machine can serve."""
    for name, most in MOST.items():
        value = getattr(config, name)
        if value is not None and not 1 <= value <= most:
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} must be from 1 to {most}, not {value}")


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


def _metrics_address(config: ServerConfig, security: Any) -> Any:
    """Where the metrics are served; None if nowhere."""
    if config.metrics == "off":
        return None
    if importlib.util.find_spec("prometheus_client") is None:
        raise UsageError(
            "--metrics needs a package that is not installed: prometheus-client",
            hint="pip install 'sgc[engine]'",
        )
    from sgc.runtime.engine.metrics.http import metrics_address

    return metrics_address(config.metrics, security)


def _http_address(config: ServerConfig, security: Security) -> Address | None:
    """Where OpenAI's and SGLang's HTTP is served (`http/`); None if nowhere."""
    if config.http == "off":
        return None
    if importlib.util.find_spec("aiohttp") is None:
        raise UsageError(
            "--http needs a package that is not installed: aiohttp",
            hint="pip install 'sgc[engine]'",
        )
    address = parse_address(f"127.0.0.1:{config.http}" if config.http.isdigit() else config.http)
    if address.path is not None:
        raise UsageError("--http: expected [host:]port or off")
    check_exposure(address, security)
    check_free(address)
    return address


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
    add("--token-file", type=Path, help="tokens, one a line (else $SGC_TOKEN, one)")
    add("--tls-cert", type=Path, help="PEM certificate chain")
    add("--tls-key", type=Path, help="PEM private key")
    add("--metrics", default=defaults.metrics, help="Prometheus metrics: [host:]port, or off")
    add("--http", default=defaults.http, help="OpenAI's and SGLang's HTTP: [host:]port, or off")
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
