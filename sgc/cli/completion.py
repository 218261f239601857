"""Completion in shells: what is offered for programs and engines. click writes the scripts."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

_SCHEMES = ("openai:", "anthropic:", "grpc://", "unix:", "sglang+http://")


def program_files(_: click.Context, __: click.Parameter, given: str) -> list[CompletionItem]:
    """The shell's own completion of files."""
    return [CompletionItem(given, type="file")]


def engines(_: click.Context, __: click.Parameter, given: str) -> list[CompletionItem]:
    return [CompletionItem(each) for each in _SCHEMES if each.startswith(given)]
