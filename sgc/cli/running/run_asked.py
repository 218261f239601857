"""What `sgc run` is asked, and which of its options exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sgc.cli.running.batching import check_batching
from sgc.cli.running.job_options import JobAsked
from sgc.cli.running.keep import KeepAsked
from sgc.cli.running.logs import LogAsked
from sgc.cli.settings.asking import Asked
from sgc.errors import UsageError
from sgc.runs.endpoints import SCHEMES
from sgc.runtime.executor.backends.providers.wire.addresses import SCHEMES as PROVIDER_SCHEMES
from sgc.runtime.telemetry.otlp import check_otlp

# Options are written as their parameters are named, but for these.
_WRITTEN = {"json_args": "args", "single_args": "arg", "as_json": "json", "trace_file": "trace"}
# The first one that is given is named in the error.
_OF_ONE_RUN = "json_args single_args as_json stream trace_file"
_OF_ONE_PROGRAM = (
    "json_args single_args as_json stream seed temperature max_tokens heal ordered_joins "
    "early_tools interpret full_graph trace_file tools log resume rows cache_dir record replay "
    "weights kv adapter otlp"
)


@dataclass(frozen=True, slots=True)
class RunAsked:
    """What the options say. as_sglang: the program is a script for SGLang, and script_args are its
    arguments."""

    who: Asked
    logs: LogAsked
    keep: KeepAsked
    job: JobAsked
    program: str
    source: str | None
    json_args: str | None
    single_args: tuple[str, ...]
    tools: tuple[str, ...]
    level: int
    interpret: bool
    full_graph: bool
    no_check: bool
    as_sglang: bool
    script_args: tuple[str, ...]
    weights: str | None
    kv: str | None
    adapter: str | None
    max_cost: float | None
    prices: Path | None
    rpm: float | None
    tpm: float | None
    max_concurrency: int | None
    request_timeout: float | None
    seed: int | None
    temperature: float | None
    max_tokens: int | None
    heal: bool
    ordered_joins: bool
    early_tools: bool
    as_json: bool
    stream: bool
    trace_file: Path | None
    quiet: bool
    otlp: str | None

    @staticmethod
    def taken(options: dict[str, Any]) -> RunAsked:
        """Takes the command's options. Raises UsageError if an engine and a model are named."""
        parts: dict[str, Any] = {"who": Asked(options.pop("engine"), options.pop("model"))}
        for name, kind in (("logs", LogAsked), ("keep", KeepAsked), ("job", JobAsked)):
            parts[name] = kind(**{row.name: options.pop(row.name) for row in fields(kind)})
        return RunAsked(**parts, **options)

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that are given, as `connect` takes them."""
        # With --rows, --max-concurrency limits rows on any engine; without, requests to a provider.
        of_provider = self.job.rows is None or (self.who.engine or "").startswith(PROVIDER_SCHEMES)
        given = {"max_cost": self.max_cost, "prices": self.prices, "rpm": self.rpm, "tpm": self.tpm,
                 "max_concurrency": self.max_concurrency if of_provider else None,
                 "request_timeout_s": self.request_timeout}  # fmt: skip
        return {name: value for name, value in given.items() if value is not None}

    @property
    def adapter_parts(self) -> tuple[str, str]:
        """The name and the folder of --adapter; "" for one that is not given."""
        name, _, folder = (self.adapter or "").partition("=")
        return name, folder

    def check(self) -> None:
        """Raises UsageError for the first option that does not fit the others."""
        engine, job = self.who.engine, self.job
        if engine is not None:
            folder = {"--adapter NAME=FOLDER": self.adapter_parts[1] or None}
            why = "is for an engine to start, and --engine names one that runs"
            _refuse({**self._named("weights kv"), **folder}, why)
        _check_limits(engine, self.limits)
        if job.rows is None:
            _refuse(job.given, "is for many rows: --rows FILE")
        else:
            _refuse(self._named(_OF_ONE_RUN), "is for one run, and --rows FILE has many")
        if job.batch or job.cancel_batches:
            check_batching(job, engine, self.logs.path, self._named("rpm tpm"))
        self.keep.check(self._named("engine model resume"))
        if self.otlp is not None:
            check_otlp(self.otlp)
        if self.as_sglang:
            why = "is for one program, and --as-sglang runs a whole script"
            _refuse(self._named(_OF_ONE_PROGRAM), why)
        elif self.script_args:
            unexpected = f"unexpected argument {self.script_args[0]!r}"
            raise UsageError(unexpected, hint="use --arg NAME=VALUE")

    def _named(self, names: str) -> dict[str, Any]:
        """The values of options, by how they are written."""
        parts = (self, self.who, self.logs, self.keep, self.job)
        values = {row.name: getattr(part, row.name) for part in parts for row in fields(part)}
        written = {name: _WRITTEN.get(name, name).replace("_", "-") for name in names.split()}
        return {"--" + written[name]: values[name] for name in written}


def _refuse(options: Mapping[str, Any], why: str) -> None:
    """Raises UsageError for the first option that is given."""
    # By identity: a seed or temperature of 0 counts as given.
    absent = (None, False, ())
    given = [name for name, value in options.items() if not any(value is x for x in absent)]
    if given:
        raise UsageError(f"{given[0]} {why}")


def _check_limits(engine: str | None, limits: Mapping[str, Any]) -> None:
    """Raises UsageError for limits that the engine does not keep."""
    is_kept = (engine or "").startswith(PROVIDER_SCHEMES)
    if (engine or "").startswith(SCHEMES):
        is_kept = not limits.keys() - {"request_timeout_s"}
    if limits and not is_kept:
        option = next(iter(limits)).removesuffix("_s").replace("_", "-")
        raise UsageError(
            f"--{option} is for model providers", hint="--engine openai:MODEL or anthropic:MODEL"
        )
