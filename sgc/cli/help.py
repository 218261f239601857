"""Commands whose options are shown in groups: the usual ones by `--help`, all by `--help-all`.

click lays the text out; this says what is shown, and in which group. An option that a command's
groups do not name is shown by `--help-all` alone.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from sgc.cli.output.verbose import be_verbose
from sgc.cli.settings.defaults import ConfiguredContext, settle
from sgc.errors import closest

F = TypeVar("F", bound=Callable[..., Any])

# What every command exits with, beside codes of its own.
EXIT_CODES = {0: "done", 1: "error", 2: "wrong usage", 130: "interrupted"}

_GENERAL = "General"
_COLUMN = 28  # most columns of an option's names
_DEFAULT = re.compile(r"\[default: [^;\]]*")
_PLAIN = ("[default: auto", "[default: off")  # words that a short help leaves out


@dataclass(frozen=True, slots=True)
class Group:
    """A group of options, by the names of their parameters. shown: by `--help`; more: only by
    `--help-all`."""

    title: str
    shown: tuple[str, ...]
    more: tuple[str, ...] = ()

    @staticmethod
    def of(title: str, shown: str, more: str = "") -> Group:
        """From names with spaces between them."""
        return Group(title, tuple(shown.split()), tuple(more.split()))


class Option(click.Option):
    """An option that may have other names, which only `--help-all` shows."""

    def __init__(self, *args: Any, aliases: Sequence[str] = (), **kwargs: Any) -> None:
        declared = [*(args[0] if args else kwargs.pop("param_decls"))]
        super().__init__([*declared, *aliases], *args[1:], **kwargs)
        self.aliases = tuple(aliases)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        shown = copy.copy(self)
        shown.opts = [name for name in self.opts if name not in self.aliases]
        found = click.Option.get_help_record(shown, ctx)
        if found is None or not self.aliases:
            return found
        return found[0], f"{found[1]} Also {', '.join(self.aliases)}."

    def short_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The names, and the first sentence with the default."""
        found = self.get_help_record(ctx)
        if found is None:
            return None
        text = " ".join((self.help or "").split()).split(". ")[0].rstrip(".")
        default = _DEFAULT.search(found[1])
        if default is None or default[0] in _PLAIN:
            return found[0], text
        return found[0], f"{text}  {default[0]}]"


class Choice(click.Choice[str]):
    """A choice that says which value may have been meant."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        message = super().get_invalid_choice_message(value, ctx)
        return message.rstrip(".") + closest(str(value), [str(choice) for choice in self.choices])


class GroupedCommand(click.Command):
    """A command with groups of options. codes: the exit codes that only this command has; `--help`
    leaves out what follows a comma. configured: the parameters whose defaults `sgc.toml` may
    set."""

    context_class = ConfiguredContext

    def __init__(
        self,
        *args: Any,
        groups: Sequence[Group] = (),
        codes: Mapping[int, str] | None = None,
        configured: Collection[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.groups = tuple(groups)
        self.codes = {**EXIT_CODES, **(codes or {})}
        self.configured = frozenset(configured)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if {"-v", "--verbose"} & {*args}:
            be_verbose(ctx)  # before the errors of other options, which come in any order
        rest = super().parse_args(ctx, args)
        settle(ctx)
        return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), help_all()]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shows_all = bool(ctx.meta.get(SHOWS_ALL))
        groups = [
            (title, [r for each in options if (r := _record(each, ctx, shows_all)) is not None])
            for title, options in self._grouped(ctx, shows_all)
        ]
        widest = max(len(names) for _, rows in groups for names, _ in rows)
        room = min(widest, _COLUMN)  # so that the texts of all groups begin in one column
        for title, rows in groups:
            if rows:
                with formatter.section(heading(title)):
                    shown = [(names_shown(names.ljust(room)), text) for names, text in rows]
                    formatter.write_dl(shown, col_max=room)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        codes = sorted(self.codes.items())
        formatter.write_paragraph()
        if ctx.meta.get(SHOWS_ALL):
            with formatter.section(heading("Exit codes")):
                formatter.write_dl([(str(code), text) for code, text in codes])
        else:
            shown = ", ".join(f"{code} {text.split(', ')[0]}" for code, text in codes)
            formatter.write_text(f"Exit codes: {shown}.")

    def _grouped(
        self, ctx: click.Context, shows_all: bool
    ) -> Iterable[tuple[str, list[click.Parameter]]]:
        """Titles and options in the order of the groups; what is in none comes last."""
        options = {p.name: p for p in self.get_params(ctx) if isinstance(p, click.Option)}
        if (of_click := self.get_help_option(ctx)) is not None:
            options["help"] = options.pop(of_click.name, of_click)
        general = [options.pop(name) for name in (*COMMON, "help_all", "help") if name in options]
        if not self.groups:
            yield "Options", [*options.values()]
            options = {}
        for group in self.groups:
            names = (*group.shown, *group.more) if shows_all else group.shown
            yield group.title, [options[name] for name in names if name in options]
        in_groups = {name for group in self.groups for name in (*group.shown, *group.more)}
        if shows_all:
            yield "Other", [option for name, option in options.items() if name not in in_groups]
        usual = ("quiet", "verbose", "env_file", "help_all")
        yield _GENERAL, [each for each in general if shows_all or each.name in usual]


SHOWS_ALL = "sgc.help_all"
# Options of every command, in the order in which help shows them.
COMMON = ("quiet", "verbose", "env_file", "config", "no_config", "debug")


def _record(option: click.Parameter, ctx: click.Context, shows_all: bool) -> tuple[str, str] | None:
    if isinstance(option, Option) and not shows_all:
        return option.short_record(ctx)
    return option.get_help_record(ctx)


def help_all() -> click.Option:
    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            ctx.meta[SHOWS_ALL] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    return Option(
        ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show,
        help="Show every option, and all that is said of it.",
    )  # fmt: skip


def heading(text: str) -> str:
    return click.style(text, bold=True)


def names_shown(names: str) -> str:
    return click.style(names, fg="cyan")


def command(name: str, **kwargs: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """`click.command` for a command whose options are shown in groups."""
    return click.command(name, **{"cls": GroupedCommand, **kwargs})


def option(*names: str, **kwargs: Any) -> Callable[[F], F]:
    """`click.option` for an option that may have aliases; a number is shown as N."""
    if isinstance(kwargs.get("type"), click.IntRange | click.FloatRange):
        kwargs.setdefault("metavar", "N")
    return click.option(*names, **{"cls": Option, **kwargs})
