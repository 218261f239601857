"""The parts of `make docs` that need no MkDocs: the page of commands, the check of a site."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from sgc.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _site_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "site"))
    for name in ("check", "command_line"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_the_page_of_commands_has_each_with_all_its_options() -> None:
    from command_line import reference

    said = reference()
    for name in cli.list_commands(click.Context(cli)):
        assert f"\n## sgc {name}\n" in said
    assert "--ordered-joins" in said  # which `--help` leaves to `--help-all`
    assert "\x1b" not in said


def test_what_a_page_fetches_from_another_host_is_found(tmp_path: Path) -> None:
    from check import elsewhere

    (tmp_path / "a.html").write_text(
        '<script src="https://cdn.example/x.js"></script><a href="https://elsewhere.example">'
        '<link rel="stylesheet" href="//fonts.example/f.css"><img src="pictures/x.png">'
    )
    (tmp_path / "a.css").write_text("@import 'own.css'; p { src: url(https://fonts.example/f) }")
    assert elsewhere(tmp_path) == [
        "a.html: script https://cdn.example/x.js",
        "a.html: link //fonts.example/f.css",
        "a.css: https://fonts.example/f",
    ]
