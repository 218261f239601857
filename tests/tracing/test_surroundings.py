"""What a program reads of its surroundings while being traced is refused with its line."""

from __future__ import annotations

import datetime
import os
import random
import subprocess
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


@pytest.mark.parametrize(
    "body",
    [
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


def test_an_import_in_a_body_is_no_read(scripted):
    @sgc.function
    def program(s, x):
        import this_module_is_ours

        s += this_module_is_ours.TEXT + x

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        (Path(folder) / "this_module_is_ours.py").write_text("TEXT = 'a'\n")
        patch.syspath_prepend(folder)
        assert run_both(program, scripted(), x="b").text() == "ab"
