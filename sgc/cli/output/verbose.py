"""What `-v` tells, on stderr: what is read, which engine is asked, how long each part took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import click

from sgc.cli.output.colours import faint, warning

_KEY = "sgc.verbose"


def be_verbose(ctx: click.Context) -> None:
    ctx.find_root().meta[_KEY] = True


def is_verbose() -> bool:
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.find_root().meta.get(_KEY))


def tell(line: str) -> None:
    """Prints a line with -v."""
    if is_verbose():
        click.echo(faint(f"sgc: {line}"), err=True)


def warn(line: str) -> None:
    click.echo(f"sgc: {warning('warning:')} {line}", err=True)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """With -v, tells how long a part took, unless it failed."""
    start_s = perf_counter()
    yield
    tell(f"{what}: {perf_counter() - start_s:.2f} s")
