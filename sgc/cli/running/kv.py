"""`sgc kv`: folders of K and V that engines keep."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

import click

from sgc.errors import counted
from sgc.runtime.engine.disk import folder as kv_folder


def info(folder: Path, as_json: bool) -> None:
    """Prints what a folder holds; raises `UsageError` if it is none of ours."""
    found = kv_folder.contents(folder)
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    click.echo(f"{_amount(found)} in {folder}")
    if found.n_files:
        click.echo(f"used from {_date(found.used_from)} to {_date(found.used_to)}")


def clear(folder: Path) -> None:
    """Removes what a folder holds; raises `UsageError` if it is none of ours."""
    click.echo(f"removed {_amount(kv_folder.clear(folder))} from {folder}")


def _amount(found: kv_folder.Contents) -> str:
    files = counted(found.n_files, "file")
    return f"{files}, {found.n_bytes / 2**20:.1f} MiB"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
