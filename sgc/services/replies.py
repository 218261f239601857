"""Descriptions of programs, and results of their runs, as clients get them over HTTP and gRPC."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sgc.errors import ProgramError, UsageError
from sgc.programs.program import Program
from sgc.proto import engine_pb2 as pb
from sgc.runs.options import make_options
from sgc.runtime.engine.preparing.bounds import RequestError, check_sampling
from sgc.runtime.executor.interface.tools import unshown
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult

Json = dict[str, Any]
OPTIONS = (
    "seed", "temperature", "max_tokens", "min_tokens", "top_p", "top_k", "min_p", "stop",
    "frequency_penalty", "presence_penalty", "repetition_penalty",
)  # fmt: skip
"""What a client may set for generations that do not set it themselves."""


class OptionError(UsageError):
    """An option has a value that no generation can have. name: which one."""

    name = ""


def options_of(given: Mapping[str, Any]) -> RunOptions:
    """Reads the options from a client's fields; raises OptionError for a value out of range. What
    a client's run prints or logs is not the server's to show."""
    chosen = {name: given[name] for name in OPTIONS if given.get(name) is not None}
    for name, value in chosen.items():
        try:
            _check_for_engine(name, getattr(make_options({name: value}), name))
        except (UsageError, RequestError) as error:
            found = OptionError(error.message)
            found.name = name
            raise found from error
    return replace(make_options(chosen), on_show=unshown)


def _check_for_engine(name: str, value: Any) -> None:
    """Raises RequestError for a value that the engine refuses whatever a program sets besides."""
    if name not in ("seed", "min_tokens", "max_tokens"):
        fields = {"top_p": 1.0, "repetition_penalty": 1.0, "top_k": -1, name: value}
        check_sampling(pb.Sampling(**fields), vocab_size=1)


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


def as_json(value: Any) -> str:
    """What a program gave, as JSON; raises ProgramError if it has none: NaN, a dict with tuples as
    keys, half of a surrogate pair."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ProgramError(f"the result cannot be written as JSON: {error}") from error
    return text


def usage(result: RunResult) -> Json:
    """A run's tokens, in OpenAI's form."""
    stats = result.stats
    return {
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": stats.completion_tokens,
        "total_tokens": stats.prompt_tokens + stats.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": stats.cached_tokens},
    }
