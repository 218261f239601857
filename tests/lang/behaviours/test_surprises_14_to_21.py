"""The surprises of SGLang's front end (FRONTEND, part c), 14 to 21: kept, or mended, one by one."""

from __future__ import annotations

import base64
import warnings

import pytest
from tests_support import run_both

import sgc
from sgc import errors
from sgc.runtime.executor.backends.scripted import PLAIN_CHAT
from sgc.runtime.executor.interface.backend import RoleFormat

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


def _chat(**fields):
    from dataclasses import replace

    return replace(PLAIN_CHAT, **fields)


# -- 14 ------------------------------------------------------------------------------------


def test_c14_a_programs_own_parameters_win_over_options_of_a_run(recorded):
    """SGLang gives `n=5` of `parallel_sample.run(question=…, n=5)` to its sampling."""
    endpoint = recorded("r")

    @sgc.function
    def parallel_sample(s, question, n):
        s += question
        forks = s.fork(n)
        forks += sgc.gen("answer")
        forks.join()

    for state in (
        parallel_sample.run(question="q", n=5, backend=endpoint),
        parallel_sample("q", n=5, backend=endpoint),
        parallel_sample.run_batch([{"question": "q", "n": 5}], backend=endpoint)[0],
    ):
        assert state["answer"] == ["r"] * 5


# -- 15 ------------------------------------------------------------------------------------


def test_c15_the_system_message_stays_over_generations(recorded):
    """SGLang's Anthropic backend takes it out of the transcript with the first one."""
    endpoint = recorded("r")

    @sgc.function
    def program(s):
        s += sgc.system("S")
        for name in ("a", "b"):
            s += sgc.user("q") + sgc.assistant("so: " + sgc.gen(name))

    state = program.run(backend=endpoint)
    assert state.messages()[0] == {"role": "system", "content": "S"}
    assert [message["content"] for message in state.messages()[1:]] == ["q", "so: r"] * 2
    for text in endpoint.texts:
        assert text.startswith("<|system|>S<|end|>")
        assert text.endswith("<|assistant|>so: ")  # the beginning of a reply is sent


def test_c15_a_neutral_top_k_is_not_sent(served, server):
    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", max_tokens=2)

    program.run(backend=served()).sync()
    assert server.requests[0]["sampling_params"] == {"max_new_tokens": 2, "temperature": 1.0}


# -- 16 ------------------------------------------------------------------------------------


def test_c16_a_stream_asks_with_the_same_parameters(served, server):
    """SGLang's OpenAI stream sends max_tokens twice, by two names."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen(
            "a", max_tokens=5, min_p=0.25, top_k=4, return_logprob=True, stop="!",
        )  # fmt: skip

    endpoint = served()
    plain = program.run(backend=endpoint).text()
    assert program.run(backend=endpoint, stream=True).text() == plain
    once, streamed = server.requests
    assert streamed.pop("stream") is True
    assert streamed == once


def test_c16_an_empty_stream_is_an_empty_text(served, within):
    """SGLang's count of tokens fails on one."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", max_tokens=0)

    state = program.run(backend=served(), stream=True)
    assert within(lambda: state["a"]) == ""
    assert within(lambda: "".join(state.text_iter("a"))) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [("min_p", 0.5), ("top_k", 3), ("logprobs", None), ("stop_regex", "a")],
)
def test_c16_no_parameter_vanishes(recorded, name, value):
    endpoint = recorded(refuses=frozenset({name}))
    params = {"return_logprob": True} if name == "logprobs" else {name: value}

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", **params)

    for stream in (False, True):
        with pytest.raises(errors.UnsupportedParameter, match=name):
            program.run(backend=endpoint, stream=stream).sync()
    assert endpoint.asked == []


# -- 17 ------------------------------------------------------------------------------------


def test_c17_a_batch_runs_the_body_once_a_row(recorded):
    """SGLang runs it once more, with dummies for arguments, before any row."""
    seen: list[str] = []

    @sgc.function
    def program(s, x):
        seen.append(x)
        s += x + sgc.gen("a")

    program.run_batch([(str(i),) for i in range(4)], backend=recorded())
    assert sorted(seen) == ["0", "1", "2", "3"]


def test_c17_what_a_body_raises_for_odd_arguments_ends_no_batch(recorded):
    """In SGLang a KeyError with the dummies ends the batch."""
    prices = {"a": "1", "b": "2"}

    @sgc.function
    def program(s, x):
        s += prices[x] + sgc.gen("g")
        if int(prices[x]) > 1:
            s += "!"

    states = program.run_batch([("a",), ("b",)], backend=recorded("r"))
    assert [state.text() for state in states] == ["1r", "2r!"]


# -- 18 ------------------------------------------------------------------------------------


def test_c18_bind_gives_way_and_keeps_num_api_spec_tokens(recorded):
    """In SGLang bound values win over the call's, and the spec tokens are lost."""

    @sgc.function(num_api_spec_tokens=9)
    def program(s, x, y):
        s += x + y

    bound = program.bind(x="bound ", y="too")
    assert bound.num_api_spec_tokens == 9
    assert bound.run(backend=recorded()).text() == "bound too"
    assert bound.run(y="given", backend=recorded()).text() == "bound given"


def test_c18_a_run_leaves_the_callers_dicts_alone(recorded):
    arguments = {"x": "a", "backend": recorded(), "max_new_tokens": 3}
    rows = [{"x": "a"}]

    @sgc.function
    def program(s, x):
        s += x + sgc.gen("g")

    program.bind(**{"x": "b"}).run(**arguments).sync()
    program.run_batch(rows, backend=arguments["backend"])
    assert sorted(arguments) == ["backend", "max_new_tokens", "x"]
    assert rows == [{"x": "a"}]


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_c18_unnamed_generations_are_under_none(recorded, way):
    @sgc.function
    def program(s):
        s += "a" + sgc.gen()
        s += "b" + sgc.gen()
        s += "c" + sgc.select(choices=["y", "z"])

    endpoint = recorded(lambda text, sampling: text.upper())
    state = {
        "run": lambda: program.run(backend=endpoint),
        "call": lambda: program(backend=endpoint),
        "batch": lambda: program.run_batch([{}], backend=endpoint)[0],
    }[way]()
    assert state.text() == "aAbAABcy"
    assert state.variables() == {}
    assert state.stream_executor.variables == {None: "y"}


# -- 19 ------------------------------------------------------------------------------------


def test_c19_no_tokens_still_give_the_first_places_top_logprobs(served, server):
    """A public program looks at the first token's alternatives this way."""

    @sgc.function
    def program(s):
        s += "one two" + sgc.gen(
            "first", max_tokens=0, return_logprob=True, top_logprobs_num=5,
            return_text_in_logprobs=True,
        )  # fmt: skip

    for stream in (False, True):
        state = program.run(backend=served(), stream=stream)
        meta = state.get_meta_info("first")
        assert state["first"] == ""
        (rows,) = meta["output_top_logprobs"]
        assert len(rows) == 5
        assert all(isinstance(text, str) for _, _, text in rows)
        assert rows == sorted(rows, key=lambda row: -row[0])
        assert meta.get("prompt_length", -1) == -1
    assert server.requests[0]["sampling_params"]["max_new_tokens"] == 0


# -- 20 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_c20_separate_reasoning_keeps_the_text_before_the_generation(recorded, stream, within):
    """SGLang cuts the text back to where the role began."""

    @sgc.function
    def program(s):
        s += sgc.user("q") + sgc.assistant_begin() + "Answer: "
        s += sgc.separate_reasoning(sgc.gen("a"), model_type="qwen3")
        s += "." + sgc.assistant_end()

    reply = "<think>why</think>because"
    state = program.run(backend=recorded(reply, chunk=1), stream=stream)
    assert within(state.text) == "<|user|>q<|end|><|assistant|>Answer: because.<|end|>"
    assert (state["a"], state["a_reasoning_content"]) == ("because", "why")
    assert state.messages()[-1]["content"] == "Answer: because."


def test_c20_separate_reasoning_keeps_texts_around_the_generation_it_is_given(recorded):
    @sgc.function
    def program(s):
        s += sgc.assistant(
            sgc.separate_reasoning("Answer: " + sgc.gen("a") + ".", model_type="qwen3")
        )

    result = run_both(program, recorded("<think>why</think>because"))
    assert result.text() == "<|assistant|>Answer: because.<|end|>"


def test_c20_what_is_streamed_of_a_separated_generation_adds_up_to_its_variable(recorded, within):
    """Readers rely on `"".join(text_iter(x)) == s[x]`; SGLang's streams keep the reasoning."""

    @sgc.function
    def program(s):
        s += "x" + sgc.separate_reasoning(sgc.gen("a"), model_type="qwen3") + "."

    state = program.run(backend=recorded("<think>why</think>because", chunk=2), stream=True)
    assert within(lambda: "".join(state.text_iter("a"))) == state["a"] == "because"
    assert within(lambda: "".join(state.text_iter())) == state.text() == "xbecause."


# -- 21 ------------------------------------------------------------------------------------


def test_c21_f_strings_of_arguments_and_of_generated_values_are_symbolic(recorded):
    """SGLang raises for arguments, and puts a repr of generated ones into the prompt."""

    @sgc.function
    def program(s, x: str, n: int):
        s += f"{x}-{n:03d}: " + sgc.gen("a")
        s += f" [{s['a']}] {s['a']!s:>4}"

    endpoint = recorded("r")
    result = run_both(program, endpoint, x="ex", n=7)
    assert result.text() == "ex-007: r [r]    r"
    compiled = program.compile()
    assert compiled.run("other", 8, backend=endpoint).text() == "other-008: r [r]    r"


def test_a_role_of_a_template_is_what_its_server_gets(recorded):
    chat = _chat(roles={**PLAIN_CHAT.roles, "user": RoleFormat("U:", "\n")})

    @sgc.function
    def program(s):
        s += sgc.user("q") + sgc.gen("a")

    endpoint = recorded(chat=chat)
    program.run(backend=endpoint).sync()
    assert endpoint.texts == ["U:q\n"]


def test_no_warning_where_nothing_is_amiss(recorded):
    @sgc.function
    def program(s):
        s += "t" + sgc.gen("a", n=2)
        forks = s.fork(2)
        forks += sgc.image(base64.b64decode(base64.b64encode(PNG))) + sgc.gen("own")
        forks.join()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program.run(backend=recorded()).sync()
