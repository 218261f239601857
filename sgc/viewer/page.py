"""The page: one HTML file with its data, that loads nothing and sends nothing.

A content security policy forbids every request and every script but its own. Texts of programs and
models are data in it: they reach the page as text nodes only.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from sgc.viewer.texts import cut, script_json

GENERATOR = '<meta name="generator" content="sgc view">'  # identifies a page of `sgc view`
_ASSETS = Path(__file__).parent / "assets"
_MAX_TITLE = 200
_LIBRARIES = ("vendor/tabulator.min.js", "vendor/dagre.min.js")
_OWN = (
    "text.js", "table.js", "summary.js", "program.js", "rows.js", "requests.js", "prompts.js",
    "passes.js", "main.js",
)  # fmt: skip
_STYLES = ("vendor/tabulator.min.css", "page.css")


def page(data: Mapping[str, Any], title: str) -> str:
    """The page's HTML. data: `program`, `run`, `rows`, each if there is one."""
    scripts = _scripts()
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return _asset("page.html").format(
        generator=GENERATOR,
        policy=policy,
        title=escape(cut(title, _MAX_TITLE).encode("utf-8", "replace").decode("utf-8")),
        styles="\n".join(map(_asset, _STYLES)),
        data=script_json(data),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


@cache
def _scripts() -> tuple[str, ...]:
    """The libraries, then our own files in one function: none of their names is global."""
    own = "\n".join(map(_asset, _OWN))
    return (*map(_asset, _LIBRARIES), f'"use strict";\n(() => {{\n{own}\n}})();\n')


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
