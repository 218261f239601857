"""A process that computes a share of a model: it loads the model as the first process does, and
then runs the batches that the first process sends. It sends nothing: shares are combined in the
sums of `group.py`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from sgc.runtime.engine.model.device.group import Group
from sgc.runtime.engine.model.device.places import find_place
from sgc.runtime.engine.model.runner import ModelRunner
from sgc.runtime.engine.worker.peer import ending_with_peer
from sgc.runtime.engine.worker.ranks import Asked, batches


def main() -> int:
    parser = argparse.ArgumentParser(prog="sgc.runtime.engine.worker.rank")
    parser.add_argument("--folder", type=Path, required=True, help="where the processes meet")
    parser.add_argument("--config", required=True, help="JSON: ranks.Asked, rank and n")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process is ended in order
    told = json.loads(options.config)
    group = Group(told.pop("rank"), told.pop("n"))
    try:
        with ending_with_peer(sys.stdin.fileno()):
            runner = _load(Asked(**told), group, options.folder)
        for batch in batches(sys.stdin.buffer):
            runner.run(batch)
    except (Exception, SystemExit) as error:  # the first most likely has it too, and reports it
        print(f"process {group.rank} of the model's: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(options.folder, ignore_errors=True)
    return 0


def _load(asked: Asked, group: Group, folder: Path) -> ModelRunner:
    place = find_place(asked.device, asked.attention, group)
    group.join(place.device, folder)
    return asked.load(place)


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # skips torch's orderly shutdown, which waits for peers that are gone
