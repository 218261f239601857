"""The named chat templates of SGLang's front end, and which one a model's name selects.

The table is in `chat_templates.json`; names, marks and the order of the matchers are SGLang's, so a
program puts the same text around its roles as in SGLang. One entry differs: SGLang's `janus-pro`
spells its user role "User", which leaves the users' messages unmarked; here it is "user". The table
is for servers that take plain text; our engine reads the model's own template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sgc.errors import UsageError
from sgc.runtime.executor.interface.capabilities import ChatFormat, RoleFormat

DEFAULT = "default"
DEFAULT_IMAGE_TOKEN = "<image>"


@dataclass(frozen=True, slots=True)
class Matcher:
    """Selects `template` for model paths in which `matches` is found and `unless` is not."""

    template: str
    matches: re.Pattern[str]
    unless: re.Pattern[str] | None

    def fits(self, model_path: str) -> bool:
        if self.matches.search(model_path) is None:
            return False
        return self.unless is None or self.unless.search(model_path) is None


@dataclass(frozen=True, slots=True)
class Table:
    formats: Mapping[str, ChatFormat]
    matchers: tuple[Matcher, ...]  # the first that fits is used


def names() -> tuple[str, ...]:
    """Returns the names of all templates."""
    return tuple(_table().formats)


def template_named(name: str) -> ChatFormat:
    """Returns the template of that name; raises UsageError if there is none."""
    found = _table().formats.get(name)
    if found is None:
        raise UsageError(
            f"there is no chat template {name!r}", hint=f"use one of: {', '.join(names())}"
        )
    return found


def template_for(model_path: str) -> tuple[str, ChatFormat]:
    """Returns the template that a model's path or name selects, "default" for an unknown model."""
    table = _table()
    fitting = (each.template for each in table.matchers if each.fits(model_path))
    name = next(fitting, DEFAULT)
    return name, table.formats[name]


@cache
def _table() -> Table:
    path = Path(__file__).with_name("chat_templates.json")
    given = json.loads(path.read_text(encoding="utf-8"))
    formats = {name: _format_of(fields) for name, fields in given["templates"].items()}
    return Table(formats, tuple(_matcher_of(fields) for fields in given["matchers"]))


def _format_of(fields: Mapping[str, Any]) -> ChatFormat:
    # No template marks tools' messages: as in SGLang, such a message is its bare text.
    roles = {"tool": RoleFormat("", "")}
    roles |= {role: RoleFormat(*around) for role, around in fields["roles"].items()}
    return ChatFormat(
        roles=roles,
        default_system=fields.get("default_system", ""),
        stop=tuple(fields.get("stop", ())),
        system_in_user=fields.get("system_in_user", False),
        image_token=fields.get("image_token", DEFAULT_IMAGE_TOKEN),
    )


def _matcher_of(fields: Mapping[str, str]) -> Matcher:
    unless = fields.get("unless")
    return Matcher(
        fields["template"],
        re.compile(fields["matches"], re.IGNORECASE),
        None if unless is None else re.compile(unless, re.IGNORECASE),
    )
