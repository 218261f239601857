"""The server's options, and the checks made of them before anything is started.

It imports no gRPC, asyncio or tokenizers, because the step process starts only after these checks
(`serve.py`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from sgc.errors import UsageError
from sgc.runtime.engine.disk.folder import own_folder
from sgc.runtime.engine.logs.log import PLAIN
from sgc.runtime.engine.model.models import ModelSource, resolve
from sgc.runtime.engine.model.pooling_files import pooling_of
from sgc.runtime.engine.names import AUTO, Pooling, ServedAdapter, StepOptions
from sgc.runtime.engine.server.listen import (
    Address,
    Security,
    check_exposure,
    check_free,
    parse_address,
    read_security,
)
from sgc.runtime.engine.text.json_files import configured_eos_ids
from sgc.runtime.telemetry.otlp import check_otlp

FOR_HTTP = {"aiohttp": "aiohttp"}
FOR_METRICS = {**FOR_HTTP, "prometheus-client": "prometheus_client"}
MAX_OPTIONS = {
    "pool_tokens": 100_000_000,
    "max_context": 1_000_000_000,
    "chunk_tokens": 1_000_000,
    "max_running": 100_000,
    "max_waiting": 1_000_000,
    "threads": 1024,
    "tensor_parallel": 64,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig(StepOptions):
    """The server's options. metrics, http: `[host:]port` or "off". pooling: as for `pooling_of`.
    tool_format, reasoning_format: how the model writes calls and marks reasoning; "auto" is as its
    chat template says. served_model_name: what clients call the model; None is its own name.
    drain_s: how long running requests may go on after SIGTERM. max_request_s: how long one request
    may take, its wait included; None is without a limit. tells: whether the server is a command,
    which logs at the start what it serves. access_log: whether to log a line for each request;
    None: only if lines are JSON. otlp: where spans are sent; None: nowhere."""

    model: str | None = None
    listen: str = "127.0.0.1:30100"
    token_file: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    served_model_name: str | None = None
    metrics: str = "off"
    http: str = "off"
    pooling: str = "auto"
    tool_format: str = AUTO
    reasoning_format: str = AUTO
    exit_with_parent: bool = False
    drain_s: float = 0.0
    max_request_s: float | None = None
    log_format: str = PLAIN
    access_log: bool | None = None
    log_prompts: bool = False
    otlp: str | None = None
    tells: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """Checked options. scraped, http: where metrics and HTTP are served; None for nowhere.
    adapters: in the order of their options."""

    config: ServerConfig
    address: Address
    security: Security
    scraped: Address | None
    http: Address | None
    source: ModelSource
    pooling: Pooling
    adapters: tuple[ServedAdapter, ...] = ()


def check(config: ServerConfig) -> Checked:
    """Checks the options before anything is started; raises `SgcError`."""
    check_ranges(config)
    check_name(config.served_model_name)
    config = _with_log(config)
    if config.otlp is not None:
        check_otlp(config.otlp)
    address = parse_address(config.listen)
    security = read_security(config.token_file, config.tls_cert, config.tls_key)
    check_exposure(address, security)
    check_free(address)
    scraped = http_address("--metrics", config.metrics, security, FOR_METRICS)
    http = http_address("--http", config.http, security, FOR_HTTP)
    source = resolve(config.model)
    if source.is_fake and "int8" in (config.weights, config.kv):
        raise UsageError(
            "--weights int8 and --kv int8 are for real models: the fake one has neither weights "
            "nor K and V",
            hint="leave them out",
        )
    _check_kv_dir(config)
    pooling = pooling_of(source.folder, config.pooling)
    adapters = _checked_adapters(config, source)
    return Checked(config, address, security, scraped, http, source, pooling, adapters)


def _checked_adapters(config: ServerConfig, source: ModelSource) -> tuple[ServedAdapter, ...]:
    if not config.adapter:
        return ()
    from sgc.runtime.engine.model.adapters.files import (
        check_vocabulary,
        parse_adapters,
        read_adapter,
    )

    given = parse_adapters(config.adapter)
    if source.folder is None:
        raise UsageError("--adapter is for real models: the fake one has no weights")
    if config.tensor_parallel > 1:
        raise UsageError(
            "--adapter is for a model that one process computes, not for --tensor-parallel",
            hint="leave one of them out",
        )
    if any(name == source.name for name, _ in given):
        raise UsageError(
            f"--adapter names an adapter {source.name!r}, which is the model's own name",
            hint="give the adapter another name",
        )
    found = [read_adapter(name, folder) for name, folder in given]
    for each in found:
        check_vocabulary(each, source.tokenizer_folder)
    return tuple(ServedAdapter(each.name, each.digest, each.rank) for each in found)


def _with_log(config: ServerConfig) -> ServerConfig:
    access_log = config.access_log
    if access_log is None:
        access_log = config.log_format != PLAIN
    if config.log_prompts and not access_log:
        raise UsageError("--log-prompts writes to the access log", hint="add --access-log")
    return replace(config, access_log=access_log)


def _check_kv_dir(config: ServerConfig) -> None:
    if config.kv_dir is None:
        return
    if config.tensor_parallel > 1:
        raise UsageError(
            "--kv-dir keeps K and V of a CPU engine, not those of --tensor-parallel",
            hint="leave one of them out",
        )
    own_folder(Path(config.kv_dir))


def check_name(name: str | None) -> None:
    """Raises `UsageError` for a name that no client could send."""
    if name is not None and not (name.isprintable() and 0 < len(name.strip()) == len(name) <= 200):
        raise UsageError(
            f"--served-model-name: expected 1 to 200 printable characters, found {name[:80]!r}"
        )


def check_ranges(config: ServerConfig) -> None:
    """Raises `UsageError` for a number that no machine can serve."""
    for name, most in MAX_OPTIONS.items():
        value = getattr(config, name)
        if value is not None and not 1 <= value <= most:
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} must be from 1 to {most}, not {value}")


def worker_config(config: ServerConfig, source: ModelSource) -> dict[str, Any]:
    """The step process's options. Each request brings its own end tokens."""
    told = {field.name: getattr(config, field.name) for field in fields(StepOptions)}
    return told | {
        "model_folder": None if source.folder is None else str(source.folder),
        "fake": source.is_fake,
        "tokenizer_folder": str(source.tokenizer_folder),
        "eos_ids": configured_eos_ids(source.tokenizer_folder),
    }


def http_address(
    option: str, text: str, security: Security, packages: Mapping[str, str]
) -> Address | None:
    """The address of `[host:]port`, by default on loopback; None for "off". packages: the packages
    that serving needs, with their modules."""
    if text == "off":
        return None
    for name, module in packages.items():
        if importlib.util.find_spec(module) is None:
            raise UsageError(
                f"{option} needs a package that is not installed: {name}",
                hint="pip install 'sgc[engine]'",
            )
    address = parse_address(f"127.0.0.1:{text}" if text.isdigit() else text)
    if address.path is not None:
        raise UsageError(f"{option}: expected [host:]port or off")
    check_exposure(address, security)
    check_free(address)
    return address
