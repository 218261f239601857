"""The hints on its run that a request carries to the engine; see `backend.py`."""

from __future__ import annotations

from sgc.proto import engine_pb2 as pb
from sgc.runtime.executor.hints.ahead import told
from sgc.runtime.executor.hints.last_use import reusable
from sgc.runtime.executor.interface.backend import Prompt

MAX_REMAINING = 1 << 24  # tokens of a program; an engine refuses more


def with_hints(request: pb.Request, prompt: Prompt) -> pb.Request:
    """Adds how much of the prompt later requests may reuse, if known, and the hints of the run."""
    place = reusable(prompt)
    if place is not None:
        request.reusable.segment, request.reusable.offset = place
    return with_run(request)


def with_run(request: pb.Request) -> pb.Request:
    """Adds the run that the request belongs to, and how much is left of it, if known."""
    run = told()
    if run is not None:
        request.run.id = run.number
        if run.remaining is not None:
            request.run.remaining = min(run.remaining, MAX_REMAINING)
    return request
