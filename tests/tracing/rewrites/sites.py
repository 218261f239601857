"""Where the tracer refuses programs, found in its source, and which place a refusal is from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import sgc.tracing
from sgc.errors import TraceError

TRACING = Path(sgc.tracing.__file__).parent
_ANY = ".*"


@dataclass(frozen=True)
class Site:
    """A call of `stop`. constant: what its message always says; message, hint: patterns."""

    file: str
    constant: str
    message: str
    hint: str

    def is_of(self, error: TraceError) -> bool:
        return all(
            re.fullmatch(pattern, text or "", re.DOTALL)
            for pattern, text in ((self.message, error.message), (self.hint, error.hint))
        )


def sites() -> list[Site]:
    return [site for file in sorted(TRACING.rglob("*.py")) for site in _sites_in(file)]


def sites_of(error: TraceError, among: Sequence[Site]) -> list[Site]:
    """The sites whose message and hint an error has; of those, the ones that say most of it."""
    found = [site for site in among if site.is_of(error)]
    most = max((len(site.constant) for site in found), default=0)
    return [site for site in found if len(site.constant) == most]


def _sites_in(file: Path) -> Iterator[Site]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "stop":
            given = dict(zip(("message", "hint"), node.args, strict=False))
            given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
            name = file.relative_to(TRACING).as_posix()
            message = list(_parts(given["message"]))
            hint = list(_parts(given["hint"])) if "hint" in given else [None]
            constant = "".join("…" if part is None else part for part in message)
            yield Site(name, constant, _pattern(message), _pattern(hint))


def _parts(node: ast.expr) -> Iterator[str | None]:
    """The constant parts of a text; None for each part that is computed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for value in node.values:
            yield from _parts(value)
    elif isinstance(node, ast.BinOp):
        yield from _parts(node.left)
        yield from _parts(node.right)
    else:
        yield None


def _pattern(parts: Sequence[str | None]) -> str:
    return "".join(_ANY if part is None else re.escape(part) for part in parts)
