"""Streams as HTML for notebooks: the program's own text plain, generated text coloured."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_STYLES = {
    "generated": "background:#dcf5dc;color:#0b3d0b",
    "chosen": "background:#d9ecff;color:#0a2f55",
    "value": "background:#fff3d0;color:#4a3800",
    "role_begin": "color:#8a8a8a",
    "role_end": "color:#8a8a8a",
}


def pieces_html(pieces: Iterable[tuple[str, str]]) -> str:
    """A stream's (kind, text) pieces as HTML: generations, choices and values each in a colour."""
    spans = []
    for kind, text in pieces:
        style = _STYLES.get(kind)
        shown = escape(text)
        title = escape(kind.replace("_", " "))
        spans.append(f'<span title="{title}" style="{style}">{shown}</span>' if style else shown)
    return f'<pre style="white-space:pre-wrap">{"".join(spans)}</pre>'
