"""SGLang's classes of providers: made without a key, they ask as sgc's own endpoints do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from providers.provider_server import ProviderServer

import sgc
from sgc.cli import main
from sgc.compat.sglang import install
from sgc.compat.sglang.runner import run_script
from sgc.errors import SgcError, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import get_default_backend, set_default_backend

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


@pytest.fixture
def keyless(monkeypatch):
    """No key, organization or address of the surroundings."""
    for name in os.environ:
        if name.startswith(("OPENAI_", "ANTHROPIC_", "SGC_TOKEN")):
            monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture
def sgl(keyless) -> Iterator[ModuleType]:
    """The stand-in, gone again afterwards; what was set as default is closed."""
    finders, path = list(sys.meta_path), list(sys.path)
    yield install()
    default = get_default_backend()
    if default is not None:
        default.shutdown()
    set_default_backend(None)
    for name in [n for n in sys.modules if n.partition(".")[0] == "sglang"]:
        del sys.modules[name]
    sys.meta_path[:], sys.path[:] = finders, path


def chat(sgl: ModuleType):
    @sgl.function
    def program(s, question):
        s += sgl.system("Be brief.")
        s += sgl.user(question)
        s += sgl.assistant(sgl.gen("answer", max_tokens=9))
        s += sgl.user("And now?")
        s += sgl.assistant(sgl.gen("again", max_tokens=9))

    return program


MODELS = {"OpenAI": "gpt-4o", "Anthropic": "claude-haiku-4-5"}


@pytest.mark.sweep
@pytest.mark.parametrize("name", MODELS)
def test_the_key_is_asked_for_by_the_first_run(sgl, keyless, server, name):
    made = getattr(sgl, name)(MODELS[name])
    assert (made.model_name, made.get_model_name()) == (MODELS[name], MODELS[name])
    with pytest.raises(UsageError, match=f"set {name.upper()}_API_KEY"):
        chat(sgl).run("hi", backend=made)
    made.shutdown()  # nothing was opened
    keyless.setenv(f"{name.upper()}_API_KEY", KEY)
    keyless.setenv(f"{name.upper()}_BASE_URL", server.url + ("/v1" if name == "OpenAI" else ""))
    with made:
        assert chat(sgl).run("hi", backend=made)["again"].startswith(" reply")
    assert server.asks[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("name", MODELS)
def test_every_request_has_the_system_message_and_one_limit(sgl, server, name):
    """Rows 15 and 16 of docs/sglang.md."""
    given = {"api_key": KEY, "base_url": server.url + ("/v1" if name == "OpenAI" else "")}
    with getattr(sgl, name)(MODELS[name], timeout=20, **given) as made:
        state = chat(sgl).run("hi", backend=made)
        assert state.messages()[0] == {"role": "system", "content": "Be brief."}
        assert made.token_usage.prompt_tokens > 0
        assert made.backend.settings.request_timeout_s == 20
        assert made.backend.flush_cache is not None
    assert [ask.text.count("Be brief.") for ask in server.asks] == [1, 1]
    for body in server.bodies:
        assert len({"max_tokens", "max_completion_tokens"} & body.keys()) == 1


@pytest.mark.parametrize("is_chat", [True, False])
def test_another_server_is_asked_as_one_and_gets_no_key_of_openais(sgl, keyless, server, is_chat):
    keyless.setenv("OPENAI_API_KEY", KEY)
    with sgl.OpenAI("served", is_chat, base_url=f"{server.url}/v1") as made:
        assert made.is_chat_model is is_chat
        made.chat_template = sgl.lang.chat_template.get_chat_template("chatml")
        assert chat(sgl).run("hi", backend=made).text().startswith("<|im_start|>system\nBe brief.")
    assert server.asks[0].kind == ("chat" if is_chat else "text")
    assert server.asks[0].body["stop"] == ["<|im_end|>"]
    assert "hi" in server.asks[0].text
    assert all(ask.headers["authorization"] == "Bearer no-key" for ask in server.asks)


def test_texts_look_as_sglangs(sgl, server):
    mine = sgl.lang.chat_template.ChatTemplate("mine", None, {
        role: (f"<{role}>", f"</{role}>") for role in ("system", "user", "assistant")
    })  # fmt: skip
    given = {"api_key": KEY, "base_url": f"{server.url}/v1"}
    with sgl.OpenAI("gpt-4o", chat_template=mine, **given) as made:
        text = chat(sgl).run("hi", backend=made).text()
    assert text.startswith("<system>Be brief.</system><user>hi</user><assistant>")
    with sgl.Anthropic("claude-haiku-4-5", api_key=KEY, base_url=server.url) as made:
        text = chat(sgl).run("hi", backend=made).text()
    assert text.startswith("Be brief.\n\nHuman: hi\n\nAssistant:")
    assert server.asks[-1].text.startswith("Be brief.hi")  # roles, and none of this text
    assert sgl.OpenAI("gpt-4o").chat_template.name == "default"
    assert (
        sgl.OpenAI("gpt-4o").is_chat_model,
        sgl.OpenAI("gpt-3.5-turbo-instruct").is_chat_model,
    ) == (True, False)


@pytest.mark.parametrize(
    ("name", "args", "given", "message"),
    [
        ("OpenAI", [], {"is_azure": True}, "is_azure=True is not available"),
        ("OpenAI", [None, None, False, KEY], {}, "by name, e.g. api_key"),
        ("OpenAI", [], {"organization": "o"}, r"organization is not .*\n.*set OPENAI_ORG_ID"),
        ("OpenAI", [], {"max_retries": 9}, "up to 8 times"),
        (
            "OpenAI",
            [],
            {"default_headers": {}},
            r"default_headers .*\n.*api_key, base_url, timeout",
        ),
        ("OpenAI", [], {"base_url": "host/v1"}, "base_url must be a URL"),
        ("OpenAI", [], {"chat_template": "chatml"}, "chat_template must be a chat template"),
        ("Anthropic", [], {"timeout": 0}, "timeout must be a number of seconds above 0"),
        ("Anthropic", [], {"auth_token": KEY}, "auth_token is not available"),
    ],
)
def test_what_is_not_taken_is_refused_when_it_is_made(sgl, name, args, given, message):
    with pytest.raises(UsageError, match=message) as caught:
        getattr(sgl, name)("gpt-4o", *args, **given)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("name", ["LiteLLM", "VertexAI", "Crusoe"])
def test_others_can_be_named_but_not_made(sgl, name):
    provider = getattr(sgl, name)
    assert not isinstance(object(), provider)
    with pytest.raises(SgcError, match=f"sglang.{name} is not available .*\n.*base_url=…"):
        provider("gpt-4", is_chat_model=True)


def test_both_import_paths_are_one_class_and_every_endpoint_is_a_backend(sgl):
    from sglang.lang.backend.anthropic import Anthropic
    from sglang.lang.backend.base_backend import BaseBackend
    from sglang.lang.backend.openai import OpenAI

    assert (OpenAI, Anthropic) == (sgl.OpenAI, sgl.Anthropic)
    assert isinstance(OpenAI("gpt-4o"), BaseBackend)
    assert isinstance(OpenAI("gpt-4o"), Endpoint)
    assert KEY not in repr(vars(OpenAI("gpt-4o", api_key=KEY)))


MODULE = """
import sglang as sgl

sgl.set_default_backend(sgl.OpenAI("gpt-4o"))
judge = sgl.Anthropic("claude-haiku-4-5")

@sgl.function
def ask(s, question):
    s += sgl.user(question) + sgl.assistant(sgl.gen("answer", max_tokens=9))

if __name__ == "__main__":
    print(ask.run("one").text(), ask.run("two", backend=judge)["answer"])
"""


def test_a_file_that_makes_them_at_module_level_compiles_without_keys(sgl, keyless, tmp_path):
    keyless.chdir(tmp_path)
    Path("written.py").write_text(MODULE)
    with pytest.raises(SystemExit) as ended:
        main(["compile", "written.py", "--as-sglang", "--full-graph", "-o", "ask.sgir"])
    assert ended.value.code == 0
    assert sgc.load("ask.sgir").name == "ask"


def test_a_script_of_them_runs(sgl, keyless, server, tmp_path, capsys):
    for name, path in (("OPENAI", "/v1"), ("ANTHROPIC", "")):
        keyless.setenv(f"{name}_API_KEY", KEY)
        keyless.setenv(f"{name}_BASE_URL", server.url + path)
    (tmp_path / "script.py").write_text(MODULE)
    keyless.setattr(sys, "argv", list(sys.argv))
    run_script(str(tmp_path / "script.py"))
    assert [ask.kind for ask in server.asks] == ["chat", "messages"]
    assert capsys.readouterr().out == "USER:one\nASSISTANT: reply 3\n  reply 3\n"


def test_the_command_lines_engine_may_be_a_provider_within_its_limits(sgl, keyless, tmp_path):
    keyless.setenv("OPENAI_API_KEY", KEY)
    (tmp_path / "none.py").write_text("import sglang\nmade = sglang.global_config.default_backend\n"
                                      "assert made.token_usage.prompt_tokens == 0\n")  # fmt: skip
    keyless.setattr(sys, "argv", list(sys.argv))
    with pytest.raises(UsageError, match="--max-cost needs"):
        run_script(str(tmp_path / "none.py"), engine="openai:ft:gpt-4o:x", limits={"max_cost": 1})
    run_script(str(tmp_path / "none.py"), engine="openai:gpt-4o", limits={"max_cost": 1})
    limits = get_default_backend().backend.limits
    assert limits.budget.cap == 1
