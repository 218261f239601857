"""Pages of docs lead somewhere, are in the navigation, and have short sentences."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from page_blocks import tokens_of

import sgc

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
SHORT = [ROOT / "README.md", DOCS / "index.md", *(p for part in ("tutorial", "cookbook", "concepts")
                              for p in sorted((DOCS / part).glob("*.md")))]  # fmt: skip
MOST_WORDS = 35


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    tokens = tokens_of(page.read_text(encoding="utf-8"))
    headings = [tokens[i + 1] for i, token in enumerate(tokens) if token.type == "heading_open"]
    texts = ["".join(child.content for child in heading.children or ()) for heading in headings]
    return frozenset(re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts)


def links(page: Path) -> list[str]:
    inline = [token for token in tokens_of(page.read_text(encoding="utf-8")) if token.children]
    children = [child for token in inline for child in token.children]
    found = [child.attrGet("href") or child.attrGet("src") for child in children]
    return [link for link in found if link and "://" not in link and not link.startswith("mailto:")]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name_of(page)}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{name_of(page)}: {link}"


def test_every_page_is_in_the_navigation_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = [found for found in re.findall(r"(\S+\.md)\n", nav) if not found.startswith("files/")]
    pages = [page.relative_to(DOCS).as_posix() for page in sorted(DOCS.rglob("*.md"))]
    assert sorted(listed) == sorted(pages)


def test_every_public_name_is_in_the_reference() -> None:
    said = "".join(page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md"))
    shown = re.findall(r"^::: sgc\.(\w+)$", said, re.MULTILINE)
    assert sorted(shown) == sorted({*sgc.__all__, "map", "errors"} - {"SgcError", "ToolError"})


@pytest.mark.parametrize("page", SHORT, ids=name_of)
def test_sentences_are_short(page: Path) -> None:
    for token in tokens_of(page.read_text(encoding="utf-8")):
        if token.type != "inline":
            continue
        text = "".join("\n" if c.type == "softbreak" else c.content for c in token.children or ())
        for sentence in re.split(r"(?<=[.!?:])\s+", text):
            n_words = len(sentence.split())
            assert n_words <= MOST_WORDS, f"{name_of(page)}: {n_words} words: {sentence}"
