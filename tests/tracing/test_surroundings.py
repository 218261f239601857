"""What a program reads of its surroundings while being traced is refused with its line."""

from __future__ import annotations

import atexit
import datetime
import os
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
    @sgc.function
    def program(s, x):
        import this_module_is_ours

        s += this_module_is_ours.TEXT + x

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        (Path(folder) / "this_module_is_ours.py").write_text("TEXT = 'a'\n")
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
