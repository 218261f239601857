"""What pages show is what happens: every block of docs runs, as `page_blocks` says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from page_blocks import RUN, blocks_of
from page_runs import BLESS, ROOT, Servers, Within, in_shell, run_page

import sgc
from sgc.runs.endpoints import Runtime

DOCS = ROOT / "docs"
TUTORIAL = sorted((DOCS / "tutorial").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
NOT_RUN = Path(__file__).parent / "not_run.txt"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def has_blocks(page: Path) -> bool:
    return any(block.runs for block in blocks_of(page))


Running = Callable[[str | None], Runtime | None]


@pytest.fixture
def running(request: pytest.FixtureRequest) -> Running:
    """The tests' engines, by their model."""
    engines = {None: "default_engine", "fake": "fake_engine"}

    def engine(model: str | None) -> Runtime | None:
        return request.getfixturevalue(engines[model]) if model in engines else None

    return engine


@pytest.fixture
def servers() -> Iterator[Servers]:
    servers = Servers()
    yield servers
    servers.close()


QUICK = [ROOT / "README.md", DOCS / "tutorial" / "06_data.md"]  # one program, one job


@pytest.mark.parametrize("page", QUICK, ids=name_of)
def test_the_readme_and_a_page_of_the_tutorial_run(
    page: Path, running: Running, servers: Servers, tmp_path: Path
) -> None:
    """Within this process, on one engine, so that it takes a moment."""
    folder = tmp_path / "folder"
    folder.mkdir()
    sgc.set_default_backend(running(None))
    try:
        run_page(page, folder, Within(running), servers)
    finally:
        sgc.set_default_backend(None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty one, but for what pages name of a clone."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("examples", "benches", "docs", "tests"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page", [p for p in PAGES if has_blocks(p) and p not in (*QUICK, *TUTORIAL)], ids=name_of
)
def test_every_other_page_runs(
    page: Path, running: Running, servers: Servers, folder: Path
) -> None:
    sgc.set_default_backend(running(None))
    try:
        run_page(page, folder, Within(running), servers)
    finally:
        sgc.set_default_backend(None)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", [page for page in TUTORIAL if has_blocks(page)], ids=name_of)
def test_the_tutorial_runs_in_a_shell(page: Path, servers: Servers, folder: Path) -> None:
    """As a reader has it: every command is a process, with an engine of its own."""
    run_page(page, folder, in_shell(), servers)


def test_what_does_not_run_is_listed() -> None:
    """Nothing is left out silently: `SGC_BLESS=1` writes the list anew."""
    found = [
        f"{name_of(page)}: {block.why_not}\n"
        for page in PAGES
        for block in blocks_of(page)
        if block.why_not is not None
    ]
    if BLESS:
        NOT_RUN.write_text("".join(found), encoding="utf-8")
    assert found == NOT_RUN.read_text(encoding="utf-8").splitlines(keepends=True)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_name_a_language_that_runs_or_is_only_shown(page: Path) -> None:
    shown = {"text", "json", "toml", "yaml", "dockerfile"}
    for block in blocks_of(page):
        assert block.title or block.language in shown | set(RUN), f"{name_of(page)}:{block.line}"
