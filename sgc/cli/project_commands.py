"""The commands of a project: `sgc new`, `sgc test`, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sgc.cli.common import common_options
from sgc.cli.completion import engines, program_files
from sgc.cli.help import Group, command, option
from sgc.cli.numbers import FiniteRange
from sgc.cli.settings.config import PARAMETERS

_TEST_GROUPS = (
    Group.of("Tests", "program keyword limit asserts", "tools"),
    Group.of(
        "Model", "model engine judge seed temperature max_tokens max_cost",
        "max_concurrency request_timeout rpm tpm prices",
    ),
    Group.of("Recordings", "record replay"),
    Group.of("Results", "as_json junit"),
)  # fmt: skip
_TEST_CODES = {
    0: "done, and all passed",
    1: "error, or a recording that does not fit",
    2: "wrong usage, or a file of tests that is none",
    100: "some failed",
}
_POSITIVE = FiniteRange(min=0, min_open=True)


@command("new")
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@common_options
def new_command(folder: Path) -> None:
    """Writes a project: a program, rows, tests and settings.

    It runs at once. Nothing that is there is overwritten.
    """
    from sgc.cli.project.new import new_project

    new_project(folder)


# fmt: off
@command("test", groups=_TEST_GROUPS, codes=_TEST_CODES, configured=PARAMETERS)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@option("--program", metavar="PROG.py|PROG.sgir", shell_complete=program_files, help="The program "
        "that is tested. Else the one that the file names.")
@option("-k", "--keyword", metavar="TEXT", aliases=("--filter-pattern",), help="Only tests with "
        "this in their name.")
@option("-n", "--limit", type=click.IntRange(min=1), metavar="N", aliases=("--filter-first-n",),
        help="Only the first N.")
@option("--asserts", type=click.Path(path_type=Path), metavar="FILE.py", help="A file of Python "
        "functions, which `python` calls. It is run; a file of tests names no code.")
@option("--tools", multiple=True, metavar="PROG.py|MODULE", help="Whose @sgc.tool functions the "
        "program may call. That Python is run. Repeatable.")
@option("-m", "--model", metavar="ID_OR_PATH", aliases=("--model-path",), help="A model to start: "
        "a folder, a Hugging Face id. Without it the demo model.")
@option("-e", "--engine", metavar="URI", aliases=("--provider",), shell_complete=engines,
        help="Or who is asked: openai:MODEL, grpc://HOST:PORT. As for sgc run.")
@option("--judge", metavar="URI|MODEL", aliases=("--grader",), help="Who judges for llm-rubric. An "
        "engine's address or a model; else the tested model.")
@option("--seed", type=int, metavar="N", help="Makes sampling repeatable.")
@option("-t", "--temperature", type=float, metavar="X", help="For generations that name none.")
@option("--max-tokens", type=int, metavar="N", help="For generations that name none.")
@option("--max-cost", type=_POSITIVE, metavar="DOLLARS", help="Ask a provider nothing that might "
        "cost more.")
@option("--prices", type=click.Path(path_type=Path), metavar="FILE", help="Of a provider, as for "
        "sgc run.")
@option("--rpm", type=_POSITIVE, metavar="X", help="Of a provider: most requests a minute.")
@option("--tpm", type=_POSITIVE, metavar="X", help="Of a provider: most tokens a minute.")
@option("-j", "--max-concurrency", type=click.IntRange(min=1), metavar="N", help="Most tests at "
        "once.")
@option("--request-timeout", type=_POSITIVE, metavar="SECONDS", aliases=("--timeout",), help="How "
        "long a request may take.")
@option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Keep all replies, in "
        "place of those of an earlier call.")
@option("--replay", type=click.Path(path_type=Path), metavar="FILE", help="Run on such a file: no "
        "model, no key, no network.")
@option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@option("--junit", type=click.Path(path_type=Path), metavar="FILE.xml", help="Write JUnit's XML, "
        "for CI.")
@option("-q", "--quiet", is_flag=True, help="Only tests that failed.")
@common_options
def test_command(**options: Any) -> None:
    """Runs a program on rows and checks what comes.

    FILE is YAML or JSON as promptfoo's tests, JSON lines, or CSV; without it tests.yaml of this
    folder. See docs/testing.md.
    """
    from sgc.cli.testing.command import run_command_line

    run_command_line(**options)
# fmt: on


test_command.__test__ = False  # type: ignore[attr-defined]  # pytest takes it for a test


# fmt: off
@command("dev", configured=PARAMETERS)
@click.argument("target", metavar="PROG.py[:FUNCTION]", shell_complete=program_files)
@option("-a", "--arg", "single_args", multiple=True, metavar="NAME=VALUE", help="One argument of "
        "the first run; the page has a form for them. Repeatable.")
@option("--args", "json_args", metavar="JSON|@FILE", help="Such arguments as a JSON object.")
@option("-m", "--model", metavar="ID_OR_PATH", aliases=("--model-path",), help="A model to start: "
        "a folder, a Hugging Face id. Without it the demo model.")
@option("-e", "--engine", metavar="URI", shell_complete=engines, help="Or who is asked: "
        "openai:MODEL, grpc://HOST:PORT. As for sgc run.")
@option("--seed", type=int, default=1, show_default=True, help="The seed of every version, so that "
        "equal requests have equal replies.")
@option("-t", "--temperature", type=float, metavar="X", help="Default of generations that name "
        "none.")
@option("-n", "--max-tokens", type=click.IntRange(min=1), metavar="N", help="Likewise.")
@option("--max-cost", type=_POSITIVE, metavar="DOLLARS", help="Most that one version may cost at "
        "a provider.")
@option("--tools", multiple=True, metavar="PROG.py|MODULE", help="Whose @sgc.tool functions the "
        "program may call. Repeatable.")
@option("--interpret", is_flag=True, help="Run the Python itself instead of compiling it.")
@option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Of the page, on "
        "127.0.0.1. Without it any free one.")
@option("--open/--no-open", "opens", default=False, help="Open the page in the browser.")
@common_options
def dev_command(**options: Any) -> None:
    """Shows a program live: an edit asks only what it changes.

    The page has a form for arguments, the text as it is generated, and every version with its
    graph, prompts and times. Tools are called in every version.
    """
    from sgc.cli.dev.command import dev

    dev(**options)
# fmt: on
