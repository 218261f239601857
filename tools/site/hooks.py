"""Hooks of MkDocs: files outside `docs/` that pages link to, and the page of the command line."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
from command_line import reference

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = "<!-- commands -->"  # where a page has the command line
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
FILES = "files"  # the site's folder of them


def on_files(files: Files, config: Any) -> Files:
    """Adds each file of the repository that a page links to, and those that such pages link to."""
    waiting = [(page.src_uri, Path(page.abs_src_path)) for page in files.documentation_pages()]
    while waiting:
        src_uri, path = waiting.pop()
        for target in _outside(src_uri, path.read_text(encoding="utf-8")):
            found = ROOT / target
            uri = f"{FILES}/{target}"
            if not found.is_file() or files.get_file_from_path(uri):
                continue
            files.append(File.generated(config, uri, abs_src_path=str(found)))
            if found.suffix == ".md":
                waiting.append((uri, found))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links that leave `docs/` lead into the site's folder of files; the commands are put in."""
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, reference())
    here = page.file.src_uri
    place = posixpath.dirname(here)

    def moved(match: re.Match[str]) -> str:
        target = _target(here, match[2])
        if target is None:
            return match[0]
        to = target.removeprefix("docs/") if target.startswith("docs/") else f"{FILES}/{target}"
        return f"{match[1]}{posixpath.relpath(to, place or '.')}{match[3]}"

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(moved, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(moved, markdown[end:])])


def _outside(src_uri: str, text: str) -> list[str]:
    targets = [_target(src_uri, link[2]) for link in LINK.finditer(FENCE.sub("", text))]
    return [target for target in targets if target and not target.startswith("docs/")]


def _target(src_uri: str, link: str) -> str | None:
    """A link's path in the repository; None if it is no path, or needs no change."""
    if re.match(r"[a-z]+:", link):
        return None
    is_copy = src_uri.startswith(f"{FILES}/")
    origin = src_uri.removeprefix(f"{FILES}/") if is_copy else f"docs/{src_uri}"
    target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
    if target.startswith("../") or (not is_copy and target.startswith("docs/")):
        return None
    return target
