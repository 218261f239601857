"""Chat templates, as they reach a server that says which model it has."""

from __future__ import annotations

import pytest

import sgc
from sgc import errors
from sgc.runtime.executor.interface.capabilities import ChatFormat, RoleFormat


@sgc.function
def chat(s):
    s += sgc.system("S")
    s += sgc.user("U")
    s += sgc.assistant(sgc.gen("a", max_tokens=2, stop="\n\n"))
    s += sgc.user("V")
    s += sgc.assistant("so " + sgc.gen("b", max_tokens=2))


@sgc.function
def without_system(s):
    s += sgc.user("U")
    s += sgc.assistant(sgc.gen("a", max_tokens=2))


IM = "<|im_start|>{}\n{}<|im_end|>\n"
LLAMA3 = "<|start_header_id|>{}<|end_header_id|>\n\n{}<|eot_id|>"
# Model path, the text of `chat` up to the second reply, the template's stop strings.
TEMPLATES = [
    (
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "SYSTEM:S\nUSER:U\nASSISTANT:{a}\nUSER:V\nASSISTANT:so ",
        [],
    ),
    ("Qwen/Qwen3-8B", "SYSTEM:S\nUSER:U\nASSISTANT:{a}\nUSER:V\nASSISTANT:so ", []),
    (
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
        "SYSTEM:S\nUSER:U\nASSISTANT:{a}\nUSER:V\nASSISTANT:so ",
        [],
    ),
    (
        "Qwen/Qwen2.5-7B-Instruct",
        IM.format("system", "S") + IM.format("user", "U") + IM.format("assistant", "{a}")
        + IM.format("user", "V") + "<|im_start|>assistant\nso ",
        ["<|im_end|>"],
    ),
    (
        "meta-llama/Llama-3.1-8B-Instruct",
        LLAMA3.format("system", "S") + LLAMA3.format("user", "U")
        + LLAMA3.format("assistant", "{a}") + LLAMA3.format("user", "V")
        + "<|start_header_id|>assistant<|end_header_id|>\n\nso ",
        ["<|eot_id|>"],
    ),
    (
        "meta-llama/Llama-2-7b-chat-hf",
        "[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]{a} </s><s>[INST] V [/INST]so ",
        [],
    ),
    (
        "deepseek-ai/DeepSeek-V3",
        "S<｜User｜>U<｜Assistant｜>{a}<｜end▁of▁sentence｜><｜User｜>V<｜Assistant｜>so ",
        ["<｜end▁of▁sentence｜>"],
    ),
    (
        "google/gemma-2b-it",
        "S<start_of_turn>user\nU<end_of_turn>\n<start_of_turn>model\n{a}<end_of_turn>\n"
        "<start_of_turn>user\nV<end_of_turn>\n<start_of_turn>model\nso ",
        [],
    ),
    (
        "mistralai/Mixtral-8x7B-Instruct-v0.1",
        "[SYSTEM_PROMPT] S [/SYSTEM_PROMPT][INST] U [/INST]{a} </s><s>[INST] V [/INST]so ",
        ["</s>"],
    ),
    ("lmsys/vicuna-7b-v1.5", "S USER:U ASSISTANT:{a}</s>USER:V ASSISTANT:so ", []),
]  # fmt: skip


@pytest.mark.parametrize(("model", "expected", "stops"), TEMPLATES, ids=lambda v: str(v)[:24])
def test_a_models_name_decides_the_template(served, server, model, expected, stops):
    state = chat.run(backend=served(model))
    state.sync()
    first, second = server.requests
    text = expected.replace("{a}", state["a"])
    assert second["text"] == text
    assert text.startswith(first["text"])
    assert state.text().startswith(text + state["b"])
    assert first["sampling_params"]["stop"] == ["\n\n", *stops]
    assert second["sampling_params"].get("stop", []) == stops
    assert state.messages() == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "U"},
        {"role": "assistant", "content": state["a"].lstrip()},
        {"role": "user", "content": "V"},
        {"role": "assistant", "content": "so " + state["b"]},
    ]


@pytest.mark.parametrize("way", ["call", "compile", "batch"])
def test_compiled_programs_have_the_template_of_the_backend_they_run_on(served, server, way):
    """SGLang's tracer puts the template of one backend into its graph."""
    program = chat.compile()
    for model, expected, _ in TEMPLATES:
        endpoint = served(model)
        server.reset()
        result = {
            "call": lambda endpoint=endpoint: chat(backend=endpoint),
            "compile": lambda endpoint=endpoint: program.run(backend=endpoint),
            "batch": lambda endpoint=endpoint: chat.run_batch([{}], backend=endpoint)[0],
        }[way]()
        assert result.text().startswith(expected.replace("{a}", result["a"]))


def test_llama_2_style_puts_the_system_message_inside_the_first_user_message(served):
    endpoint = served("meta-llama/Llama-2-7b-chat-hf")

    @sgc.function
    def later(s):
        s += sgc.user("U") + sgc.assistant("A")
        s += sgc.system("S") + sgc.user("V")

    assert chat.run(backend=endpoint).text().startswith(
        "[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]"
    )  # fmt: skip
    assert without_system.run(backend=endpoint).text().startswith("[INST] U [/INST]")
    # Only a system message that comes first goes inside.
    assert later.run(backend=endpoint).text() == (
        "[INST] U [/INST]A </s><s><<SYS>>\nS\n<</SYS>>\n\n[INST] V [/INST]"
    )


def test_a_default_system_prompt_comes_before_the_first_role(served):
    endpoint = served("Qwen/Qwen2.5-7B-Instruct")

    @sgc.function
    def raw_first(s):
        s += "raw" + sgc.user("U") + sgc.user("V")

    @sgc.function
    def children(s):
        forks = s.fork(2)
        forks += sgc.user("U")
        return [fork.text() for fork in forks]

    default = IM.format("system", "You are a helpful assistant.")
    user = IM.format("user", "U")
    state = without_system.run(backend=endpoint)
    assert state.text().startswith(default + user)
    assert state.messages()[0] == {"role": "system", "content": "You are a helpful assistant."}
    assert raw_first.run(backend=endpoint).text() == (
        "raw" + default + user + IM.format("user", "V")
    )
    assert children.run(backend=endpoint).ret_value == [default + user] * 2


def test_an_own_or_empty_system_message_suppresses_the_default(served):
    endpoint = served("Qwen/Qwen2.5-7B-Instruct")

    @sgc.function
    def empty(s):
        s += sgc.system() + sgc.user("U")

    @sgc.function
    def begun(s):
        s += sgc.system_begin() + "own" + sgc.system_end() + sgc.user("U")

    user = IM.format("user", "U")
    assert empty.run(backend=endpoint).text() == IM.format("system", "") + user
    assert begun.run(backend=endpoint).text() == IM.format("system", "own") + user
    assert chat.run(backend=endpoint).text().startswith(IM.format("system", "S") + user)


def test_no_role_no_system_prompt(served, server):
    @sgc.function
    def program(s):
        s += "plain" + sgc.gen("a", max_tokens=2)

    program.run(backend=served("Qwen/Qwen2.5-7B-Instruct")).sync()
    assert server.requests[0]["text"] == "plain"
    assert server.requests[0]["sampling_params"]["stop"] == ["<|im_end|>"]


def test_the_templates_image_token_stands_for_an_image(served, server):
    @sgc.function
    def program(s):
        s += sgc.user(sgc.image(b"\xff\xd8\xffpixels") + "what?") + sgc.gen("a", max_tokens=2)

    for model, token in (
        ("Qwen/Qwen2-VL-7B-Instruct", "<|vision_start|><|image_pad|><|vision_end|>"),
        ("liuhaotian/llava-v1.5-7b", " <image>\n"),
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", "<|image|>"),
        ("an/unknown-model", "<image>"),
    ):
        endpoint = served(model)
        server.reset()
        program.run(backend=endpoint).sync()
        assert f"{token}what?" in server.requests[0]["text"]


def test_a_template_can_be_named(served):
    endpoint = served("an/unknown-model", chat_template_name="chatml")
    assert without_system.run(backend=endpoint).text().startswith(IM.format("user", "U"))
    with pytest.raises(errors.UsageError, match="no chat template 'nope'"):
        served("an/unknown-model", chat_template_name="nope")


def test_a_template_can_be_set_on_an_endpoint(served, server):
    """Programs do `runtime.endpoint.chat_template = get_chat_template(…)`."""
    endpoint = served("an/unknown-model")
    roles = {name: RoleFormat(f"<{name}>", f"</{name}>") for name in ("user", "assistant")}
    endpoint.endpoint.chat_template = ChatFormat(roles=roles, stop=("</assistant>",))
    state = without_system.run(backend=endpoint)
    assert state.text() == f"<user>U</user><assistant>{state['a']}</assistant>"
    assert server.requests[0]["sampling_params"]["stop"] == ["</assistant>"]
    assert endpoint.chat_template.roles["user"].prefix == "<user>"


def test_an_unknown_role_is_an_error_at_its_line(served):
    """SGLang puts nothing around it."""

    @sgc.function
    def program(s):
        s += sgc.role("critic", "text")

    with pytest.raises(errors.UsageError, match="no role 'critic'") as caught:
        program.run(backend=served("Qwen/Qwen2.5-7B-Instruct")).sync()
    assert caught.value.where.startswith("test_templates.py:")


def test_messages_of_tools_are_their_bare_text(served):
    @sgc.function
    def program(s):
        s += sgc.role("tool", "result")

    state = program.run(backend=served("gpt2"))
    assert state.text() == "result"
    assert state.messages() == [{"role": "tool", "content": "result"}]
