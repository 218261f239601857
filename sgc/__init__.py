"""sgc: a compiler-first system for language-model programs.

`import sgc as sgl` works like SGLang's front end. Importing it loads almost nothing, so that the
command line starts quickly: the names come with the first that is used, torch, transformers and
gRPC with an engine, the compiler with `Program`, `load` and `view`.
"""

import os as _os
from typing import TYPE_CHECKING

if _os.path.isfile(_os.path.join(_os.path.dirname(__file__), "ir")):
    raise ImportError(
        "sgc/ir is a text, not a link: Git for Windows writes links so. Use WSL; sgc needs POSIX. "
        "Elsewhere: git config core.symlinks true, then git checkout -- sgc"
    )

if TYPE_CHECKING:
    from sgc.face import *
    from sgc.face import map as map  # not in __all__: `import *` would hide Python's `map`
    from sgc.programs.program import Program, load
    from sgc.viewer.view import View, view

__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name in _COMPILER:
        from sgc.programs import program
        from sgc.viewer import view

        return getattr(view if name in ("View", "view") else program, name)
    if name in __all__ or name == "map":
        from sgc import face

        globals().update({each: getattr(face, each) for each in (*__all__, "map")
                          if each not in _COMPILER})  # fmt: skip
        return globals()[name]
    raise AttributeError(
        f"sgc has no {name!r} (yet); it has: {', '.join(__all__)}, map", name=name, obj=__name__
    )


_COMPILER = ("Program", "View", "load", "view")

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
    "View",
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
    "view",
]
