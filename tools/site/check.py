"""Checks a built site: no page asks another host for a script, a style, a font or a picture."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

# What a browser fetches by itself; `a` is followed only by a person.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
RELS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "modulepreload", "dns-prefetch"}
ELSEWHERE = re.compile(r"(?:[a-z]+:)?//", re.IGNORECASE)


class Fetches(HTMLParser):
    """Collects the addresses on other hosts that a page fetches."""

    def __init__(self) -> None:
        super().__init__()
        self.elsewhere: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(FETCHED.get(tag, "")) or ""
        if tag == "link" and RELS & set((given.get("rel") or "").split()):
            address = given.get("href") or ""
        if ELSEWHERE.match(address):
            self.elsewhere.append(f"{tag} {address}")


def elsewhere(site: Path) -> list[str]:
    """Each address on another host that the site's pages and styles fetch, with its file."""
    found = []
    for path in sorted(site.rglob("*.html")):
        page = Fetches()
        page.feed(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(site)}: {address}" for address in page.elsewhere]
    for path in sorted(site.rglob("*.css")):
        urls = re.findall(
            r"(?:url\(|@import )[\"']?((?:https?:)?//[^)\"']+)", path.read_text("utf-8")
        )
        found += [f"{path.relative_to(site)}: {url}" for url in urls]
    return found


def main() -> None:
    site = Path(sys.argv[1])
    n_pages = len(list(site.rglob("*.html")))
    if not n_pages:
        raise SystemExit(f"{site}: there is no page; build the site first: make docs")
    found = elsewhere(site)
    if found:
        raise SystemExit("\n".join(["the site asks other hosts:", *found]))
    print(f"{n_pages} pages, none of which asks another host")


if __name__ == "__main__":
    main()
