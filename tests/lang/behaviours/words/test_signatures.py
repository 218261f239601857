"""The words of the language: their signatures are SGLang's."""

from __future__ import annotations

import inspect

import pytest

import sgc
from sgc.lang.group import ProgramStateGroup
from sgc.lang.state import ProgramState
from sgc.programs.function import Function

_SAMPLING = (
    *("n", "stop", "stop_token_ids", "stop_regex", "temperature", "top_p", "top_k", "min_p"),
    *("frequency_penalty", "presence_penalty", "ignore_eos", "return_logprob"),
    *("logprob_start_len", "top_logprobs_num", "return_text_in_logprobs"),
)


_GEN = (
    *("name", "max_tokens", "min_tokens", *_SAMPLING),
    *("dtype", "choices", "choices_method", "regex", "json_schema"),
)


# Positional parameters in order, each with its default; "*" stands for a required one.
SIGNATURES = {
    "function": [("func", None), ("num_api_spec_tokens", None)],
    "gen": [(name, None) for name in _GEN],
    "gen_int": [(name, None) for name in ("name", "max_tokens", *_SAMPLING)],
    "gen_string": [(name, None) for name in ("name", "max_tokens", *_SAMPLING)],
    # None is token_length_normalized, as SGLang has it by its object.
    "select": [("name", None), ("choices", None), ("temperature", 0.0), ("choices_method", None)],
    "image": [("expr", "*")],
    "video": [("path", "*"), ("num_frames", "*")],
    "system": [("expr", None)],
    "user": [("expr", None)],
    "assistant": [("expr", None)],
    "system_begin": [],
    "system_end": [],
    "user_begin": [],
    "user_end": [],
    "assistant_begin": [],
    "assistant_end": [],
    "separate_reasoning": [("expr", None), ("model_type", None)],
    "flush_cache": [("backend", None)],
    "get_server_info": [("backend", None)],
}


METHODS = {
    (Function, "bind"): [],
    (Function, "cache"): [("backend", None)],
    (Function, "run_batch"): [("batch_kwargs", "*")],
    (ProgramState, "text"): [],
    (ProgramState, "messages"): [],
    (ProgramState, "sync"): [],
    (ProgramState, "error"): [],
    (ProgramState, "get_var"): [("name", "*")],
    (ProgramState, "set_var"): [("name", "*"), ("value", "*")],
    (ProgramState, "get_meta_info"): [("name", "*")],
    (ProgramState, "text_iter"): [("var_name", None)],
    (ProgramState, "text_async_iter"): [("var_name", None), ("return_meta_data", False)],
    (ProgramState, "fork"): [("size", 1), ("position_ids_offset", None)],
    (ProgramState, "copy"): [("position_ids_offset", None)],
    (ProgramState, "var_scope"): [("name", "*")],
    (ProgramState, "system"): [("expr", None)],
    (ProgramState, "user"): [("expr", None)],
    (ProgramState, "assistant"): [("expr", None)],
    (ProgramStateGroup, "join"): [("mode", "gather_variable")],
}


def _positional(function) -> list[tuple[str, object]]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = [p for p in inspect.signature(function).parameters.values() if p.kind in kinds]
    return [
        (p.name, "*" if p.default is inspect.Parameter.empty else p.default)
        for p in found
        if p.name != "self"
    ]


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature_of_each_word(name):
    assert _positional(getattr(sgc, name)) == SIGNATURES[name]
    assert name in sgc.__all__


@pytest.mark.parametrize(("owner", "name"), METHODS, ids=str)
def test_signature_of_each_method(owner, name):
    assert _positional(getattr(owner, name)) == METHODS[owner, name]


def test_set_default_backend_takes_one_positional_argument():
    (parameter,) = inspect.signature(sgc.set_default_backend).parameters.values()
    assert parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


def test_run_batch_keywords_and_their_defaults():
    found = inspect.signature(Function.run_batch).parameters
    expected = {
        "backend": None, "num_threads": "auto", "progress_bar": False, "generator_style": False,
    }  # fmt: skip
    for name, default in expected.items():
        assert found[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert found[name].default == default


def test_positional_order_of_gen(recorded):
    """A public program passes max_tokens as the second positional argument."""
    endpoint = recorded()

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g", 7, 2, None, ["!"], [3], "z+", 0.5, 0.25, 5, 0.125, 1.0, 2.0, True)

    program.run(backend=endpoint).sync()
    (sampling,) = endpoint.samplings
    assert (sampling.max_tokens, sampling.min_tokens, sampling.stop) == (7, 2, ("!",))
    assert (sampling.stop_token_ids, sampling.stop_regex) == ((3,), ("z+",))
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.5, 0.25, 5)
    assert (sampling.min_p, sampling.frequency_penalty) == (0.125, 1.0)
    assert (sampling.presence_penalty, sampling.ignore_eos) == (2.0, True)
