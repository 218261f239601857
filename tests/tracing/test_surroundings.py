"""What a program reads of its surroundings while being traced is refused with its line."""

from __future__ import annotations

import atexit
import datetime
import importlib.util
import os
import pkgutil
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest
from tests_support import run_both

import sgc
from sgc.errors import TraceError


def reads_environment(s, x):
    s += os.environ.get("HOME", "none") + x


def reads_variable(s, x):
    s += str(os.getenv("HOME")) + x


def reads_date(s, x):
    s += f"{datetime.date.today()}" + x


def reads_moment(s, x):
    s += f"{datetime.datetime.now()}" + x


def reads_path(s, x):
    s += Path(__file__).read_text()[:3] + x


def reads_clock(s, x):
    s += f"{time.time()}" + x


def draws(s, x):
    s += random.choice(["a", "b"]) + x


def draws_bytes(s, x):
    s += str(uuid.uuid4()) + x


def starts_process(s, x):
    s += subprocess.run(["echo", "a"], capture_output=True, text=True, check=True).stdout + x


def looks_at_a_path(s, x):
    s += str(Path("/nowhere/at/all").exists()) + x


def looks_at_a_file(s, x):
    s += str(os.path.getmtime(__file__)) + x


def asks_for_its_folder(s, x):
    s += str(Path.cwd()) + x


def asks_for_its_process(s, x):
    s += str(os.getpid()) + x


def asks_for_its_machine(s, x):
    s += socket.gethostname() + x


def makes_a_folder(s, x):
    os.makedirs("/nowhere/at/all", exist_ok=True)


def removes_a_file(s, x):
    Path("/nowhere/at/all").unlink(missing_ok=True)


def moves_a_file(s, x):
    shutil.move("/nowhere/at/all", "/nowhere/else")


def sets_the_environment(s, x):
    os.environ["SGC_OF_A_TEST"] = "1"


def changes_the_folder(s, x):
    os.chdir("/")


def opens_a_database(s, x):
    sqlite3.connect("/nowhere/at/all.db").execute("select 1")


def registers_what_runs_at_the_end(s, x):
    atexit.register(print)


@pytest.mark.parametrize(
    "body",
    [
        looks_at_a_path,
        looks_at_a_file,
        asks_for_its_folder,
        asks_for_its_process,
        asks_for_its_machine,
        makes_a_folder,
        removes_a_file,
        moves_a_file,
        sets_the_environment,
        changes_the_folder,
        opens_a_database,
        registers_what_runs_at_the_end,
        reads_environment,
        reads_variable,
        reads_date,
        reads_moment,
        reads_path,
        reads_clock,
        draws,
        draws_bytes,
        starts_process,
    ],
)
def test_reading_the_surroundings_is_refused_with_its_line(body):
    with pytest.raises(TraceError, match="while being traced") as caught:
        sgc.function(body).compile()
    line = body.__code__.co_firstlineno + 1
    assert caught.value.where == f"test_surroundings.py:{line}"
    assert "SGC_OF_A_TEST" not in os.environ


def test_an_import_in_a_body_is_no_read(scripted):
    """Nor is what the module calls of its own then a reason to begin the trace anew."""

    @sgc.function
    def program(s, x):
        import this_module_is_ours

        s += this_module_is_ours.TEXT + x

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        (Path(folder) / "this_module_is_ours.py").write_text(
            "def text():\n    return 'a'\nTEXT = text()\n"
        )
        patch.syspath_prepend(folder)
        assert run_both(program, scripted(), x="b").text() == "ab"


class Looking:
    """An import hook that looks at files, as pytest's does."""

    def find_spec(self, name, path=None, target=None):
        self.exists(name)

    def exists(self, name):
        return os.path.exists(f"/{name}")


def test_a_hook_may_look_when_a_library_is_first_needed(monkeypatch):
    """A schema is the first to need what reads schemas."""

    @sgc.function
    def program(s, x):
        s += x + sgc.gen("a", json_schema={"type": "object", "properties": {"hooked": {}}})

    monkeypatch.delitem(sys.modules, "sgc.runtime.engine.guides.grammar", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Looking(), *sys.meta_path])
    program.compile()


class Loading:
    """Modules that a loader of the program's own makes of data."""

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "made_of_data" else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.TEXT = Path("prompt.txt").read_text()


def by_a_package(s, x):
    s += pkgutil.get_data("package_of_ours", "prompt.txt").decode() + x


def by_a_function_of_a_module(s, x):
    import package_of_ours.reading

    s += package_of_ours.reading.TEXT + x


def by_a_loader(s, x):
    import made_of_data

    s += made_of_data.TEXT + x


@pytest.mark.parametrize("body", [by_a_package, by_a_function_of_a_module, by_a_loader])
def test_what_an_import_reads_beside_modules_is_a_read(body, tmp_path, monkeypatch):
    """Else a compiled program would keep the text that its file has now."""
    package = tmp_path / "package_of_ours"
    package.mkdir()
    (tmp_path / "prompt.txt").write_text("a")
    (package / "prompt.txt").write_text("a")
    read = "open('prompt.txt').read()"
    (package / "__init__.py").touch()
    (package / "reading.py").write_text(f"def read():\n    return {read}\nTEXT = read()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Loading()])
    try:
        with pytest.raises(TraceError, match="opens a file while being traced"):
            sgc.function(body).compile()
    finally:
        for name in ("package_of_ours.reading", "package_of_ours", "made_of_data"):
            sys.modules.pop(name, None)
