"""Descriptions of programs, and results of their runs, as clients get them over HTTP and gRPC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sgc.programs.program import Program
from sgc.runs.options import make_options
from sgc.runtime.executor.interface.tools import Shown
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult

Json = dict[str, Any]
OPTIONS = (
    "seed", "temperature", "max_tokens", "min_tokens", "top_p", "top_k", "min_p", "stop",
    "frequency_penalty", "presence_penalty", "repetition_penalty",
)  # fmt: skip
"""What a client may set for generations that do not set it themselves."""


def options_of(given: Mapping[str, Any]) -> RunOptions:
    """Reads the options from a client's fields; raises UsageError for a value out of range. What
    a client's run prints or logs is not the server's to show."""
    found = make_options({name: given[name] for name in OPTIONS if given.get(name) is not None})
    return replace(found, on_show=_nowhere)


def _nowhere(_: Shown) -> None: ...


def description(name: str, program: Program) -> Json:
    """A program and its parameters."""
    parameters = [
        {
            "name": param.value.name,
            "type": str(param.value.type),
            "required": param.default is None,
        }
        for param in program.graph.params
    ]
    return {"id": name, "object": "program", "parameters": parameters}


def run_object(run_id: str, name: str, result: RunResult) -> Json:
    """The result of a run."""
    return {
        "id": run_id,
        "object": "program.run",
        "program": name,
        "return": result.ret_value,
        "text": result.text(),
        "variables": dict(result.variables),
        "streams": [
            {"name": stream.name, "text": stream.text, "variables": dict(stream.variables)}
            for stream in result.streams
        ],
        "usage": {**usage(result), "requests": result.stats.requests},
        "seed": result.seed,
    }


def usage(result: RunResult) -> Json:
    """A run's tokens, in OpenAI's form."""
    stats = result.stats
    return {
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": stats.completion_tokens,
        "total_tokens": stats.prompt_tokens + stats.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": stats.cached_tokens},
    }
