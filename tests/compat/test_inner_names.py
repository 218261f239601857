"""Inner names of SGLang that programs import: its parameters, expressions and helpers."""

from __future__ import annotations

import base64
import sys
import types
from dataclasses import fields
from typing import Any

import pytest

FIELDS = """max_new_tokens min_new_tokens n stop stop_token_ids stop_regex temperature top_p top_k
min_p frequency_penalty presence_penalty ignore_eos return_logprob logprob_start_len
top_logprobs_num return_text_in_logprobs json_schema dtype regex"""


@pytest.fixture
def params(stand_in) -> Any:
    from sglang.lang.ir import SglSamplingParams

    return SglSamplingParams(9, 1, 2, ["\n"], temperature=0.5, top_k=4, min_p=0.1)


def test_sampling_parameters_are_sglangs(params):
    assert [field.name for field in fields(params)] == FIELDS.split()
    params.dtype, params.regex, params.json_schema = int, "a", "{}"
    cloned = params.clone()
    assert (cloned.dtype, cloned.regex, cloned.json_schema) == (None, None, "{}")
    assert (cloned.max_new_tokens, cloned.stop) == (9, ["\n"])


COMMON = {"temperature": 0.5, "top_p": 1.0}
PENALTIES = {"frequency_penalty": 0.0, "presence_penalty": 0.0}
KWARGS = {
    "openai": {
        "max_tokens": 9, "max_completion_tokens": 9, "n": 2, "stop": ["\n"], **COMMON, **PENALTIES,
    },
    "litellm": {"max_tokens": 9, "stop": ["\n"], **COMMON, **PENALTIES},
    "anthropic": {"max_tokens": 9, "stop_sequences": ["\n"], "top_k": 4, **COMMON},
    "vertexai": {
        "candidate_count": 1, "max_output_tokens": 9, "stop_sequences": ["\n"], "top_k": 4,
        **COMMON,
    },
    "srt": {
        "max_new_tokens": 9, "min_new_tokens": 1, "n": 2, "stop": ["\n"], "stop_token_ids": (),
        "stop_regex": (), "top_k": 4, "min_p": 0.1, "ignore_eos": False, "regex": None,
        "json_schema": None, **COMMON, **PENALTIES,
    },
}  # fmt: skip


@pytest.mark.parametrize("api", KWARGS)
def test_each_apis_parameters(params, api):
    assert getattr(params, f"to_{api}_kwargs")() == KWARGS[api]
    params.regex = "a"
    if api == "srt":
        assert params.to_srt_kwargs()["regex"] == "a"
        return
    with pytest.warns(UserWarning, match="Regular expression is not supported"):
        getattr(params, f"to_{api}_kwargs")()


def test_without_stops_and_with_one(params):
    params.stop, params.top_k = (), -1
    assert params.to_openai_kwargs()["stop"] is None
    assert params.to_vertexai_kwargs()["top_k"] is None
    params.stop = "END"
    assert params.to_anthropic_kwargs()["stop_sequences"] == ["END"]


def test_expressions_are_made_and_known_by_sglangs_classes(stand_in, scripted):
    from sglang.lang import ir

    sgl = stand_in
    made = ir.SglExprList(
        [ir.SglConstantText("Q"), ir.SglGen("a", max_new_tokens=3, stop="."), "!", sgl.gen("b")]
    )
    assert isinstance(made, ir.SglExprList)
    assert isinstance(made, ir.SglExpr)
    assert isinstance(sgl.gen("x"), ir.SglGen)
    assert not isinstance(sgl.select("x", ["a"]), ir.SglGen)
    assert isinstance(ir.SglSelect("x", ["a", "b"]), ir.SglSelect)

    @sgl.function
    def program(s):
        s += made

    asked = []
    state = program.run(backend=scripted(lambda p, sampling: asked.append(sampling) or " r"))
    assert state.text() == "Q r! r"
    assert (asked[0].max_tokens, asked[0].stop) == (3, (".",))


def test_methods_of_choices_by_their_classes(stand_in, scripted):
    from sglang.lang import choices

    sgl = stand_in
    assert isinstance(choices.token_length_normalized, choices.TokenLengthNormalized)

    class Contrary(choices.GreedyTokenSelection):
        def __call__(self, **given):
            return choices.ChoicesDecision(given["choices"][-1], {"contrary": True})

    @sgl.function
    def program(s, method):
        s += "x" + sgl.select("a", ["b", "c"], choices_method=method)

    assert program.run(choices.GreedyTokenSelection(), backend=scripted())["a"] == "b"
    state = program.run(Contrary(), backend=scripted())
    assert (state["a"], state.get_meta_info("a")) == ("c", {"contrary": True})


def test_programs_are_run_by_the_interpreters_functions(stand_in, scripted, params):
    from sglang.lang.interpreter import run_program, run_program_batch
    from sglang.lang.tracer import extract_prefix_by_tracing

    sgl, asked = stand_in, []
    endpoint = scripted(lambda p, sampling: asked.append(sampling) or "r")

    @sgl.function
    def program(s, x: str):
        s += "begin " + x + sgl.gen("a")

    params.n, params.min_new_tokens = 1, 0
    assert run_program(program, endpoint, ("1",), {}, params, False, sync=True)["a"] == "r"
    assert (asked[0].max_tokens, asked[0].temperature, asked[0].stop) == (9, 0.5, ("\n",))
    states = run_program_batch(program, endpoint, [{"x": "1"}, {"x": "2"}], params, 2, False)
    assert [state.text() for state in states] == ["begin 1r", "begin 2r"]
    assert extract_prefix_by_tracing(program, endpoint) == "begin "


# -- videos ------------------------------------------------------------------------------------


def picked(total: int, wanted: int) -> list[int]:
    """SGLang's places, by numpy."""
    import numpy as np

    return [int(i) for i in np.linspace(0, total - 1, wanted, dtype=int)]


@pytest.fixture
def frames(monkeypatch) -> Any:
    """`frames(total, n, unreadable, told)`: which frames of a video are taken."""
    pytest.importorskip("PIL")
    np = pytest.importorskip("numpy")
    from sgc.runtime.executor.interface import media

    monkeypatch.setattr(media, "_png", lambda pixels: bytes([int(pixels[0, 0, 0])]))

    def make(total: int, n: int, unreadable: tuple[int, ...] = (), told: int = 0) -> list[int]:
        class Capture:
            at = -1

            def __init__(self, path: Any) -> None:
                pass

            def get(self, prop: Any) -> int:
                return told or total

            def read(self) -> Any:
                self.at += 1
                is_read = self.at < total and self.at not in unreadable
                return is_read, np.full((1, 1, 3), self.at, dtype="uint8")

            def release(self) -> None:
                pass

        fake: Any = types.ModuleType("cv2")
        fake.VideoCapture, fake.CAP_PROP_FRAME_COUNT, fake.COLOR_BGR2RGB = Capture, 7, 4
        fake.cvtColor = lambda frame, code: frame
        monkeypatch.setitem(sys.modules, "cv2", fake)
        return list(media.load_video("v.mp4", n).data)

    return make


def test_frames_are_picked_as_sglang_picks_them(frames):
    """Their places are cut off, not rounded."""
    assert frames(10, 4) == [0, 3, 6, 9]
    assert frames(12, 4) == [0, 3, 7, 11]
    for total in (1, 2, 7, 10, 24, 100, 239):
        for n in (1, 2, 3, 5, 8, 16):
            assert frames(total, n) == picked(total, n), (total, n)


def test_frames_that_cannot_be_read_do_not_count(frames):
    assert frames(10, 4, unreadable=(1,)) == [0, 4, 7, 7]
    assert frames(6, 4, told=10) == [0, 3, 3, 3]


def test_a_video_in_base64(stand_in, frames):
    from sglang.utils import encode_video_base64, trim_overlap

    frames(10, 1)
    assert encode_video_base64("v.mp4", 3) == "video:" + base64.b64encode(bytes([0, 4, 9])).decode()
    assert trim_overlap("abcd", "cdef") == "ef"
