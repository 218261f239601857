"""Code that would take all time or memory: a process of its own runs it, within its limits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from executor.code.comparing import needed

_RUN = """
import json, resource, sys, time
from sgc.errors import SgcError
from sgc.runtime.executor.code import fuel
from sgc.runtime.executor.code.run import run_code
fuel.MAX_STEPS = int(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = []
for source in json.load(sys.stdin):
    begun = time.process_time()
    try:
        said = repr(run_code(source, [3]))[:60]
    except SgcError as error:
        said = "limit"
    except Exception as error:
        said = f"{type(error).__name__}: {error}"[:200]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found.append((said, time.process_time() - begun, (peak - before) // 1024))
print(json.dumps(found))
"""


def check_it_is_ended(bodies: Sequence[str], head: str, n_steps: int) -> None:
    """Asserts that each body of a function of n is ended by a limit, soon and with little memory.

    n_steps: that a run has.
    """
    texts = [each.replace("\\n", "\n") for each in bodies]
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(n_steps)],
        input=json.dumps([f"{needed(head, each)}\ndef f(n):\n    {each}\n" for each in texts]),
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    assert not done.stderr
    found = list(zip(bodies, json.loads(done.stdout), strict=True))
    assert [(body, said) for body, (said, *_) in found if said != "limit"] == []
    for body, (_, seconds, mebibytes) in found:
        assert seconds < 1.5, (body, seconds)
        assert mebibytes < 256, (body, mebibytes)
