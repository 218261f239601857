"""The group of commands; turns an error into one message and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import click

from sgc.cli.common import DEBUG, common_options
from sgc.cli.completion import VARIABLE, answer
from sgc.cli.help import SHOWS_ALL, heading, help_all, names_shown
from sgc.cli.output.colours import bad, wanted, warning
from sgc.errors import SgcError, SgcWarning, UsageError, closest

EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130
EXIT_UNREAD = 128 + signal.SIGPIPE  # as shells report it of other tools
EXIT_SOME_FAILED, EXIT_BUDGET = 100, 101  # of `sgc run --rows`


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from sgc import __version__

        click.echo(f"sgc {__version__}")
        ctx.exit()


class Commands(click.Group):
    """Commands in sections, each given as `module:function` and imported when it is used."""

    def __init__(
        self, *args: Any, sections: Mapping[str, Mapping[str, str]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._by_name = {n: place for named in sections.values() for n, place in named.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._by_name:
            return None
        module, _, function = self._by_name[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), function)
        return command

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), help_all()]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self._by_name and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}{closest(name, self._by_name)}")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        shown = ("version", "verbose", "help")
        everything = bool(ctx.meta.get(SHOWS_ALL))
        usual = [
            param
            for param in self.get_params(ctx)
            if everything or param.opts[-1].removeprefix("--") in shown
        ]
        with formatter.section(heading("Options, also after the command")):
            rows = [row for each in usual if (row := each.get_help_record(ctx)) is not None]
            formatter.write_dl([(names_shown(names), text) for names, text in rows])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        room = formatter.width - 4 - max(map(len, self._by_name))
        for title, named in self._sections.items():
            with formatter.section(heading(title)):
                rows = []
                for name in named:
                    command = self.get_command(ctx, name)
                    assert command is not None
                    rows.append((names_shown(name), command.get_short_help_str(room)))
                formatter.write_dl(rows)


_PROGRAMS, _ENGINES = "sgc.cli.commands", "sgc.cli.engine_commands"
_COMPILING, _PROJECTS = "sgc.cli.compile_commands", "sgc.cli.project_commands"


def _of(module: str, names: str) -> dict[str, str]:
    return {name: f"{module}:{name}_command" for name in names.split()}


SECTIONS = {
    "Run": _of(_PROGRAMS, "run") | _of(_PROJECTS, "dev test new") | _of(_PROGRAMS, "replay"),
    "Compile": _of(_COMPILING, "compile opt explain estimate stubs"),
    "Serve": _of(_ENGINES, "serve route"),
    "Look": _of(_PROGRAMS, "view dump verify trace")
    | _of(_ENGINES, "top kv doctor")
    | _of(_PROGRAMS, "completion version"),
}


@click.group(
    cls=Commands,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="sgc COMMAND --help shows its usual options, --help-all every one.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@common_options
def cli() -> None:
    """Compiles and runs language-model programs.

    \b
    sgc run examples/tip_suggestion.py --arg topic="staying healthy"
    sgc compile examples/tip_suggestion.py -o tip.sgir
    sgc run tip.sgir --args '{"topic": "staying healthy"}' --json
    """


def main(argv: list[str] | None = None) -> NoReturn:
    """Runs a command line and exits with its code."""
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A model's text may hold characters that the terminal's encoding lacks.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if VARIABLE in os.environ:
        answer(cli)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Exits through SystemExit, so that engines are stopped and their folders removed.
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(number, _end_by_signal)
    context: dict[str, Any] = {}
    try:
        given = list(sys.argv[1:] if argv is None else argv)
        with cli.make_context("sgc", [*given], color=wanted()) as ctx:
            context = ctx.meta
            context["sgc.argv"] = given
            with _plain_warnings():
                cli.invoke(ctx)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        _show_usage_error(error)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _say("sgc: interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        _leave_closed_pipe()
    except Exception as error:
        if isinstance(error.__cause__, BrokenPipeError):  # of what the program prints
            _leave_closed_pipe()
        _report(error, bool(context.get(DEBUG)))
    sys.exit(0)


def _replace_closed_streams() -> None:
    """Puts /dev/null in place of a stdin, stdout or stderr that is closed (`>&-`): a file that is
    opened later would get its number, and what is printed."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Prints our own warnings as plain lines on stderr: they name the program's line themselves."""
    show = warnings.showwarning
    shown = set[str]()  # a program is run several times while it is compiled

    def show_plainly(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, SgcWarning):
            if str(message) not in shown:
                _say(f"sgc: {warning('warning:')} {message}")
            shown.add(str(message))
        else:
            show(message, category, *rest, **more)

    with warnings.catch_warnings():
        warnings.showwarning = show_plainly
        yield


class _Ended(SystemExit):
    """Of a signal; a program that is traced may raise SystemExit itself."""


def _end_by_signal(number: int, _: object) -> None:
    raise _Ended(128 + number)


def _say(line: str) -> None:
    click.echo(line, err=True, color=wanted())


def _show_usage_error(error: click.ClickException) -> None:
    """As click does, with `sgc: error:` as before every other error."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        _say(error.format_message())  # the help itself
        return
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx is not None:
        _say(f"{ctx.get_usage()}\nTry '{ctx.command_path} --help' for help.\n")
    _say(f"sgc: {bad('error:')} {error.format_message()}")


def _report(error: Exception, debug: bool) -> NoReturn:
    if debug:
        traceback.print_exception(error)
    if isinstance(error, SgcError):
        _say(f"sgc: {bad('error:')} {error}")
    elif isinstance(error, OSError):
        name = error.filename or "writing the output"
        _say(f"sgc: {bad('error:')} {name}: {error.strerror or error}")
    else:
        kind = type(error).__name__
        _say(f"sgc: {bad('error:')} {user_line(error)}{kind}: {error}")
        if not debug:
            _say("  --debug shows the traceback")
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
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(EXIT_UNREAD)
