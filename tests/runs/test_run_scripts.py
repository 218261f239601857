"""Scripts that are interrupted or go wrong: what this process could not survive."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from waiting import BOUND_S

# -- scripts of their own: what goes wrong in them would take this process along -------------

HEAD = """
import asyncio, os, signal, sys, threading, time
import sgc
from sgc.runs.endpoints import Endpoint
from sgc.errors import UsageError
from sgc.runtime.executor.backends.scripted import ScriptedBackend

class Slow(ScriptedBackend):
    active = 0
    async def generate(self, *args, **kwargs):
        Slow.active += 1
        try:
            await asyncio.sleep(600)
        finally:
            Slow.active -= 1

def script():
    return Endpoint(ScriptedBackend(lambda p, s: "r"))
"""


NO_FORKS = "ignore:This process:DeprecationWarning"  # from 3.12 on


def script(tmp_path: Any, body: str, *arguments: str) -> str:
    """What a script prints to both of its outputs; fails where it hangs or fails."""
    path = tmp_path / "script.py"
    path.write_text(HEAD + body)
    done = subprocess.run(
        [sys.executable, "-P", "-W", NO_FORKS, str(path), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BOUND_S,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


DEADLOCK = """
@sgc.function
def f(s, q):
    s += q
    for i in range(60):
        s += sgc.gen(f"x{i}")

end = script()
thread = threading.Thread(target=lambda: f("a", backend=end).sync())
thread.start()
time.sleep(0.05)
rows = f.run_batch([{"q": "b"}] * 3, backend=end)
thread.join()
print([row.how for row in rows])
"""


@pytest.mark.slow
def test_a_batch_and_a_first_call_may_compile_the_same_program_at_once(tmp_path):
    assert "['compiled', 'compiled', 'compiled']" in script(tmp_path, DEADLOCK)


EXITS = """
@sgc.function(jit=False)
def f(s, q):
    s += q + sgc.gen("x")
    if q:
        raise {"exit": SystemExit, "interrupt": KeyboardInterrupt}[q]()

end = script()
rows = f.run_batch([{"q": "exit"}, {"q": ""}, {"q": "interrupt"}], backend=end)
print([type(row.error()).__name__ for row in rows], rows[1].text())
print(type(f("exit", backend=end).error()).__name__, f("", backend=end).text())
"""


def test_a_row_that_exits_is_a_failed_row(tmp_path):
    printed = script(tmp_path, EXITS).splitlines()
    assert printed == ["['SystemExit', 'NoneType', 'KeyboardInterrupt'] r", "SystemExit r"]


INTERRUPTED = """
@sgc.function(jit=sys.argv[1] == "jit")
def f(s):
    s += "a" + sgc.gen("x")

def interrupt():
    while Slow.active < 3:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    list(f.run_batch([{}] * 3, backend=Endpoint(Slow(None)), generator_style=sys.argv[2] == "each"))
except KeyboardInterrupt:
    deadline = time.monotonic() + 20
    while Slow.active and time.monotonic() < deadline:
        time.sleep(0.01)
    print("interrupted", Slow.active)
"""


@pytest.mark.sweep
@pytest.mark.parametrize(("jit", "style"), [("jit", "all"), ("interpreted", "each")])
def test_an_interrupted_batch_leaves_nothing_and_says_nothing(tmp_path, jit, style):
    assert script(tmp_path, INTERRUPTED, jit, style) == "interrupted 0\n"


UNFINISHED = """
@sgc.function
def f(s):
    s += "a" + sgc.gen("x")

rows = f.run_batch([{}] * 5, backend=script(), generator_style=True, max_concurrency=2)
print(next(rows).text())
"""


@pytest.mark.slow
def test_an_iterator_of_rows_that_is_left_does_not_hold_up_the_exit(tmp_path):
    assert script(tmp_path, UNFINISHED) == "ar\n"


FORKED = """
@sgc.function
def f(s):
    s += "a" + sgc.gen("x")

end = script()
print(f(backend=end).text(), flush=True)
child = os.fork()
if child == 0:
    try:
        f(backend=end)
    except UsageError as error:
        print("make a new one in the child" in str(error), end.shutdown(), flush=True)
    print(f(backend=script()).text(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(f(backend=end).text())
"""


@pytest.mark.slow
def test_an_endpoint_is_not_used_in_a_forked_child(tmp_path):
    assert script(tmp_path, FORKED).splitlines() == ["ar", "True None", "ar", "ar"]


FORKS = """
import os
import sgc
from sgc.runs.endpoints import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend

@sgc.function
def program(s):
    s += "x" + sgc.gen("g")

def run():
    return program.run(backend=Endpoint(ScriptedBackend(lambda p, s: "r"))).text()

assert run() == "xr"
pid = os.fork()
if pid == 0:
    os._exit(0 if run() == "xr" else 1)
assert os.waitpid(pid, 0)[1] == 0
"""


def test_a_forked_child_can_run_programs(tmp_path):
    """In a process of its own: this one has gRPC's threads, which do not outlive a fork."""
    (tmp_path / "forks.py").write_text(FORKS)
    command = [sys.executable, "-P", str(tmp_path / "forks.py")]
    subprocess.run(command, check=True, timeout=BOUND_S)
