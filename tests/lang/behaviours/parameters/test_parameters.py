"""Sampling parameters: each reaches the backend, or is an error; none is dropped."""

from __future__ import annotations

import inspect

import pytest
from lang.behaviours.shared import one_gen
from tests_support import run_both

import sgc
from sgc import errors


def test_a_neutral_top_k_is_not_sent(served, server):
    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", max_tokens=2)

    program.run(backend=served()).sync()
    assert server.requests[0]["sampling_params"] == {"max_new_tokens": 2, "temperature": 1.0}


def test_a_stream_asks_with_the_same_parameters(served, server):
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


def test_an_empty_stream_is_an_empty_text(served, within):
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
def test_no_parameter_vanishes(recorded, name, value):
    endpoint = recorded(refuses=frozenset({name}))
    params = {"return_logprob": True} if name == "logprobs" else {name: value}

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", **params)

    for stream in (False, True):
        with pytest.raises(errors.UnsupportedParameter, match=f"cannot honour {name}"):
            program.run(backend=endpoint, stream=stream).sync()
    assert endpoint.asked == []


# Parameter, a value of gen's own, another for the run, the field of `Sampling`, and there: the
# generation's value, the run's, and what it is when neither gives one.
TABLE = [
    ("max_tokens", 7, 9, "max_tokens", 7, 9, 128),
    ("min_tokens", 2, 3, "min_tokens", 2, 3, 0),
    ("stop", "a!", "b!", "stop", ("a!",), ("b!",), ()),
    ("stop", ["a!", "c!"], ["b!"], "stop", ("a!", "c!"), ("b!",), ()),
    ("stop_token_ids", [5, 6], [7], "stop_token_ids", (5, 6), (7,), ()),
    ("stop_regex", "x+y", "z+", "stop_regex", ("x+y",), ("z+",), ()),
    ("temperature", 0.25, 0.5, "temperature", 0.25, 0.5, 1.0),
    ("top_p", 0.25, 0.5, "top_p", 0.25, 0.5, 1.0),
    ("top_k", 4, 8, "top_k", 4, 8, -1),
    ("min_p", 0.25, 0.5, "min_p", 0.25, 0.5, 0.0),
    ("frequency_penalty", 0.25, 0.5, "frequency_penalty", 0.25, 0.5, 0.0),
    ("presence_penalty", 0.25, 0.5, "presence_penalty", 0.25, 0.5, 0.0),
    ("repetition_penalty", 1.25, 1.5, "repetition_penalty", 1.25, 1.5, 1.0),
    ("ignore_eos", True, True, "ignore_eos", True, True, False),
]


IDS = [f"{row[0]}-{i}" for i, row in enumerate(TABLE)]


@pytest.mark.parametrize(("name", "own", "runs", "field", "is_own", "is_runs", "default"), TABLE,
                         ids=IDS)  # fmt: skip
def test_a_parameter_reaches_the_backend(
    recorded, name, own, runs, field, is_own, is_runs, default
):
    endpoint = recorded("r")
    run_name = "max_new_tokens" if name == "max_tokens" else name
    one_gen().run(backend=endpoint).sync()
    one_gen(**{name: own}).run(backend=endpoint).sync()
    one_gen().run(backend=endpoint, **{run_name: runs}).sync()
    one_gen(**{name: own}).run(backend=endpoint, **{run_name: runs}).sync()
    one_gen(**{name: own}).run_batch([{}], backend=endpoint, **{run_name: runs})
    one_gen().run_batch([{}], backend=endpoint, **{run_name: runs})
    found = [getattr(sampling, field) for sampling in endpoint.samplings]
    assert found == [default, is_own, is_runs, is_own, is_own, is_runs]


def test_own_neutral_values_replace_the_runs(recorded):
    """What a generation says counts even where it says the same as the default."""
    endpoint = recorded("r")
    program = one_gen(
        temperature=1.0, top_p=1.0, top_k=-1, min_p=0.0, stop=[], ignore_eos=False, max_tokens=128
    )
    program.run(
        backend=endpoint, temperature=0.0, top_p=0.5, top_k=2, min_p=0.5, stop="!",
        ignore_eos=True, max_new_tokens=3,
    ).sync()  # fmt: skip
    (sampling,) = endpoint.samplings
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (1.0, 1.0, -1)
    assert (sampling.min_p, sampling.stop, sampling.ignore_eos) == (0.0, (), False)
    assert sampling.max_tokens == 128


def test_every_parameter_of_a_run_that_sglang_has_is_taken(recorded):
    """SGLang's `run` has them by keyword; what is None is its default there."""
    defaults = {
        "max_new_tokens": 128, "n": 1, "stop": None, "stop_token_ids": None, "stop_regex": None,
        "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "frequency_penalty": 0.0,
        "presence_penalty": 0.0, "ignore_eos": False, "return_logprob": None,
        "logprob_start_len": None, "top_logprobs_num": None, "return_text_in_logprobs": None,
    }  # fmt: skip
    endpoint = recorded("r")
    program = one_gen()
    assert program.run(backend=endpoint, stream=False, use_thread=True, **defaults)["g"] == "r"
    assert program.run(backend=endpoint, stream=True, use_thread=False, **defaults)["g"] == "r"
    assert program.run_batch([{}], backend=endpoint, **defaults)[0]["g"] == "r"
    assert program(backend=endpoint, **defaults)["g"] == "r"
    plain, *others = (each.sampling for each in endpoint.asked)
    for other in others:
        assert other.max_tokens == plain.max_tokens == 128
        assert (other.stop, other.temperature, other.logprobs) == ((), 1.0, None)


def test_an_unknown_option_of_a_run_is_an_error(recorded):
    with pytest.raises(errors.UsageError, match="tempreature"):
        one_gen().run(backend=recorded(), tempreature=0.5)
    with pytest.raises(errors.UsageError, match="tempreature"):
        one_gen().run_batch([{}], backend=recorded(), tempreature=0.5)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_n_of_a_generation(recorded, n):
    endpoint = recorded(lambda text, sampling: f"{sampling.seed}")
    found = one_gen(n=n).run(backend=endpoint)["g"]
    assert len(endpoint.asked) == n
    texts = [found] if n == 1 else found
    assert isinstance(texts, list)
    assert len(set(texts)) == n


def test_n_of_a_run(recorded):
    endpoint = recorded(lambda text, sampling: f"{sampling.seed}")
    state = one_gen().run(backend=endpoint, n=2)
    assert len(state["g"]) == 2
    assert len(set(state["g"])) == 2
    assert isinstance(one_gen(n=1).run(backend=endpoint, n=2)["g"], str)


REFUSABLE = {
    "min_tokens": 3, "top_k": 4, "min_p": 0.5, "repetition_penalty": 1.5, "stop_token_ids": [3],
    "ignore_eos": True, "frequency_penalty": 0.5, "presence_penalty": 0.5, "stop_regex": "a+",
    "logit_bias": {3: 1.0}, "ebnf": 'root ::= "a"',
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSABLE)
def test_a_parameter_that_a_backend_refuses_is_an_error_at_its_line(recorded, name):
    """SGLang's API backends drop such parameters silently."""
    endpoint = recorded("r", refuses=frozenset({name}))

    @sgc.function
    def program(s):
        s += "x"
        s += sgc.gen("g", **{name: REFUSABLE[name]})  # the line

    line = inspect.getsourcelines(program.func)[1] + 3
    for run in (
        lambda: program.run(backend=endpoint).sync(),
        lambda: program.compile().run(backend=endpoint),
        lambda: program.run_batch([{}], backend=endpoint)[0].sync(),
    ):
        with pytest.raises(errors.UnsupportedParameter, match=f"cannot honour {name}") as caught:
            run()
        assert caught.value.where.startswith(f"test_parameters.py:{line}")
    assert endpoint.asked == []


def test_a_refused_parameter_of_the_run_is_an_error_too(recorded):
    endpoint = recorded("r", refuses=frozenset({"min_p"}))
    with pytest.raises(errors.UnsupportedParameter, match="cannot honour min_p"):
        one_gen().run(backend=endpoint, min_p=0.5).sync()
    assert one_gen().run(backend=endpoint, min_p=0.0)["g"] == "r"  # neutral: nothing to honour


def test_parameters_that_are_arguments_of_the_program(recorded):
    """SGLang's compiler fails on `max_tokens=ARG` in the worker."""
    endpoint = recorded("r!")

    @sgc.function
    def program(s, limit: int, heat: float, mark: str):
        s += "x" + sgc.gen("g", max_tokens=limit, temperature=heat, stop=mark)

    run_both(program, endpoint, limit=5, heat=0.5, mark="!")
    for sampling in endpoint.samplings:
        assert (sampling.max_tokens, sampling.temperature, sampling.stop) == (5, 0.5, ("!",))


def test_parameters_beyond_sglangs(recorded):
    endpoint = recorded("end")
    one_gen(seed=4, repetition_penalty=1.5, logit_bias={7: -1.0}).run(backend=endpoint).sync()
    one_gen(seed=4).run(backend=endpoint).sync()
    one_gen(seed=5).run(backend=endpoint).sync()
    one_gen(ebnf='root ::= "a"').run(backend=endpoint).sync()
    first, same, other, grammar = endpoint.samplings
    assert (first.repetition_penalty, first.logit_bias) == (1.5, ((7, -1.0),))
    assert first.seed == same.seed != other.seed
    assert grammar.ebnf == 'root ::= "a"'
