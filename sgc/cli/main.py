"""The group of commands; turns an error into one message and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

import click

from sgc.errors import SgcError, SgcWarning, UsageError

F = TypeVar("F", bound=Callable[..., Any])

EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130
EXIT_SOME_FAILED, EXIT_BUDGET = 100, 101  # of `sgc run --rows`


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    if value:
        ctx.find_root().meta["sgc.debug"] = True
    return value


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from sgc import __version__

        click.echo(f"sgc {__version__}")
        ctx.exit()


def debug_option(command: F) -> F:
    """`--debug`, before or after the command's name."""
    option = click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_remember_debug,
        help="Show the Python traceback of an error.",
    )
    return option(command)


class Commands(click.Group):
    """Commands by name, each given as `module:function` and imported when it is used."""

    def __init__(self, *args: Any, by_name: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._by_name = by_name

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._by_name:
            return None
        module, _, function = self._by_name[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), function)
        return command


_OF_PROGRAMS = (
    "compile", "dump", "estimate", "explain", "opt", "replay", "run", "stubs", "trace", "verify",
    "version",
)  # fmt: skip
_OF_ENGINES = ("doctor", "kv", "route", "serve", "top")


@click.group(
    cls=Commands,
    by_name={name: f"sgc.cli.commands:{name}_command" for name in _OF_PROGRAMS}
    | {name: f"sgc.cli.engine_commands:{name}_command" for name in _OF_ENGINES},
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@debug_option
def cli() -> None:
    """Compiles and runs language-model programs.

    \b
    sgc run examples/tip_suggestion.py --arg topic="staying healthy"
    sgc compile examples/tip_suggestion.py -o tip.sgir
    sgc run tip.sgir --args '{"topic": "staying healthy"}' --json
    """


def main(argv: list[str] | None = None) -> NoReturn:
    """Runs a command line and exits with its code."""
    for stream in (sys.stdout, sys.stderr):
        # A model's text may hold characters that the terminal's encoding lacks.
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Exits through SystemExit, so that engines are stopped and their folders removed.
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(number, _end_by_signal)
    context: dict[str, Any] = {}
    try:
        given = list(sys.argv[1:] if argv is None else argv)
        with cli.make_context("sgc", [*given]) as ctx:
            context = ctx.meta
            context["sgc.argv"] = given
            with _plain_warnings():
                cli.invoke(ctx)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("sgc: interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        _leave_closed_pipe()
    except Exception as error:
        _report(error, bool(context.get("sgc.debug")))
    sys.exit(0)


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Prints our own warnings as plain lines on stderr: they name the program's line themselves."""
    show = warnings.showwarning
    shown = set[str]()  # a program is run several times while it is compiled

    def show_plainly(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, SgcWarning):
            if str(message) not in shown:
                click.echo(f"sgc: warning: {message}", err=True)
            shown.add(str(message))
        else:
            show(message, category, *rest, **more)

    with warnings.catch_warnings():
        warnings.showwarning = show_plainly
        yield


def _end_by_signal(number: int, _: object) -> None:
    sys.exit(128 + number)


def _report(error: Exception, debug: bool) -> NoReturn:
    if debug:
        traceback.print_exception(error)
    if isinstance(error, SgcError):
        click.echo(f"sgc: error: {error}", err=True)
    elif isinstance(error, OSError):
        name = error.filename or "writing the output"
        click.echo(f"sgc: error: {name}: {error.strerror or error}", err=True)
    else:
        kind = type(error).__name__
        click.echo(f"sgc: error: {user_line(error)}{kind}: {error}", err=True)
        if not debug:
            click.echo("  --debug shows the traceback", err=True)
    # A UsageError with a program's line is an error of the program, not of the command line.
    is_usage = isinstance(error, UsageError) and not error.where
    sys.exit(EXIT_USAGE if is_usage else EXIT_ERROR)


def user_line(error: BaseException) -> str:
    """`file.py:12: ` of the innermost line outside this package, or nothing."""
    from sgc.core.places import innermost_user_line

    where = innermost_user_line(error)
    return f"{where}: " if where else ""


def _leave_closed_pipe() -> NoReturn:
    """Exits silently, as other tools do, when the reader of our output has gone."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(EXIT_ERROR)
