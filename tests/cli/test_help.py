"""`--help` is one screen in groups, `--help-all` has every option; names that people know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from cli.conftest import ROOT

from sgc.cli.help import GroupedCommand, Option
from sgc.cli.main import SECTIONS, cli


def commands() -> Iterator[tuple[str, click.Command]]:
    ctx = click.Context(cli, info_name="sgc")
    for name in cli.list_commands(ctx):
        found = cli.get_command(ctx, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from ((f"{name} {inner}", each) for inner, each in found.commands.items())
        else:
            yield name, found


COMMANDS = dict(commands())


def shown(command: click.Command, everything: bool = False) -> str:
    ctx = click.Context(command, info_name="sgc", terminal_width=80)
    ctx.meta["sgc.help_all"] = everything
    return command.get_help(ctx)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_one_screen_and_help_all_is_everything(name):
    command = COMMANDS[name]
    lines = shown(command).splitlines()
    assert len(lines) <= 40, f"{name}: {len(lines)} lines"
    assert all(len(click.unstyle(line)) <= 80 for line in lines)
    assert "Exit codes: 0 done, 1 error, 2 wrong usage" in "\n".join(lines)
    # click breaks lines after the hyphens of names
    everything = re.sub(r"-\n +", "-", click.unstyle(shown(command, True)))
    ctx = click.Context(command)
    names = [n for p in command.get_params(ctx) if isinstance(p, click.Option) for n in p.opts]
    assert [each for each in names if not re.search(rf"{each}\b", everything)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_groups_name_options_that_there_are(name):
    command = COMMANDS[name]
    assert isinstance(command, GroupedCommand)
    there = {p.name for p in command.params}
    named = [n for group in command.groups for n in (*group.shown, *group.more)]
    assert set(named) <= there
    assert len(named) == len(set(named))


def test_every_command_is_in_a_section_and_the_list_is_one_screen(sgc_command):
    code, out, _ = sgc_command("--help")
    assert code == 0
    assert [title for title in SECTIONS if f"{title}:" not in out] == []
    assert len(out.splitlines()) <= 44
    assert not [line for line in out.splitlines() if line.endswith("...")][1:]


KNOWN = {
    "serve": "-m --model-path --host --port --max-model-len --context-length --max-num-seqs "
    "--gpu-memory-utilization --mem-fraction-static --tp --tensor-parallel-size --lora-modules "
    "--tool-call-parser --reasoning-parser --chunked-prefill-size --served-model-name",
    "run": "-m -e -a -o -n -j -t -q -v --output --input --provider --max-tokens --timeout",
}


@pytest.mark.parametrize("name", KNOWN)
def test_names_that_people_know(name):
    there = {n for p in COMMANDS[name].params if isinstance(p, Option) for n in p.opts}
    assert set(KNOWN[name].split()) <= there


MEANT = {
    "command": (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
    "option": (["run", "x.py", "--temprature", "0"], "--temperature"),
    "value": (["dump", "x.sgir", "--format", "jsn"], "Did you mean 'json'?"),
}


@pytest.mark.parametrize("case", MEANT)
def test_did_you_mean(sgc_command, case):
    argv, message = MEANT[case]
    code, out, err = sgc_command(*argv)
    assert (code, out) == (2, "")
    assert message in err


def test_a_model_to_serve_is_named_once(sgc_command):
    code, _, err = sgc_command("serve", "fake", "--model", "fake")
    assert (code, "name one" in err) == (2, True)
    code, _, err = sgc_command("serve", "fake", "--http", "1", "--port", "2")
    assert (code, "give one" in err) == (2, True)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CALLED = re.compile(r"\bsgc (?P<name>[a-z]+)(?P<rest>[^`|#;&\n]*)")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-zA-Z](?=\d|\s|$))")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_options_that_a_page_names_are_there(page: Path):
    for call in CALLED.finditer(page.read_text(encoding="utf-8")):
        command = COMMANDS.get(call["name"])
        if command is not None and "--as-sglang" not in call["rest"]:
            params = command.get_params(click.Context(command))
            there = {n for param in params for n in (*param.opts, *param.secondary_opts)}
            assert {*OPTION.findall(call["rest"])} <= there | {"--help"}, call[0]
