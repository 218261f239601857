"""The options that every command has, before or after the command's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from sgc.cli.help import option
from sgc.cli.output.verbose import be_verbose

F = TypeVar("F", bound=Callable[..., Any])
DEBUG = "sgc.debug"


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.find_root().meta[DEBUG] = True


def _remember_verbose(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        be_verbose(ctx)


_OPTIONS = (
    option("-v", "--verbose", is_flag=True, expose_value=False, is_eager=True,
           callback=_remember_verbose, help="Say what is read and asked, and the time. On "
           "stderr."),
    option("--debug", is_flag=True, expose_value=False, is_eager=True, callback=_remember_debug,
           help="Show the Python traceback of an error."),
)  # fmt: skip


def common_options(command: F) -> F:
    for each in reversed(_OPTIONS):
        command = each(command)
    return command
