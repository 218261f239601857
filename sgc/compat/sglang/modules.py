"""The stand-in's module tree: which names each module of SGLang's front end has here.

`sglang` must come last: its `global_config` is the object, not the module of that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import sgc
from sgc.compat.sglang import expressions, interpreter, programs, test_utils, utils
from sgc.compat.sglang.backends import base_backend, providers, usage
from sgc.compat.sglang.backends import runtime_endpoint as backends
from sgc.compat.sglang.backends.sampling_params import SglSamplingParams
from sgc.compat.sglang.server import arguments as server_args
from sgc.compat.sglang.server import processes as servers
from sgc.compat.sglang.server import schema_regex, srt
from sgc.compat.sglang.settings import chat_template, config
from sgc.lang import choices, words
from sgc.runtime.executor.run import options

Names = Mapping[str, Any]

_WORDS = (
    *("assistant", "assistant_begin", "assistant_end", "flush_cache", "gen"),
    *("gen_int", "gen_string", "get_server_info", "image", "select", "separate_reasoning"),
    *("set_default_backend", "system", "system_begin", "system_end"),
    *("user", "user_begin", "user_end", "video"),
)
_METHODS = (
    "greedy_token_selection",
    "token_length_normalized",
    "unconditional_likelihood_normalized",
)
_IN_UTILS = ("launch_server_cmd", "terminate_process", "wait_for_server")
_PROVIDERS = {name: getattr(providers, name) for name in providers.NAMES}
_API: Names = {
    **{name: getattr(sgc, name) for name in _WORDS},
    "function": programs.function,
    "Engine": backends.Engine,
    "Runtime": backends.Runtime,
}
_VERSION = f"{sgc.__version__}+sgc"
_DOC = "SGLang's front end, as sgc has it (see sgc.compat.sglang)."


def all_modules() -> dict[str, tuple[str | None, Names]]:
    """Modules by their dotted names, each with its docstring and public names."""
    config_names = {"global_config": config.global_config, "GlobalConfig": config.GlobalConfig}
    api = ("The words of the language.", {**_API, "global_config": config.global_config})
    tree: dict[str, tuple[str | None, Names]] = {
        "sglang.api": api,
        "sglang.lang.api": api,
        "sglang.global_config": (config.__doc__, config_names),
        "sglang.lang.global_config": (config.__doc__, config_names),
        "sglang.lang.chat_template": _public(chat_template),
        "sglang.lang.choices": (choices.__doc__, _choices()),
        "sglang.lang.interpreter": _public(interpreter),
        "sglang.lang.ir": ("Expressions and patterns.", _ir()),
        "sglang.lang.tracer": (
            None,
            {
                "trace_program": interpreter.trace_program,
                "extract_prefix_by_tracing": interpreter.extract_prefix_by_tracing,
            },
        ),
        "sglang.lang.compiler": (
            None,
            {
                "compile_func": interpreter.compile_func,
                "CompiledFunction": programs.CompiledFunction,
            },
        ),
        "sglang.utils": (utils.__doc__, {**_defined(utils), **_of_servers(*_IN_UTILS)}),
        "sglang.test.test_utils": (
            test_utils.__doc__,
            {
                **_defined(test_utils),
                **_of_servers("popen_launch_server"),
                "is_in_ci": utils.is_in_ci,
            },
        ),
        "sglang.test.doc_patch": (None, {"launch_server_cmd": servers.launch_server_cmd}),
        "sglang.srt.server_args": (server_args.__doc__, {"ServerArgs": server_args.ServerArgs}),
        "sglang.version": (None, {"__version__": _VERSION}),
        **_srt(),
    }
    for folder in ("sglang.lang.backend", "sglang.backend"):
        tree |= {f"{folder}.{name}": (None, names) for name, names in _backends().items()}
    tree["sglang"] = (_DOC, _top())
    return tree


def _public(module: ModuleType) -> tuple[str | None, Names]:
    return module.__doc__, {name: getattr(module, name) for name in module.__all__}


def _defined(module: ModuleType) -> Names:
    """The constants, functions and classes that the module itself defines."""
    return {
        name: value
        for name, value in vars(module).items()
        if name[0] != "_"
        and (name.isupper() or getattr(value, "__module__", None) == module.__name__)
    }


def _of_servers(*names: str) -> Names:
    return {name: getattr(servers, name) for name in names}


def _top() -> Names:
    return {
        **_API,
        **_PROVIDERS,
        **{name: getattr(choices, name) for name in _METHODS},
        "RuntimeEndpoint": backends.RuntimeEndpoint,
        "ServerArgs": server_args.ServerArgs,
        "SglangObject": interpreter.ProgramState,  # an annotation in one public program
        "global_config": config.global_config,
        "__version__": _VERSION,
        "__all__": sorted([*_API, *_PROVIDERS, *_METHODS, "RuntimeEndpoint", "global_config"]),
    }


def _choices() -> Names:
    return {
        **{name: getattr(choices, name) for name in _METHODS},
        **{type(found).__name__: type(found) for found in map(vars(choices).get, _METHODS)},
        "ChoicesDecision": choices.ChoicesDecision,
        "ChoicesSamplingMethod": choices.ChoicesSamplingMethod,
    }


def _ir() -> Names:
    patterns = {name: getattr(options, name) for name in vars(options) if name[:6] == "REGEX_"}
    return {
        **patterns,
        "REGEX_STRING": options.REGEX_STR,  # its name in the oldest versions
        "SglFunction": programs.SglFunction,
        **{name: getattr(expressions, name) for name in vars(expressions) if name[:3] == "Sgl"},
        "SglExpr": words.Expr,
        "SglImage": words.Image,
        "SglVideo": words.Video,
        "SglRoleBegin": words.RoleBegin,
        "SglRoleEnd": words.RoleEnd,
        "SglSamplingParams": SglSamplingParams,
    }


def _backends() -> dict[str, Names]:
    runtime = {"RuntimeEndpoint": backends.RuntimeEndpoint, "Runtime": backends.Runtime}
    found: dict[str, Names] = {
        "base_backend": {"BaseBackend": base_backend.BaseBackend},
        "runtime_endpoint": runtime,
        **{name.lower(): {name: provider} for name, provider in _PROVIDERS.items()},
    }
    found["openai"] = {**found["openai"], "TokenUsage": usage.TokenUsage}
    return found


def _srt() -> dict[str, tuple[str | None, Names]]:
    tokenizer = (None, {"get_tokenizer": srt.get_tokenizer})
    return {
        "sglang.srt.constrained.outlines_backend": (
            schema_regex.__doc__,
            {"build_regex_from_object": schema_regex.build_regex_from_object},
        ),
        "sglang.srt.hf_transformers_utils": tokenizer,
        "sglang.srt.utils.hf_transformers_utils": tokenizer,
        "sglang.srt.utils": (
            None,
            {"load_image": srt.load_image, "kill_process_tree": servers.kill_process_tree},
        ),
    }
