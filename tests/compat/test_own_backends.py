"""Backends that a program's author wrote for SGLang, asked as SGLang's interpreter asks them."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import ModuleType
from typing import Any

import pytest

from sgc.errors import BackendError, ProgramError, UnsupportedParameter, UsageError


def made(sgl: ModuleType, **more: Any) -> Any:
    """A backend that writes down its calls, with a few hooks more."""
    from sglang.lang.backend.base_backend import BaseBackend
    from sglang.lang.choices import ChoicesDecision

    class Own(BaseBackend):
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[tuple[str, Any]] = []
            self.params: list[Any] = []
            self.ended = threading.Event()

        def note(self, hook: str, s: Any) -> None:
            self.calls.append((hook, getattr(s, "text_", s)))

        def generate(self, s, sampling_params):
            self.note("generate", s)
            self.params.append(sampling_params)
            texts = [f" reply {len(s.text_)}"] * sampling_params.n
            return texts if sampling_params.n > 1 else texts[0], {"n": len(s.text_), "sid": s.sid}

        def generate_stream(self, s, sampling_params):
            self.note("generate_stream", s)
            for index, piece in enumerate(("a", "b", "", "c")):
                yield piece, {"index": index}

        def select(self, s, choices, temperature, choices_method=None):
            self.note("select", (s.text_, tuple(choices), temperature, repr(choices_method)))
            return ChoicesDecision(choices[-1], {"scores": [1, 2]})

        def commit_lazy_operations(self, s):
            self.note("commit", s)

        def cache_prefix(self, prefix_str):
            self.note("cache_prefix", prefix_str)

        def end_program(self, s):
            self.note("end_program", s)
            self.ended.set()

    for name, hook in more.items():
        setattr(Own, name, hook)
    return Own()


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


def test_streams_come_in_its_pieces(stand_in):
    sgl, own = stand_in, made(stand_in)

    @sgl.function
    def program(s):
        s += "x" + sgl.gen("a")

    state = program.run(backend=own, stream=True)
    assert list(state.text_iter("a")) == ["a", "b", "c"]
    assert state.text() == "xabc"
    assert state.get_meta_info("a") == {"index": 3}
    assert [hook for hook, _ in own.calls][:1] == ["generate_stream"]


def test_forks_commit_first_and_have_streams_of_their_own(stand_in):
    sgl, own = stand_in, made(stand_in)

    @sgl.function
    def program(s):
        s += "trunk"
        forks = s.fork(2)
        forks += lambda i: f" {i}" + sgl.gen("a")
        forks.join()
        s += "|" + sgl.gen("b")

    state = program.run(backend=own)
    assert state["a"] == [" reply 7", " reply 7"]
    state.sync()
    assert own.calls[0] == ("commit", "trunk")
    assert sorted(text for hook, text in own.calls if hook == "generate") == [
        "trunk 0", "trunk 1", "trunk|",
    ]  # fmt: skip


def test_a_batch_is_asked_row_by_row(stand_in):
    """At temperature 0 too: whether two equal requests are one is not ours to say."""
    sgl, own = stand_in, made(stand_in)
    body_runs = []

    @sgl.function
    def program(s, x):
        body_runs.append(x)
        s += "x" * 70 + sgl.gen("a", temperature=0)

    states = program.run_batch([{"x": 1}] * 5, backend=own, num_threads=3)
    assert [state["a"] for state in states] == [" reply 70"] * 5
    assert sum(hook == "generate" for hook, _ in own.calls) == 5


def test_a_batchs_common_beginning_is_kept(stand_in):
    sgl, own = stand_in, made(stand_in)

    @sgl.function
    def program(s, x: str):
        s += "y" * 70 + x + sgl.gen("a")

    program.run_batch([{"x": "1"}, {"x": "2"}], backend=own)
    assert own.calls[0] == ("cache_prefix", "y" * 70)
    own.calls.clear()
    program.cache(own)
    assert own.calls == [("cache_prefix", "y" * 70)]
    own.calls.clear()
    sgl.global_config.enable_precache_with_tracing = False
    try:
        program.run_batch([("1",), ("2",)], backend=own)
    finally:
        sgl.global_config.enable_precache_with_tracing = True
    assert "cache_prefix" not in [hook for hook, _ in own.calls]


def test_calls_go_on_side_by_side(stand_in):
    """Each waits for all: on fewer threads it would not end."""
    barrier = threading.Barrier(40)

    def generate(self, s, sampling_params):
        barrier.wait(10)
        return "ok", {}

    sgl, own = stand_in, made(stand_in, generate=generate)

    @sgl.function
    def program(s):
        forks = s.fork(40)
        forks += sgl.gen("a")
        forks.join()

    assert program.run(backend=own)["a"] == ["ok"] * 40


def test_its_errors_are_the_runs(stand_in):
    def generate(self, s, sampling_params):
        raise KeyError("nothing there")

    sgl, own = stand_in, made(stand_in, generate=generate)

    @sgl.function
    def program(s):
        s += "x" + sgl.gen("a")

    state = program.run(backend=own)
    with pytest.raises(ProgramError, match="KeyError: 'nothing there'") as caught:
        state["a"]
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.where.startswith("test_own_backends.py:")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ("text", "must give a pair of a text and its meta info"),
        ((3, {}), "must give a text, and meta info"),
        ((["a", "b"], {}), "must give a text, and meta info"),
    ],
)
def test_what_is_no_reply_is_told(stand_in, found, words):
    sgl, own = stand_in, made(stand_in, generate=lambda self, s, sampling_params: found)

    @sgl.function
    def program(s):
        s += "x" + sgl.gen("a")

    with pytest.raises(BackendError, match=words):
        program.run(backend=own).text()


def test_what_sglang_has_no_parameter_for_is_refused(stand_in):
    sgl, own = stand_in, made(stand_in)

    @sgl.function
    def program(s):
        s += "x" + sgl.gen("a", repetition_penalty=1.5)

    with pytest.raises(UnsupportedParameter, match="cannot honour repetition_penalty"):
        program.run(backend=own).text()


def test_speculation_where_it_says_that_it_completes_text(stand_in):
    def generate(self, s, sampling_params):
        self.params.append(sampling_params)
        return " Ada\nAge: 36\nJob: baker\n", {"completion_tokens": 12}

    sgl, own = stand_in, made(stand_in, generate=generate, is_chat_model=False)

    @sgl.function(num_api_spec_tokens=64)
    def program(s):
        s += "Name:" + sgl.gen("a", stop="\n") + "\nAge:" + sgl.gen("b", stop="\n")

    state = program.run(backend=own)
    assert (state["a"], state["b"]) == (" Ada", " 36")
    assert [(params.max_new_tokens, params.stop) for params in own.params] == [(128, [])]


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
class Own:
    def generate(self, s, sampling_params): return "hi", {}
    def get_chat_template(self): return None
print(type(as_endpoint(Own())).__name__)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("OwnEndpoint\n", "")
