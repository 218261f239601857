"""Which settings of a file a command takes: those that do not conflict with the command line."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from sgc.cli.output.verbose import tell
from sgc.cli.settings.config import PARAMETERS, TABLE, Config, find_config, read_config

CONFIG, NO_CONFIG = "sgc.config", "sgc.no_config"
_FOUND = "sgc.config.found"
_LIMITS = ("max_cost", "rpm", "tpm", "request_timeout")
CACHE_VARIABLE = "SGC_CACHE_DIR"


class ConfiguredContext(click.Context):
    """A context whose options have the defaults of `sgc.toml`, if its command is `configured`."""

    def lookup_default(self, name: str, call: bool = True) -> Any:
        if name in self.configured and not self.resilient_parsing:
            config = self.config()
            if config is not None and name in config.values:
                return config.values[name]
        return super().lookup_default(name, call)  # type: ignore[call-overload]

    @property
    def configured(self) -> Collection[str]:
        """The parameters of the command that a file may set."""
        found: Collection[str] = getattr(self.command, "configured", ())
        return found

    def config(self) -> Config | None:
        if not self.configured or self.meta.get(NO_CONFIG):
            return None
        if _FOUND not in self.meta:
            given: Path | None = self.meta.get(CONFIG)
            found = find_config(Path.cwd()) if given is None else read_config(given, TABLE)
            self.meta[_FOUND] = found
            if found is not None:
                tell(f"config: {found.path}")
        found = self.meta[_FOUND]
        assert found is None or isinstance(found, Config)
        return found


def settle(ctx: click.Context) -> None:
    """Drops a file's settings that conflict with given options; reports its engine."""
    config = ctx.config() if isinstance(ctx, ConfiguredContext) else None
    if config is None:
        return
    params = ctx.params
    from_file = {
        name
        for name in params.keys() & config.values.keys()
        if ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP
    }
    for name in from_file & _dropped(params, from_file):
        params[name] = None
        from_file.discard(name)
    if from_file:
        tell(f"config: {', '.join(f'{name}={params[name]}' for name in sorted(from_file))}")
    asks = ctx.command.name in ("run", "test")
    if asks and "engine" in from_file and not params.get("quiet"):
        click.echo(f"sgc: asks {params['engine']}, as {config.place('engine')} says", err=True)


def _dropped(params: Mapping[str, Any], from_file: set[str]) -> set[str]:
    """The settings that other options exclude."""
    from sgc.runtime.executor.backends.providers.wire.addresses import SCHEMES

    def is_given(name: str) -> bool:
        return name not in from_file and params.get(name) not in (None, False, ())

    dropped = set[str]()
    if is_given("replay"):
        dropped |= {"model", "engine", "cache_dir", *_LIMITS, "max_concurrency"}
    if is_given("engine"):
        dropped.add("model")
    if any(map(is_given, ("model", "weights", "kv", "adapter"))):
        dropped.add("engine")
    if is_given("no_cache") or os.environ.get(CACHE_VARIABLE):
        dropped.add("cache_dir")
    if is_given("as_sglang"):
        dropped |= PARAMETERS - {"model", "engine"}
    engine = None if "engine" in dropped else params.get("engine")
    if not str(engine or "").startswith(SCHEMES):
        dropped |= {*_LIMITS} if params.get("rows") is None else {"max_cost", "rpm", "tpm"}
        if params.get("rows") is None:
            dropped.add("max_concurrency")
    return dropped
