"""sgc: a compiler-first system for language-model programs.

`import sgc as sgl` reads like SGLang's front end. Importing this loads no torch,
transformers or gRPC; they come with the first use of an engine.
"""

from sgc.endpoints import RemoteEngine, Runtime, set_default_backend
from sgc.errors import SgcError
from sgc.functions import Function, function
from sgc.program import Program, load
from sgc.runtime.executor.record import RunResult
from sgc.state import ProgramState, ProgramStateGroup
from sgc.words import (
    assistant,
    assistant_begin,
    assistant_end,
    gen,
    role,
    select,
    system,
    system_begin,
    system_end,
    user,
    user_begin,
    user_end,
)

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    raise AttributeError(
        f"sgc has no {name!r} (yet); it has: {', '.join(__all__)}", name=name, obj=__name__
    )


__all__ = [
    "Function",
    "Program",
    "ProgramState",
    "ProgramStateGroup",
    "RemoteEngine",
    "RunResult",
    "Runtime",
    "SgcError",
    "assistant",
    "assistant_begin",
    "assistant_end",
    "function",
    "gen",
    "load",
    "role",
    "select",
    "set_default_backend",
    "system",
    "system_begin",
    "system_end",
    "user",
    "user_begin",
    "user_end",
]
