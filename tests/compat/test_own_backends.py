"""Backends that a program's author wrote for SGLang, asked as SGLang's interpreter asks them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from compat.own import made

from sgc.errors import UsageError


def test_a_program_asks_it(stand_in):
    sgl, own = stand_in, made(stand_in)

    @sgl.function
    def program(s):
        s += "One." + sgl.gen("a", max_tokens=7, stop="\n", temperature=0.5, min_p=0.1)
        s += sgl.select("b", ["yes", "no"])

    state = program.run(backend=own)
    assert state.text() == "One. reply 4no"
    assert (state["a"], state["b"]) == (" reply 4", "no")
    assert own.calls[:2] == [
        ("generate", "One."),
        ("select", ("One. reply 4", ("yes", "no"), 0.0, "sgc.token_length_normalized")),
    ]
    params = own.params[0]
    assert (params.max_new_tokens, params.stop, params.temperature) == (7, "\n", 0.5)
    assert (params.min_p, params.n, params.dtype, params.return_logprob) == (0.1, 1, None, None)
    meta = state.get_meta_info("a")
    assert meta == {"n": 4, "sid": meta["sid"]}
    assert state.get_meta_info("b") == {"scores": [1, 2]}
    assert own.ended.wait(5)


def test_it_is_the_default_one_by_its_own_identity(stand_in):
    sgl, own = stand_in, made(stand_in)
    sgl.set_default_backend(own)
    assert sgl.global_config.default_backend is own

    @sgl.function
    def program(s, x):
        s += x + sgl.gen("a")

    assert program.run(x="hi")["a"] == " reply 2"
    assert program(x="hello")["a"] == " reply 5"
    assert program.compile().run(x="hi!")["a"] == " reply 3"
    sgl.flush_cache()
    assert sgl.get_server_info() is None


class Wrapper:
    def __init__(self, endpoint: Any) -> None:
        self.endpoint = endpoint


def test_what_has_an_endpoint_is_asked_there(stand_in):
    sgl, own = stand_in, made(stand_in)

    @sgl.function
    def program(s):
        s += "x" + sgl.gen("a")

    assert program.run(backend=Wrapper(own))["a"] == " reply 1"
    sgl.set_default_backend(Wrapper(Wrapper(own)))
    assert program.run_batch([{}, {}])[1]["a"] == " reply 1"
    with pytest.raises(UsageError, match=r"an object with SGLang's generate"):
        program.run(backend=Wrapper(3))


def test_any_object_with_the_hooks_does(stand_in):
    from sglang.lang.chat_template import get_chat_template

    class Bare:
        def get_chat_template(self):
            return get_chat_template("chatml")

        def generate(self, s, sampling_params):
            return str(sampling_params.stop), {}

    sgl = stand_in

    @sgl.function
    def program(s):
        s += sgl.user("hi") + sgl.assistant(sgl.gen("a", stop="END"))
        for child in s.fork(2):
            child += sgl.user("more")

    state = program.run(backend=Bare())
    assert state["a"] == "['END', '<|im_end|>']"  # the template's own come after
    assert state.messages()[0] == {"role": "user", "content": "hi"}


def test_the_stream_that_asks(stand_in, tmp_path):
    """What backends read of it."""
    seen: list[Any] = []

    def generate(self, s, sampling_params):
        seen.append(s)
        return "ok", {}

    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\nx")
    sgl, own = stand_in, made(stand_in, generate=generate)

    @sgl.function
    def program(s):
        s += sgl.system("Be brief.")
        s += sgl.user(sgl.image(str(tmp_path / "x.png")) + "What?")
        s += sgl.assistant(sgl.gen("a"))
        s += sgl.user(" And?")
        with s.assistant():
            s += "Well," + sgl.gen("b")

    program.run(backend=own).sync()
    first, second = seen
    assert isinstance(first, sgl.lang.interpreter.StreamExecutor)
    assert (first.backend, first.sid) == (own, second.sid)
    assert [message["role"] for message in first.messages_] == ["system", "user"]
    (text, image) = first.messages_[1]["content"]
    assert text == {"type": "text", "text": "<image>What?"}
    assert image["image_url"]["url"].endswith(first.images_[0][1])
    assert second.messages_[2:] == [
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "And?"},
    ]
    assert (second.cur_role, second.text_[second.cur_role_begin_pos :]) == ("assistant", "Well,")
    assert second.variables == {"a": "ok"}
    assert second.text_.startswith(first.text_)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"dtype": int, "stop": ["END"]}, {"dtype": int, "regex": None, "stop": ["END"]}),
        ({"regex": "[a-z]+"}, {"regex": "[a-z]+", "dtype": None, "stop": []}),
        ({"json_schema": '{"type": "string"}'}, {"json_schema": '{"type": "string"}'}),
        ({"n": 3}, {"n": 3}),
        (
            {"return_logprob": True, "top_logprobs_num": 2, "logprob_start_len": 0},
            {"return_logprob": True, "top_logprobs_num": 2, "logprob_start_len": 0},
        ),
    ],
)
def test_parameters_arrive_as_they_were_given(stand_in, params, expected):
    sgl, own = stand_in, made(stand_in)

    @sgl.function
    def program(s):
        s += "x" + sgl.gen("a", **params)

    found = program.run(backend=own)["a"]
    assert found == ([" reply 1"] * 3 if "n" in params else " reply 1")
    assert {name: getattr(own.params[0], name) for name in expected} == expected


def test_a_backend_may_ask_another_one(stand_in, provider):
    """Wrappers that count, cache or log are what most backends of one's own are."""
    from sglang.lang.backend.base_backend import BaseBackend

    server, inner = provider("gpt-3.5-turbo-instruct", lambda ask: f" reply {len(ask.text)}\nx")

    class Around(BaseBackend):
        def get_chat_template(self):
            return inner.get_chat_template()

        def generate(self, s, sampling_params):
            return inner.generate(s, sampling_params)

        def generate_stream(self, s, sampling_params):
            for piece, meta in inner.generate_stream(s, sampling_params):
                yield piece.upper(), meta

    sgl = stand_in

    @sgl.function
    def program(s):
        s += "abc" + sgl.gen("a", stop="\n", max_tokens=9)

    state = program.run(backend=Around())
    assert state["a"] == " reply 3"
    assert state.get_meta_info("a")["finish_reason"] == {"type": "stop", "matched": "\n"}
    assert server.bodies[0]["stop"] == ["\n"]
    assert program.run(backend=Around(), stream=True).text() == "abc REPLY 3"


def test_a_subclass_that_overrides_a_hook_is_asked_by_it(stand_in, provider):
    _, plain = provider("gpt-3.5-turbo-instruct", lambda ask: f" reply {len(ask.text)}\nx")

    class Shouting(stand_in.OpenAI):
        def generate(self, s, sampling_params):
            text, meta = super().generate(s, sampling_params)
            return text.upper(), meta

    @stand_in.function
    def program(s):
        s += "abc" + stand_in.gen("a", stop="\n", max_tokens=9)

    shouting = Shouting("gpt-3.5-turbo-instruct")
    stand_in.set_default_backend(shouting)
    assert stand_in.global_config.default_backend is shouting
    assert program.run_batch([{}, {}])[1]["a"] == " REPLY 3"
    assert program.run(backend=plain)["a"] == " reply 3"
    assert shouting.token_usage.completion_tokens > 0


def test_a_fresh_program_gives_such_a_backend_to_sgc_itself():
    """Nothing of the stand-in for SGLang has been imported."""
    code = """
import sgc
from sgc.runs.endpoints import as_endpoint
sgc.function(lambda s: None)
class Own:
    def generate(self, s, sampling_params): return "hi", {}
    def get_chat_template(self): return None
print(type(as_endpoint(Own())).__name__)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("OwnEndpoint\n", "")
