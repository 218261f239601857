"""Runs `sgc run` in forks of a process that has imported everything, for kills of clients.

`kills.py` starts it. Each line of stdin is a JSON list, the file for stderr and the arguments; a
line of stdout gives the child's process id, and a second one, once it has ended, its exit status.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

IMPORTED = ("sgc.face", "sgc.cli", "sgc.cli.commands", "sgc.cli.running", "grpc.aio", "asyncio")


def child(stderr: str, arguments: list[str]) -> None:
    descriptor = os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 2)
    os.dup2(2, 1)
    from sgc.cli import main

    main(["run", *arguments])


def serve() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        stderr, *arguments = json.loads(line)
        pid = os.fork()
        if not pid:
            try:
                child(stderr, arguments)
            except SystemExit as ended:
                os._exit(ended.code if isinstance(ended.code, int) else 1)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
