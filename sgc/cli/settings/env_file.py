"""`--env-file`: variables for this run, as in a `.env`. Read only if it is named."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sgc.cli.settings.reading import read_settings
from sgc.errors import UsageError

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(?:\s+#.*|\s*(.*))")
_QUOTED = re.compile(r"""(?:"((?:[^"\\]|\\.)*)"|'([^']*)')\s*(?:#.*)?""")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True)
class EnvFile:
    """taken: names that it sets; kept: names whose values in the environment are kept."""

    path: Path
    taken: tuple[str, ...]
    kept: tuple[str, ...]

    @property
    def addresses(self) -> list[str]:
        """Names that say where keys are sent."""
        return [name for name in self.taken if name.endswith("_BASE_URL")]


def take_env_file(path: Path) -> EnvFile:
    """Sets the variables of a file that the environment does not have.

    Raises UsageError, with the line's number, for an invalid line; values are never shown.
    """
    values = dict(_parsed(path, read_settings(path, f"--env-file {path}").removeprefix("\ufeff")))
    taken = tuple(name for name in values if name not in os.environ)
    os.environ.update({name: values[name] for name in taken})
    return EnvFile(path, taken, tuple(name for name in values if name not in taken))


def _parsed(path: Path, text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        found = _LINE.fullmatch(stripped)
        if found is None or "\0" in stripped:
            raise UsageError(
                f"{path}:{number}: expected NAME=VALUE", hint="a comment begins with #"
            )
        yield found[1], _value(found[2] or "", f"{path}:{number}")


def _value(text: str, place: str) -> str:
    if not text.startswith(('"', "'")):
        return re.sub(r"\s+#.*", "", text)
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        raise UsageError(f"{place}: a quote is not closed, or text follows it")
    if quoted[2] is not None:
        return quoted[2]
    return re.sub(r"\\(.)", lambda at: _ESCAPES.get(at[1], at[1]), quoted[1])
