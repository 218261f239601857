"""The words of the language (FRONTEND 1.1): signatures, and what each appends."""

from __future__ import annotations

import base64
import inspect
import sys
import types

import pytest
from tests_support import run_both

import sgc
from sgc import errors
from sgc.lang import words
from sgc.lang.group import ProgramStateGroup
from sgc.lang.state import ProgramState
from sgc.programs.function import Function

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
JPEG = b"\xff\xd8\xff" + b"pixels"

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


def test_set_default_backend_is_where_runs_without_one_go(recorded):
    endpoint = recorded("here")

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g")

    sgc.set_default_backend(endpoint)
    try:
        assert program.run()["g"] == "here"
        assert program.run_batch([{}])[0]["g"] == "here"
    finally:
        sgc.set_default_backend(None)


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


# -- function ------------------------------------------------------------------------------


def test_function_bare_and_called(recorded):
    @sgc.function
    def bare(s):
        s += "bare"

    @sgc.function(num_api_spec_tokens=4)
    def called(s):
        s += "called"

    assert bare.run(backend=recorded()).text() == "bare"
    assert called.run(backend=recorded()).text() == "called"
    assert (bare.num_api_spec_tokens, called.num_api_spec_tokens) == (None, 4)


def test_function_without_a_stream_is_refused():
    """SGLang asserts that the first parameter is called `s`; here any name will do."""
    with pytest.raises(errors.UsageError, match="first parameter must be one"):

        @sgc.function
        def program():
            pass


def test_function_whose_stream_has_another_name(recorded):
    @sgc.function
    def program(state, x):
        state += x

    assert run_both(program, recorded(), x="t").text() == "t"


# -- gen, gen_int, gen_string, select ----------------------------------------------------


def test_gen_appends_and_names_its_text(recorded):
    @sgc.function
    def program(s):
        s += "a" + sgc.gen("g") + "b"

    result = run_both(program, recorded("G"))
    assert (result["g"], result.text()) == ("G", "aGb")


def test_gen_with_choices_is_a_select(recorded):
    """All other parameters are left out of account, as in SGLang."""
    endpoint = recorded(prefer=lambda p, c: 1)

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g", 9, stop="!", top_p=0.5, choices=["a", "b"])

    state = program.run(backend=endpoint)
    assert (state["g"], state.text()) == ("b", "xb")
    assert endpoint.asked == []
    assert endpoint.backend.scored == [("x", ("a", "b"), False)]
    assert isinstance(sgc.gen(choices=["a"]), words.Select)


def test_gen_choices_take_the_default_method_and_no_temperature():
    expr = sgc.gen("g", choices=["a"])
    assert (expr.method, dict(expr.params)) == ("token_length_normalized", {})


def test_gen_with_no_choices_is_a_generation():
    """Only what is truthy makes a select, as in SGLang."""
    assert isinstance(sgc.gen(choices=[]), words.Gen)
    assert isinstance(sgc.gen(choices=None), words.Gen)


def test_gen_int_is_a_gen_of_dtype_int():
    assert sgc.gen_int("n", 3, stop="!") == sgc.gen("n", 3, stop="!", dtype=int)


def test_gen_string_is_a_gen_of_dtype_str():
    assert sgc.gen_string("n", 3, stop="!") == sgc.gen("n", 3, stop="!", dtype=str)


def test_gen_regex_is_checked_at_once(recorded):
    """SGLang compiles it when `gen` is called; here it is checked when it is appended."""

    @sgc.function
    def program(s):
        s += sgc.gen("g", regex="(")

    with pytest.raises(errors.UsageError, match="regex is no valid pattern"):
        program.run(backend=recorded())


def test_select_appends_the_choice_taken(recorded):
    @sgc.function
    def program(s):
        s += "x:" + sgc.select("pick", ["one", "two"]) + "."

    result = run_both(program, recorded(prefer=lambda p, c: 1))
    assert (result["pick"], result.text()) == ("two", "x:two.")


def test_select_positional_order():
    expr = sgc.select("n", ["a", "b"], 0.5, sgc.greedy_token_selection)
    assert (expr.name, expr.choices) == ("n", ("a", "b"))
    assert (expr.method, dict(expr.params)) == ("greedy_token_selection", {"temperature": 0.5})


# -- roles ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["system", "user", "assistant"])
def test_role_puts_the_templates_marks_around(recorded, name):
    @sgc.function
    def program(s):
        s += getattr(sgc, name)("text")

    result = run_both(program, recorded())
    assert result.text() == f"<|{name}|>text<|end|>"
    assert result.messages() == [{"role": name, "content": "text"}]


@pytest.mark.parametrize("name", ["system", "user", "assistant"])
def test_role_without_content_is_an_empty_message(recorded, name):
    @sgc.function
    def program(s):
        s += getattr(sgc, name)()

    result = run_both(program, recorded())
    assert result.text() == f"<|{name}|><|end|>"
    assert result.messages() == [{"role": name, "content": ""}]


@pytest.mark.parametrize("name", ["system", "user", "assistant"])
def test_begin_and_end_of_a_role(recorded, name):
    @sgc.function
    def program(s):
        s += getattr(sgc, f"{name}_begin")()
        s += "a"
        s += "b" + getattr(sgc, f"{name}_end")()

    result = run_both(program, recorded())
    assert result.text() == f"<|{name}|>ab<|end|>"
    assert result.messages() == [{"role": name, "content": "ab"}]


# -- separate_reasoning --------------------------------------------------------------------


def test_separate_reasoning_splits_variable_and_text(recorded):
    @sgc.function
    def program(s):
        s += sgc.user("q")
        s += sgc.assistant(sgc.separate_reasoning(sgc.gen("a"), model_type="qwen3"))
        return s["a"], s["a_reasoning_content"]

    result = run_both(program, recorded("<think>why</think>\n\nbecause"))
    assert tuple(result.ret_value) == ("because", "why")
    assert result["a_reasoning_content"] == "why"
    assert result.text() == "<|user|>q<|end|><|assistant|>because<|end|>"
    assert result.messages()[-1] == {"role": "assistant", "content": "because"}


def test_separate_reasoning_of_a_reply_without_reasoning(recorded):
    @sgc.function
    def program(s):
        s += "x" + sgc.separate_reasoning(sgc.gen("a"), "qwen3")

    result = run_both(program, recorded("plain"))
    assert (result["a"], result["a_reasoning_content"]) == ("plain", "")


def test_separate_reasoning_of_deepseek_may_begin_unopened(recorded):
    @sgc.function
    def program(s):
        s += "x" + sgc.separate_reasoning(sgc.gen("a"), "deepseek-r1")

    result = run_both(program, recorded("why</think>because"))
    assert (result["a"], result["a_reasoning_content"]) == ("because", "why")


def test_separate_reasoning_needs_a_model_type_it_knows(recorded):
    @sgc.function
    def program(s):
        s += sgc.separate_reasoning(sgc.gen("a"))

    with pytest.raises(errors.UsageError, match="no model_type None") as caught:
        program.run(backend=recorded())
    assert caught.value.where.startswith("test_primitives.py:")


# -- image and video -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["path", "bytes", "data_url", "pathlib"])
def test_image_in_each_form(recorded, tmp_path, kind):
    (tmp_path / "i.png").write_bytes(PNG)
    value = {
        "path": str(tmp_path / "i.png"),
        "pathlib": tmp_path / "i.png",
        "bytes": PNG,
        "data_url": "data:image/png;base64," + base64.b64encode(PNG).decode(),
    }[kind]
    endpoint = recorded()

    @sgc.function
    def program(s):
        s += sgc.user(sgc.image(value) + "what?")
        s += sgc.assistant(sgc.gen("a"))

    state = program.run(backend=endpoint)
    assert state.text() == "<|user|><image>what?<|end|><|assistant|>reply<|end|>"
    media = [segment.media for segment in endpoint.asked[0].prompt if hasattr(segment, "media")]
    assert [(each.data, each.mime) for each in media] == [(PNG, "image/png")]


def test_image_by_url_is_refused_with_the_line(recorded):
    """SGLang fetches it; programs here never do on their own."""

    @sgc.function
    def program(s):
        s += sgc.image("https://example.com/a.png")

    with pytest.raises(errors.SgcError, match="not fetched by URL") as caught:
        program.run(backend=recorded())
    assert caught.value.where.startswith("test_primitives.py:")


def test_image_as_an_argument_of_the_program(recorded):
    endpoint = recorded()

    @sgc.function
    def program(s, picture):
        s += sgc.image(picture) + sgc.gen("a")

    assert program(PNG, backend=endpoint).text() == "<image>reply"
    assert program(JPEG, backend=endpoint).text() == "<image>reply"
    assert [each.prompt[0].media.mime for each in endpoint.asked] == ["image/png", "image/jpeg"]


def test_image_goes_to_a_server_as_base64(served, server):
    @sgc.function
    def program(s):
        s += sgc.image(PNG) + "what?" + sgc.gen("a")

    program.run(backend=served()).sync()
    (body,) = server.requests
    assert body["text"] == "<image>what?"
    assert body["image_data"] in (base64.b64encode(PNG).decode(), [base64.b64encode(PNG).decode()])


def test_several_images_of_a_program(served, server):
    """SGLang's front end asserts that there is exactly one."""

    @sgc.function
    def program(s):
        s += sgc.image(PNG) + "and" + sgc.image(JPEG) + sgc.gen("a")

    program.run(backend=served()).sync()
    assert server.requests[0]["image_data"] == [
        base64.b64encode(data).decode() for data in (PNG, JPEG)
    ]


def test_messages_with_images_are_in_openais_form(recorded):
    @sgc.function
    def program(s):
        s += sgc.user(sgc.image(PNG) + "what?")

    (message,) = run_both(program, recorded()).messages()
    text, image = message["content"]
    assert text["type"] == "text"
    assert "what?" in text["text"]
    url = "data:image/jpeg;base64," + base64.b64encode(PNG).decode()
    assert image == {"type": "image_url", "image_url": {"url": url}}


def test_image_on_a_model_that_takes_none_names_the_line(recorded):
    @sgc.function
    def program(s):
        s += sgc.image(PNG)

    with pytest.raises(errors.UnsupportedParameter, match="does not take images") as caught:
        program.run(backend=recorded(images=False)).sync()
    assert caught.value.where.startswith("test_primitives.py:")


class _Capture:
    """Ten frames of one grey each."""

    def __init__(self, path):
        self.at = 0

    def get(self, prop):
        return 10

    def read(self):
        import numpy as np

        self.at += 1
        return self.at <= 10, np.full((4, 4, 3), 20 * self.at, dtype="uint8")

    def release(self):
        pass


def test_video_is_frames_behind_one_image_token(recorded, monkeypatch, tmp_path):
    pytest.importorskip("PIL")
    pytest.importorskip("numpy")
    fake = types.ModuleType("cv2")
    fake.VideoCapture, fake.CAP_PROP_FRAME_COUNT, fake.COLOR_BGR2RGB = _Capture, 7, 4
    fake.cvtColor = lambda frame, code: frame
    monkeypatch.setitem(sys.modules, "cv2", fake)
    endpoint = recorded()

    @sgc.function
    def program(s):
        s += sgc.video(str(tmp_path / "v.mp4"), 3) + "what?" + sgc.gen("a")

    assert program.run(backend=endpoint).text() == "<image>what?reply"
    media = endpoint.asked[0].prompt[0].media
    assert media.n_frames == 3
    starts = (b"\xff\xd8\xff", b"\x89PNG")  # either coding of a frame
    assert sum(map(media.data.count, starts)) == 3


def test_video_without_opencv_says_what_to_install(recorded, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)

    @sgc.function
    def program(s):
        s += sgc.video("v.mp4", 3)

    with pytest.raises(errors.SgcError, match="needs OpenCV") as caught:
        program.run(backend=recorded())
    assert caught.value.where.startswith("test_primitives.py:")


# -- endpoints -----------------------------------------------------------------------------


def test_flush_cache_and_get_server_info_of_the_given_backend(served):
    endpoint = served("some/model")
    assert sgc.flush_cache(endpoint) == 0
    assert sgc.get_server_info(endpoint)["tokenizer_path"] == "some/model"


def test_flush_cache_and_get_server_info_of_the_default_backend(served):
    sgc.set_default_backend(served("some/model"))
    try:
        assert sgc.flush_cache() == 0
        assert sgc.get_server_info()["tokenizer_path"] == "some/model"
    finally:
        sgc.set_default_backend(None)


def test_attributes_of_an_endpoint_that_programs_read(served):
    endpoint = served("some/model")
    assert endpoint.model_info["model_path"] == "some/model"
    assert endpoint.get_model_name() == "some/model"
    assert endpoint.endpoint.get_model_name() == "some/model"
    assert endpoint.get_server_info()["tokenizer_path"] == "some/model"
    assert endpoint.get_chat_template() == endpoint.chat_template
