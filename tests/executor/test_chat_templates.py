"""Named chat templates, and which one a model's name means."""

from __future__ import annotations

import pytest

from sgc.errors import UsageError
from sgc.runtime.executor.interface.capabilities import RoleFormat
from sgc.runtime.executor.prompts.chat_templates import names, template_for, template_named


def test_every_template_has_the_roles_programs_use():
    assert len(names()) == 26
    for name in names():
        chat = template_named(name)
        assert set(chat.roles) == {"system", "user", "assistant", "tool"}, name
        assert chat.roles["tool"] == RoleFormat("", ""), name
        assert chat.image_token, name
        assert all(chat.stop), name


def test_what_a_template_says():
    chatml = template_named("chatml")
    assert chatml.roles["user"] == RoleFormat("<|im_start|>user\n", "<|im_end|>\n")
    assert chatml.stop == ("<|im_end|>",)
    assert chatml.default_system == ""
    assert not chatml.system_in_user
    assert chatml.image_token == "<image>"
    assert template_named("qwen").default_system == "You are a helpful assistant."
    llama = template_named("llama-2-chat")
    assert llama.system_in_user
    assert llama.roles["system"] == RoleFormat("<<SYS>>\n", "\n<</SYS>>\n\n")


def test_an_unknown_template_is_an_error_that_lists_the_known():
    with pytest.raises(UsageError, match=r"no chat template 'nope'[\s\S]*llama-3-instruct"):
        template_named("nope")


@pytest.mark.parametrize(
    ("model_path", "name"),
    [
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-chat"),
        ("codellama/CodeLlama-7b-Instruct-hf", "llama-2-chat"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3-instruct"),
        ("META-LLAMA/LLAMA-3.1-8B-INSTRUCT", "llama-3-instruct"),
        ("meta-llama/Meta-Llama-3-8B", "default"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "default"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen"),
        ("Qwen/Qwen1.5-7B-Chat", "qwen"),
        ("Qwen/Qwen3-8B", "default"),
        ("Qwen/Qwen2-VL-7B-Instruct", "qwen2-vl"),
        ("llava-qwen-chat", "default"),
        ("lmms-lab/llava-onevision-qwen2-7b-ov", "chatml-llava"),
        ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-V3-Base", "default"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek-v3"),
        ("deepseek-ai/Janus-Pro-7B", "janus-pro"),
        ("databricks/dbrx-instruct", "dbrx-instruct"),
        ("databricks/dbrx-base", "default"),
        ("lmsys/vicuna-7b-v1.5", "vicuna_v1.1"),
        ("liuhaotian/llava-v1.5-7b", "vicuna_v1.1"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mistral"),
        ("mistralai/Mistral-7B-v0.1", "default"),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "chatml"),
        ("THUDM/GLM-4.1V-9B-Thinking", "glm-4v"),
        ("01-ai/Yi-VL-6B", "yi-vl"),
        ("01-ai/Yi-1.5-9B-Chat", "yi-1.5"),
        ("google/gemma-2b-it", "gemma-it"),
        ("google/gemma-2b", "default"),
        ("google/gemma-3-27b-pt", "gemma-it"),
        ("openbmb/MiniCPM-V-2_6", "minicpmv"),
        ("openbmb/MiniCPM-o-2_6", "minicpmo"),
        ("CohereForAI/c4ai-command-r-v01", "c4ai-command-r"),
        ("ibm-granite/granite-3.0-8b-instruct", "granite-3-instruct"),
        ("OpenGVLab/InternVL2_5-8B", "internvl-2-5"),
        ("internlm/Intern-S1", "interns1"),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "default"),
        ("", "default"),
    ],
)
def test_which_template_a_model_means(model_path, name):
    assert template_for(model_path) == (name, template_named(name))
