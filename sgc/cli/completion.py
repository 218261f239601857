"""Completion in shells: the scripts, which click writes, and the values offered for an argument."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from sgc.errors import UsageError

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_SGC_COMPLETE"  # set by the script when it asks for completions
_RC = {
    "bash": ("~/.bashrc", 'eval "$(sgc completion bash)"'),
    "zsh": ("~/.zshrc", 'eval "$(sgc completion zsh)"'),
    "fish": ("~/.config/fish/completions/sgc.fish", "sgc completion fish | source"),
}


def program_files(_: click.Context, __: click.Parameter, given: str) -> list[CompletionItem]:
    """The shell's own completion of files."""
    return [CompletionItem(given, type="file")]


def engines(_: click.Context, __: click.Parameter, given: str) -> list[CompletionItem]:
    from sgc.runtime.executor.backends.providers.wire.addresses import VENDORS

    schemes = (*VENDORS, "grpc://", "unix:", "sglang+http://")
    return [CompletionItem(each) for each in schemes if each.startswith(given)]


def script(shell: str | None, command: click.Command) -> str:
    """The script for a shell, or for the user's, with the line that loads it as a comment."""
    name = shell or Path(os.environ.get("SHELL", "")).name
    found = get_completion_class(name) if name in SHELLS else None
    if found is None:
        raise UsageError(
            f"SHELL is {name or 'not set'}: name one of {', '.join(SHELLS)}",
            hint="sgc completion bash",
        )
    path, line = _RC[name]
    return f"# In {path}:  {line}\n{found(command, {}, 'sgc', VARIABLE).source()}"


def answer(command: click.Command) -> NoReturn:
    """Answers a shell that asks what may come next."""
    raise SystemExit(shell_complete(command, {}, "sgc", VARIABLE, os.environ[VARIABLE]))
