"""Chat templates become per-role pieces; what cannot is marked, what is hostile is stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.text.template import PLAIN, Chat, ProbeError, Role, assemble
from sgc.runtime.engine.text.template_child import (
    RunningProbe,
    TemplateSource,
    probe_here,
    read_template,
    start_probe,
)
from sgc.runtime.engine.text.template_render import renderer

CHATML = json.loads((DEFAULT_FOLDER / "tokenizer_config.json").read_text())["chat_template"]
CHATML_DEFAULT = (
    "{% if messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{% endif %}" + CHATML
)
LLAMA3 = """{% set loop_messages = messages %}{% for message in loop_messages %}
{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'
 + message['content'] | trim + '<|eot_id|>' %}
{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}
{{- content -}}{% endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}
{% endif %}"""
LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}"
    "{% set system = messages[0]['content'] %}{% else %}{% set rest = messages %}"
    "{% set system = false %}{% endif %}{% for message in rest %}"
    "{% if loop.index0 == 0 and system %}"
    "{% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + content + ' ' + eos_token }}"
    "{% else %}{{ raise_exception('no such role') }}{% endif %}{% endfor %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
    "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
)
THINKING = (
    "{% for m in messages %}{% set c = m.content %}"
    "{% if '</think>' in c %}{% set c = c.split('</think>')[-1].lstrip('\\n') %}{% endif %}"
    "{{ '<' + m.role + '>' + c + '</' + m.role + '>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
)
GENERATION_TAG = (
    "{% for m in messages %}{{ '[' + m.role + ']' }}{% generation %}{{ m.content }}"
    "{% endgeneration %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)


def chat_of(source: str, bos: str = "<s>", eos: str = "</s>") -> Chat:
    return probe_here(TemplateSource(source, bos, eos))


@pytest.mark.parametrize("source", [CHATML, CHATML_DEFAULT, LLAMA3, LLAMA2, GEMMA, THINKING])
@pytest.mark.parametrize("generates", [True, False])
def test_a_template_renders_what_transformers_renders(source: str, generates: bool) -> None:
    """With the shipped model's tokenizer, whose own the first of them is."""
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(DEFAULT_FOLDER))
    theirs.bos_token = "<|im_start|>"
    tokens = {"bos_token": theirs.bos_token, "eos_token": theirs.eos_token}
    said = [("user", " Hi "), ("assistant", "<think>\nhm\n</think>\n\nYes. "), ("user", "é\n")]
    messages = [{"role": role, "content": content} for role, content in said]
    ours = renderer(source, tokens)(messages, generates)
    assert ours == theirs.apply_chat_template(
        messages, chat_template=source, add_generation_prompt=generates, tokenize=False
    )


def test_chatml() -> None:
    chat = chat_of(CHATML, bos="")
    roles = {
        name: Role(f"<|im_start|>{name}\n", "<|im_end|>\n")
        for name in ("system", "user", "assistant", "tool")
    }
    assert chat.roles == roles
    assert (chat.default_system, chat.from_model, chat.prefix_stable) == ("", True, True)


def test_default_system_prompt_is_found() -> None:
    chat = chat_of(CHATML_DEFAULT, bos="")
    assert chat.default_system == "You are a helpful assistant."
    assert chat.roles["user"].prefix == "<|im_start|>user\n"
    assert chat.prefix_stable
    text = assemble(chat, [{"role": "user", "content": "Hi"}])
    assert text.startswith("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start")


def test_llama3_leaves_the_bos_to_the_tokenizer() -> None:
    chat = chat_of(LLAMA3, bos="<|begin_of_text|>")
    header = "<|start_header_id|>user<|end_header_id|>\n\n"
    assert chat.roles["user"] == Role(header, "<|eot_id|>")
    assert chat.prefix_stable
    assert "<|begin_of_text|>" not in "".join(r.prefix + r.suffix for r in chat.roles.values())


def test_llama2_turns_are_exact_and_its_merged_system_is_marked() -> None:
    chat = chat_of(LLAMA2)
    assert chat.roles["user"] == Role("[INST] ", " [/INST]")
    assert chat.roles["assistant"] == Role("", " </s><s>")
    turns = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": " b"},
        {"role": "user", "content": "c"},
    ]
    assert assemble(chat, turns) == "[INST] a [/INST] b </s><s>[INST] c [/INST]"
    assert not chat.prefix_stable
    assert "tool" not in chat.roles


def test_gemma_has_no_system_role() -> None:
    chat = chat_of(GEMMA, bos="<bos>")
    assert sorted(chat.roles) == ["assistant", "user"]
    assert chat.roles["assistant"] == Role("<start_of_turn>model\n", "<end_of_turn>\n")
    assert chat.prefix_stable


def test_template_that_rewrites_history_is_not_prefix_stable() -> None:
    chat = chat_of(THINKING)
    assert not chat.prefix_stable
    assert chat.roles["assistant"] == Role("<assistant>", "</assistant>")


def test_generation_tag_and_loop_controls_are_understood() -> None:
    chat = chat_of(GENERATION_TAG)
    assert chat.roles["user"] == Role("[user]", "")
    assert chat.prefix_stable


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ messages.append(1) }}",
        "{% for m in messages %}{{ m.update({'content': ''}) }}{% endfor %}",
        "{% set ns = namespace(__class__=1) %}",
        "{{ unknown.attribute.deeper }}",
        "{% broken",
        "no contents at all",
        "{{ raise_exception('never') }}",
        "x" * 300_000,
    ],
)
def test_hostile_or_useless_templates_are_refused(source: str) -> None:
    with pytest.raises(ProbeError):
        chat_of(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x' * 10**10 }}",
        "{{ messages.__class__ }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    ],
)
def test_child_survives_what_the_template_does(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sgc.runtime.engine.text.template_child.WALL_LIMIT_S", 1.0)
    chat = RunningProbe(TemplateSource(source, "", "")).result()
    assert chat.roles == PLAIN.roles
    assert not chat.from_model
    assert "not used" in chat.notes[0]


def test_probe_of_a_folder(tmp_path: Path) -> None:
    running = start_probe(DEFAULT_FOLDER)
    assert running is not None
    chat = running.result()
    assert chat.from_model
    assert chat.roles["user"].prefix == "<|im_start|>user\n"
    assert len(chat.fingerprint) == 64
    assert start_probe(tmp_path) is None


def test_jinja_file_comes_before_the_configuration(tmp_path: Path) -> None:
    config = {
        "chat_template": [{"name": "default", "template": "A"}],
        "bos_token": {"content": "<s>"},
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert read_template(tmp_path) == TemplateSource("A", "<s>", "")
    (tmp_path / "chat_template.jinja").write_text("B")
    assert read_template(tmp_path) == TemplateSource("B", "<s>", "")


def test_plain_format() -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert assemble(PLAIN, turns) == "SYSTEM: Be brief.\nUSER: Hi\nASSISTANT:"
