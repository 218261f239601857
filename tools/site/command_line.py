"""The page of the command line, made from the commands themselves: what `--help` prints."""

from __future__ import annotations

from collections.abc import Iterator

import click

WIDTH = 88
SHOWS_ALL = "sgc.help_all"  # as sgc.cli.help has it


def reference() -> str:
    """A heading for each command, and what `--help-all` says of it."""
    from sgc.cli.main import cli

    return "\n".join(_command(cli, None, "sgc", 2))


def _command(
    command: click.Command, parent: click.Context | None, name: str, level: int
) -> Iterator[str]:
    settings = {"terminal_width": WIDTH, "max_content_width": WIDTH}
    context = command.context_class(command, parent=parent, info_name=name, **settings)
    context.meta[SHOWS_ALL] = True
    said = click.unstyle(command.get_help(context))
    yield f"{'#' * level} {context.command_path}\n\n```text\n{said}\n```\n"
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            if below is not None and not below.hidden:
                yield from _command(below, context, each, level + (parent is not None))
