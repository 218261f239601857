"""A plugin of pytest: `sgc_recording` runs a test's programs on a recording, kept beside the test.

`pytest --sgc-record` asks a model and writes the recordings anew; without it none is asked. It is
loaded where it is named (`pytest_plugins = ["sgc.pytest_plugin"]`): a plugin that pytest finds by
itself has all modules of its package rewritten by pytest. It imports nothing of sgc until used.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sgc.runs.endpoint import Endpoint

FOLDER = "recordings"
MAX_NAME = 150  # characters of a recording's name


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sgc", "recordings of sgc's programs")
    group.addoption("--sgc-record", action="store_true",
                    help="ask a model, and write the recordings of sgc_recording anew")  # fmt: skip
    group.addoption("--sgc-engine", metavar="URI", default=None,
                    help="who is asked then: openai:MODEL, grpc://HOST:PORT")  # fmt: skip
    group.addoption("--sgc-model", metavar="ID_OR_PATH", default=None,
                    help="or a model to start then; without both the demo model")  # fmt: skip


@pytest.fixture
def sgc_recording(request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    """The endpoint of a test, and the default one of its runs: a recording, or a model whose
    replies are written to it. A test that fails leaves the earlier recording as it was.
    """
    from sgc.runs.endpoints import get_default_backend, set_default_backend

    before = get_default_backend()
    path = _path_of(request)
    is_new = request.config.getoption("--sgc-record")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    endpoint = _recorded(request.config, unfinished) if is_new else _replayed(path)
    set_default_backend(endpoint)
    try:
        yield endpoint
    finally:
        set_default_backend(before)
        endpoint.shutdown()
        if is_new:
            if _passed(request.node):
                os.replace(unfinished, path)
            else:
                unfinished.unlink(missing_ok=True)


_OUTCOME = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if call.when == "call":
        item.stash[_OUTCOME] = bool(report.passed)  # type: ignore[attr-defined]
    return report


def _passed(item: pytest.Item) -> bool:
    return item.stash.get(_OUTCOME, False)


def _path_of(request: pytest.FixtureRequest) -> Path:
    """`recordings/test_file.test_name.rec` beside its file; classes come before the name.
    A name that no file can have is shortened, and told apart by a digest.
    """
    source: Path = request.path
    test, bracket, values = request.node.nodeid.partition("::")[2].partition("[")
    name = f"{source.stem}.{test.replace('::', '.')}{bracket}{values}"
    short = re.sub(r"[^A-Za-z0-9_.=\[\]-]+", "_", name)[:MAX_NAME]
    if short != name:
        short += "." + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return source.parent / FOLDER / f"{short}.rec"


def _recorded(config: pytest.Config, path: Path) -> Endpoint:
    from sgc.runs.endpoints import Runtime, connect
    from sgc.runs.keeping import record

    engine, model = config.getoption("--sgc-engine"), config.getoption("--sgc-model")
    if engine and model:
        raise pytest.UsageError("--sgc-engine and --sgc-model exclude each other")
    path.parent.mkdir(exist_ok=True)
    return record(connect(engine) if engine else Runtime(model), path)


def _replayed(path: Path) -> Endpoint:
    from sgc.runs.keeping import replay

    if not path.is_file():
        pytest.fail(
            f"there is no recording {path}\n"
            "  write it, from a model: pytest --sgc-record --sgc-engine openai:MODEL",
            pytrace=False,
        )
    return replay(path)
