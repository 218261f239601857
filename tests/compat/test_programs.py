"""Programs, runtimes and chat templates under SGLang's names."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from sgc.errors import ProgramError, UsageError


def test_the_offline_engine_is_no_backend(sgl):
    with pytest.raises(UsageError, match="no backend of programs"):
        sgl.Engine(model_path="fake")


def test_runtime_takes_sglangs_arguments(sgl):
    given = sgl.ServerArgs("fake", tp_size=2, log_level="error", context_length=512, dtype="float")
    assert given.engine_settings == {"max_context": 512, "dtype": "float32"}
    assert (given.tp_size, given.tokenizer_path) == (2, "fake")
    bad: list[tuple[dict[str, Any], str]] = [
        ({"quantization": "fp8", "frobnicate": 1}, "no argument quantization, frobnicate"),
        ({"dtype": "half"}, "dtype must be one of"),
        ({"tokenizer_path": "other"}, "tokenizer_path='other'"),
    ]
    for arguments, message in bad:
        with pytest.raises(UsageError, match=message):
            sgl.Runtime(model_path="fake", **arguments)


def test_a_runtime_of_ours_under_sglangs_name(sgl):
    from sglang.lang.chat_template import get_chat_template

    with sgl.Runtime(model_path="fake", tp_size=1, log_level="error", port=30000) as runtime:
        sgl.set_default_backend(runtime)
        assert sgl.global_config.default_backend is runtime
        runtime.endpoint.chat_template = get_chat_template("llama-3-instruct")
        assert runtime.endpoint.chat_template.name == "llama-3-instruct"
        state = _chat(sgl).run("hi", max_new_tokens=4, ignore_eos=True)
        assert "<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>" in state.text()
        assert runtime.token_usage.completion_tokens == 4


def _chat(sgl: ModuleType) -> Any:
    @sgl.function
    def chat(s, question):
        s += sgl.user(question)
        s += sgl.assistant(sgl.gen("answer"))

    return chat


def test_a_base_backend_has_a_template_and_no_model(sgl, server):
    from sglang.lang.backend.base_backend import BaseBackend
    from sglang.lang.chat_template import get_chat_template

    backend = BaseBackend()
    assert backend.chat_template.name == "default"
    backend.chat_template = get_chat_template("llama-2-chat")
    assert isinstance(sgl.RuntimeEndpoint(server.url), BaseBackend)
    assert not isinstance(server, BaseBackend)
    with pytest.raises(ProgramError, match="gen failed: NotImplementedError"):
        _chat(sgl).run("hi", backend=backend).text()


def test_the_config_is_the_front_ends(sgl, server):
    assert sgl.global_config.default_backend is None
    backend = sgl.RuntimeEndpoint(server.url)
    sgl.global_config.default_backend = backend
    assert _chat(sgl).run("hi", temperature=0)["answer"]
    assert backend.token_usage.prompt_tokens > 0
    backend.token_usage.reset()
    assert repr(backend.token_usage) == "TokenUsage(prompt_tokens=0, completion_tokens=0)"
    sgl.global_config.enable_parallel_encoding = False
    with pytest.raises(UsageError, match="skip_special_tokens_in_output=False is not available"):
        sgl.global_config.skip_special_tokens_in_output = False


def test_programs_trace_compile_and_pin_in_sglangs_words(sgl, scripted):
    backend = scripted(lambda prompt, sampling: "!")

    @sgl.function
    def greet(s, style, name):
        s += style + " " * 70 + "Hello " + name + sgl.gen("mark", max_tokens=1)

    polite = greet.bind(style="Sir.")
    assert "gen" in polite.trace().last_node.print_graph_dfs()
    polite.pin(backend)
    polite.cache(backend)
    polite.unpin(backend)
    compiled = polite.compile(backend=backend)
    assert compiled.run(name="Ada").text().endswith("Hello Ada!")
    states = compiled.run_batch([{"name": "a"}, {"name": "b"}], temperature=0)
    assert [state.text()[-2:] for state in states] == ["a!", "b!"]
    assert isinstance(states[0], sgl.lang.interpreter.ProgramState)
    assert isinstance(greet.run("x", "y", backend=backend), sgl.lang.interpreter.ProgramState)


def test_the_older_name_of_speculation(sgl):
    assert sgl.function(api_num_spec_tokens=64)(lambda s: None).num_api_spec_tokens == 64
    with pytest.raises(UsageError, match="give one"):
        sgl.function(num_api_spec_tokens=1, api_num_spec_tokens=2)


@pytest.fixture
def templates(sgl) -> Iterator[ModuleType]:
    module = importlib.import_module("sglang.lang.chat_template")
    yield module
    module.chat_template_registry.clear()
    module.matching_function_registry.clear()


def test_templates_have_sglangs_form_and_ours(templates):
    llama = templates.get_chat_template("llama-2-chat")
    assert llama.style is templates.ChatTemplateStyle.LLAMA2
    assert llama.chat_format.system_in_user
    chat = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "U"},
        {"role": "assistant", "content": "A"},
    ]
    assert llama.get_prompt(chat) == "[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]A </s><s>"
    qwen = templates.get_chat_template_by_model_path("Qwen/Qwen2-7B-Instruct")
    assert (qwen.name, tuple(qwen.stop_str)) == ("qwen", ("<|im_end|>",))
    opened = qwen.get_prompt([{"role": "system", "content": None}])
    assert opened == "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    plain = templates.get_chat_template_by_model_path("nobody/knows")
    assert plain.get_prompt([{"role": "system", "content": None}, chat[1]]) == "USER:U\n"
    with pytest.raises(UsageError, match=r"no chat template 'nope'\n.*chatml"):
        templates.get_chat_template("nope")


def test_registered_templates_are_found_and_used(sgl, templates, server):
    def mine(name: str, mark: str) -> Any:
        return templates.ChatTemplate(
            name=name,
            default_system_prompt=None,
            role_prefix_and_suffix={"user": (mark, "\n"), "assistant": ("A:", "\n")},
            stop_str="END",
        )

    templates.register_chat_template(mine("mine", "Q:"))
    templates.register_chat_template_matching_function(
        lambda path: "mine" if "zz" in path else None
    )
    assert templates.get_chat_template_by_model_path("zz/x").name == "mine"
    named = sgl.RuntimeEndpoint(server.url, chat_template_name="mine")
    assert _chat(sgl).run("hi", backend=named).text().startswith("Q:hi\nA:")
    assert server.requests[-1]["sampling_params"]["stop"] == ["END"]
    # A registered template takes the place of the one that the model's path leads to.
    templates.register_chat_template(mine("qwen", "Qwen:"))
    assert _chat(sgl).run("hi", backend=sgl.RuntimeEndpoint(server.url)).text()[:5] == "Qwen:"
