"""Counts the Python objects of an engine's processes from outside (`harness.py` puts this folder on
their import path).

The server and the step process each answer on a Unix socket of the folder SGC_WATCHED. The byte `?`
asks for a collection of garbage and a count of the objects that were made since the process loaded,
by type; `g` for a count of what the collection found, and from then until the next `?` the process
collects only when it is asked. No other process that is started with this folder does anything.
"""

from __future__ import annotations

import os
from pathlib import Path

WATCHED = ("sgc.runtime.engine.serve", "sgc.runtime.engine.worker.main")


def _named(found: list[object]) -> dict[str, int]:
    import collections

    kinds = (type(each) for each in found)
    return collections.Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)


def _answer(folder: str) -> None:
    import gc
    import json
    import socket

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.join(folder, str(os.getpid())))
        listening.listen()
        while True:
            asked, _ = listening.accept()
            with asked:
                if asked.recv(1) == b"g":
                    gc.disable()
                    gc.set_debug(gc.DEBUG_SAVEALL)
                    gc.collect()
                    gc.set_debug(0)
                    names = _named(gc.garbage)
                    gc.garbage.clear()
                    gc.collect()
                else:
                    gc.enable()
                    gc.collect()
                    names = _named(gc.get_objects())
                asked.sendall(json.dumps(names).encode())


def _start() -> None:
    folder = os.environ.get("SGC_WATCHED")
    if not folder:
        return
    command = Path("/proc/self/cmdline").read_bytes().decode(errors="replace").split("\0")
    if any(name in command for name in WATCHED):
        import threading

        threading.Thread(target=_answer, args=(folder,), daemon=True).start()


_start()
