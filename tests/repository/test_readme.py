"""The README's commands exist, and links of pages lead somewhere; tests/pages runs its blocks."""

from __future__ import annotations

import re
from pathlib import Path

import click

from sgc.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_commands_exist():
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    words = {line.split()[1] for line in lines if line.startswith("sgc ")}
    assert words
    assert words <= set(cli.list_commands(click.Context(cli)))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in (line.split()[1] for line in lines if line.startswith("make ")):
        assert f"\n{target}:" in makefile


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"
