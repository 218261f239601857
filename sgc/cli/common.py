"""The options that every command has, before or after the command's name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from sgc.cli.help import option
from sgc.cli.output.verbose import be_verbose, tell
from sgc.cli.settings.defaults import CONFIG, NO_CONFIG
from sgc.cli.settings.env_file import take_env_file

F = TypeVar("F", bound=Callable[..., Any])
DEBUG = "sgc.debug"


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.find_root().meta[DEBUG] = True


def _remember_verbose(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        be_verbose(ctx)


def _take_env_files(ctx: click.Context, _: click.Parameter, paths: tuple[Path, ...]) -> None:
    for path in () if ctx.resilient_parsing else paths:
        found = take_env_file(path)
        tell(f"{path} sets {', '.join(found.taken) or 'nothing'}")
        if found.kept:
            tell(f"{path} does not set {', '.join(found.kept)}: the environment has them")
        for name in found.addresses:
            host = urlsplit(os.environ[name]).hostname
            click.echo(f"sgc: note: {path} sets {name}: keys go to {host}", err=True)


def _remember_config(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is not None:
        ctx.meta[CONFIG] = path


def _remember_no_config(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[NO_CONFIG] = True


_OPTIONS = (
    option("-v", "--verbose", is_flag=True, expose_value=False, is_eager=True,
           callback=_remember_verbose, help="Tell which files are read, which engine is asked, and "
           "times. On stderr."),
    option("--env-file", type=click.Path(path_type=Path), multiple=True, metavar="FILE",
           expose_value=False, is_eager=True, callback=_take_env_files, help="Variables of a file, "
           "such as keys. NAME=VALUE a line, as in a .env, for what the environment lacks. None is "
           "read unless it is named. Repeatable."),
    option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path),
           metavar="FILE", expose_value=False, is_eager=True, callback=_remember_config,
           help="Defaults of options, in place of those of sgc.toml or [tool.sgc] of "
           "pyproject.toml in this folder or one above."),
    option("--no-config", is_flag=True, expose_value=False, is_eager=True,
           callback=_remember_no_config, help="Read no such file."),
    option("--debug", is_flag=True, expose_value=False, is_eager=True, callback=_remember_debug,
           help="Show the Python traceback of an error."),
)  # fmt: skip


def common_options(command: F) -> F:
    for each in reversed(_OPTIONS):
        command = each(command)
    return command
