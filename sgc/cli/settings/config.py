"""`sgc.toml` and `[tool.sgc]` of `pyproject.toml`: defaults of options that no folder can misuse.

A folder may come from anyone. So a file may set only a fixed list of options: none that decides
where requests and keys go, loads code, or writes outside of the file's own folder.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgc.cli.settings.reading import read_settings
from sgc.errors import UsageError, closest

FILE, PROJECT, TABLE = "sgc.toml", "pyproject.toml", "tool.sgc"
MAX_PARENTS = 64

_PROVIDER = re.compile(r"[a-z]+:[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)*")
_HINT = (
    "--no-config reads no file; what is secret, and where requests go, is said on the command line "
    "or by the environment (docs/configuration.md)"
)


@dataclass(frozen=True, slots=True)
class Config:
    """values: by the names of the options' parameters; lines: where each is written."""

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[str, int]

    def place(self, parameter: str) -> str:
        return f"{self.path}:{self.lines[parameter]}"


class _Wrong(Exception):
    """What is wrong with a value."""


def _text(value: Any, _: Path) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise _Wrong(f"expected a text, found {value!r}")
    return value


def _model(value: Any, folder: Path) -> str:
    model = _text(value, folder)
    return str(folder / model) if model.startswith((".", "/")) else model


def _engine(value: Any, folder: Path) -> str:
    from sgc.runtime.executor.backends.providers.wire.addresses import VENDORS

    engine = _text(value, folder)
    if not engine.startswith(VENDORS) or not _PROVIDER.fullmatch(engine):
        raise _Wrong(
            f"a file may name a provider's model ({'MODEL, '.join(VENDORS)}MODEL) and no "
            f"address, for keys and prompts would go there; found {value!r}"
        )
    return engine


def _inside(value: Any, folder: Path) -> Path:
    found = (folder / _text(value, folder)).resolve()
    if not found.is_relative_to(folder.resolve()) or found == folder.resolve():
        raise _Wrong(f"expected a folder below that of the file, found {value!r}")
    return found


def _number(least: float, kind: type = float) -> Callable[[Any, Path], Any]:
    def check(value: Any, _: Path) -> Any:
        is_number = isinstance(value, int if kind is int else (int, float))
        if not is_number or isinstance(value, bool) or not least <= value < float("inf"):
            noun = "a whole number" if kind is int else "a number"
            raise _Wrong(f"expected {noun} of {least:g} or more, found {value!r}")
        return value

    return check


def _level(value: Any, _: Path) -> int:
    if type(value) is not int or not 0 <= value <= 3:
        raise _Wrong(f"expected 0, 1, 2 or 3, found {value!r}")
    return value


# By the name in the file: the name of the option's parameter, and the check of its value.
KEYS: Mapping[str, tuple[str, Callable[[Any, Path], Any]]] = {
    "model": ("model", _model),
    "engine": ("engine", _engine),
    "opt-level": ("level", _level),
    "seed": ("seed", _number(0, int)),
    "temperature": ("temperature", _number(0)),
    "max-tokens": ("max_tokens", _number(1, int)),
    "cache-dir": ("cache_dir", _inside),
    "max-concurrency": ("max_concurrency", _number(1, int)),
    "request-timeout": ("request_timeout", _number(1e-3)),
    "max-cost": ("max_cost", _number(1e-9)),
    "rpm": ("rpm", _number(1e-3)),
    "tpm": ("tpm", _number(1e-3)),
}
PARAMETERS = frozenset(parameter for parameter, _ in KEYS.values())


def find_config(start: Path) -> Config | None:
    """The settings of the closest folder that has some: this one or one above, up to that of a
    repository or of the user. Raises UsageError for a file with a setting that it may not have.
    """
    folder = start.resolve()
    for here in (folder, *list(folder.parents)[:MAX_PARENTS]):
        for path, table in ((here / FILE, ""), (here / PROJECT, TABLE)):
            if path.is_file() and (found := read_config(path, table)) is not None:
                return found
        if (here / ".git").exists() or here == Path.home():
            break
    return None


def read_config(path: Path, table: str = "") -> Config | None:
    """The settings of a file; None if it has no such table."""
    if table and path.name != PROJECT:
        table = ""
    text = read_settings(path, str(path), _HINT)
    try:
        found: Any = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}", hint=_HINT) from error
    for name in table.split(".") if table else ():
        found = found.get(name) if isinstance(found, dict) else None
    if found is None:
        return None
    if not isinstance(found, dict):
        raise UsageError(f"{path}: [{table}] is no table", hint=_HINT)
    if _is_strangers(path):
        raise UsageError(
            f"{path} belongs to another user, and would be read", hint="--no-config reads no file"
        )
    return _checked(path, found, dict(_lines(text, table)))


def _is_strangers(path: Path) -> bool:
    """Whether a file is another user's, who might have left it in a folder that all may write.

    Always False for root: in a container the files of a checkout are another user's.
    """
    mine = getattr(os, "getuid", lambda: 0)()
    return mine != 0 and path.stat().st_uid not in (mine, 0)


def _checked(path: Path, found: Mapping[str, Any], lines: Mapping[str, int]) -> Config:
    values, places = {}, {}
    for key, value in found.items():
        line = lines.get(key, 1)
        if key not in KEYS:
            raise UsageError(
                f"{path}:{line}: {key!r} is no setting that a file may have; there are: "
                f"{', '.join(KEYS)}{closest(key, KEYS)}",
                hint=_HINT,
            )
        parameter, check = KEYS[key]
        try:
            values[parameter] = check(value, path.parent)
        except _Wrong as error:
            raise UsageError(f"{path}:{line}: {key}: {error}", hint=_HINT) from error
        places[parameter] = line
    if {"model", "engine"} <= values.keys():
        raise UsageError(
            f"{path}:{places['engine']}: engine and model exclude each other: an engine has its "
            "model",
            hint=_HINT,
        )
    return Config(path, values, places)


def _lines(text: str, table: str) -> Iterator[tuple[str, int]]:
    """The keys of a table, with their lines, which TOML's reader does not tell."""
    inside = not table
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            name = stripped.strip("[]").partition("#")[0].strip(" []")
            inside = name == table
            if not table or name.startswith(f"{table}."):
                yield name.removeprefix(f"{table}.").partition(".")[0], number
        elif inside and (key := re.match(r"""["']?([A-Za-z0-9_.-]+)["']?\s*=""", stripped)):
            yield key[1].partition(".")[0], number
