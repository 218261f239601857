"""Every name that programs use of `sgc`, imported when the first of them is used.

Programs write `import sgc`; nothing imports this module but `sgc/__init__.py`.
"""

from sgc.errors import SgcError, ToolError
from sgc.lang.choices import (
    ChoicesDecision,
    ChoicesSamplingMethod,
    greedy_token_selection,
    joint,
    token_length_normalized,
    unconditional_likelihood_normalized,
)
from sgc.lang.group import ProgramStateGroup
from sgc.lang.maps import MappedStates
from sgc.lang.maps import map as map
from sgc.lang.state import ProgramState
from sgc.lang.table import join, table
from sgc.lang.tools import Tool, tool
from sgc.lang.turns import turns
from sgc.lang.words import (
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
from sgc.programs.decorator import function
from sgc.programs.function import Function
from sgc.runs.batch import BatchFailed
from sgc.runs.endpoint import Endpoint as _Endpoint
from sgc.runs.endpoints import (
    RemoteEngine,
    Runtime,
    RuntimeEndpoint,
    connect,
    flush_cache,
    get_server_info,
    set_default_backend,
)
from sgc.runs.endpoints import take_also as _take_also
from sgc.runs.keeping import cached, record, replay
from sgc.runs.providers import Anthropic, OpenAI
from sgc.runs.run import RunState
from sgc.runs.streaming import StreamedText
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.record import RunResult


@_take_also
def _written_for_sglang(given: object) -> _Endpoint | None:
    """An endpoint around an object with SGLang's hooks; imports the adapter only if needed."""
    if not all(callable(getattr(given, n, None)) for n in ("generate", "get_chat_template")):
        return None
    from sgc.compat.sglang.backends.own_backends import adapted

    return adapted(given)


# As in `sgc/__init__.py`, but for the compiler.
__all__ = [
    "Anthropic",
    "BatchFailed",
    "ChoicesDecision",
    "ChoicesSamplingMethod",
    "Function",
    "MappedStates",
    "OpenAI",
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
