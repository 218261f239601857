"""`sgc view`: writes a page on programs, runs and jobs."""

from __future__ import annotations

import json
import os
import webbrowser
from pathlib import Path

import click

from sgc.cli.output.results import check_writable
from sgc.cli.programs.loading import NOTHING, Given, load_source
from sgc.cli.programs.source import is_source, load_function
from sgc.errors import UsageError
from sgc.programs.program import Program
from sgc.runtime.executor.log.run_log import RunLog
from sgc.viewer.page import GENERATOR
from sgc.viewer.view import PageMaker, is_log


def view(
    things: tuple[str, ...],
    output: Path | None,
    level: int,
    json_args: str | None,
    single_args: tuple[str, ...],
    opens: bool,
) -> None:
    """Writes the page, and prints where."""
    target = output or Path(f"{Path(things[0].partition('.py:')[0]).stem}.html")
    _check_target(target, output)
    made = PageMaker()
    given = Given.read(json_args, single_args, None) if json_args or single_args else None
    for thing in things:
        if is_source(thing):
            _add_source(made, thing, level, given or _given_in_logs(things))
        else:
            made.add_path(Path(thing))
    path = made.view().save(target)
    click.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB, opens in any browser")
    if opens and not webbrowser.open(path.resolve().as_uri()):
        click.echo(f"sgc: no browser was found; open {path.resolve().as_uri()}", err=True)


def _check_target(target: Path, output: Path | None) -> None:
    """Raises UsageError for a file that cannot be written, or that is no page of `sgc view`."""
    if target.exists() and not (target.is_file() or target.is_dir()):  # opening it may wait
        raise UsageError(f"-o {target}: expected the name of a file")
    try:
        with target.open("rb") as file:
            is_page = GENERATOR.encode() in file.read(4096)
    except FileNotFoundError:
        is_page = True
    except OSError as error:
        raise UsageError(f"-o {target}: {error.strerror}") from error
    if not is_page:
        told = "name another file with -o" if output is None else "remove it first"
        raise UsageError(f"{target} is there, and is no page of sgc view", hint=told)
    if target.exists():
        check_writable(target, "-o")
    elif not target.absolute().parent.is_dir():
        raise UsageError(f"-o {target}: there is no folder {target.parent}")
    elif not os.access(target.absolute().parent, os.W_OK | os.X_OK):
        raise UsageError(f"-o {target}: nothing can be written in the folder {target.parent}")


def _add_source(made: PageMaker, thing: str, level: int, given: Given) -> None:
    """Adds a function, compiled at -O0, and what the passes make of it."""
    function = load_function(thing)
    loaded = load_source(function, given, 0, check=False)
    assert isinstance(loaded.program, Program)
    made.add_optimized(loaded.program.graph, level, function)


def _given_in_logs(things: tuple[str, ...]) -> Given:
    """The arguments of a log's first row, which may be all that tells the parameters' types."""
    for thing in things:
        if not is_source(thing) and is_log(Path(thing)):
            with RunLog.read(thing) as log:
                arguments = log.arguments(next(iter(log.rows()), "")) or {}
            return Given.read(json.dumps(arguments), (), None)
    return NOTHING
