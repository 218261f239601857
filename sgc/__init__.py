"""sgc: a compiler-first system for language-model programs.

`import sgc as sgl` reads like SGLang's front end. Importing this loads no torch,
transformers or gRPC; they come with the first use of an engine.
"""

from sgc.batch import BatchFailed
from sgc.choices import (
    ChoicesDecision,
    ChoicesSamplingMethod,
    greedy_token_selection,
    joint,
    token_length_normalized,
    unconditional_likelihood_normalized,
)
from sgc.endpoints import (
    RemoteEngine,
    Runtime,
    RuntimeEndpoint,
    connect,
    flush_cache,
    get_server_info,
    set_default_backend,
)
from sgc.errors import SgcError, ToolError
from sgc.functions import Function, function
from sgc.group import ProgramStateGroup
from sgc.keeping import cached, record, replay
from sgc.mapping import MappedStates
from sgc.mapping import map as map  # not in __all__: it would take the place of Python's
from sgc.program import Program, load
from sgc.providers import Anthropic, OpenAI
from sgc.runs import RunState
from sgc.runtime.executor.record import RunResult
from sgc.runtime.executor.run_log import RunLog
from sgc.state import ProgramState
from sgc.streaming import StreamedText
from sgc.table import join, table
from sgc.tools import Tool, tool
from sgc.turns import turns
from sgc.words import (
    assistant,
    assistant_begin,
    assistant_end,
    gen,
    gen_int,
    gen_string,
    image,
    role,
    select,
    separate_reasoning,
    system,
    system_begin,
    system_end,
    user,
    user_begin,
    user_end,
    video,
)

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    raise AttributeError(
        f"sgc has no {name!r} (yet); it has: {', '.join(__all__)}, map", name=name, obj=__name__
    )


__all__ = [
    "Anthropic",
    "BatchFailed",
    "ChoicesDecision",
    "ChoicesSamplingMethod",
    "Function",
    "MappedStates",
    "OpenAI",
    "Program",
    "ProgramState",
    "ProgramStateGroup",
    "RemoteEngine",
    "RunLog",
    "RunResult",
    "RunState",
    "Runtime",
    "RuntimeEndpoint",
    "SgcError",
    "StreamedText",
    "Tool",
    "ToolError",
    "assistant",
    "assistant_begin",
    "assistant_end",
    "cached",
    "connect",
    "flush_cache",
    "function",
    "gen",
    "gen_int",
    "gen_string",
    "get_server_info",
    "greedy_token_selection",
    "image",
    "join",
    "joint",
    "load",
    "record",
    "replay",
    "role",
    "select",
    "separate_reasoning",
    "set_default_backend",
    "system",
    "system_begin",
    "system_end",
    "table",
    "token_length_normalized",
    "tool",
    "turns",
    "unconditional_likelihood_normalized",
    "user",
    "user_begin",
    "user_end",
    "video",
]
