"""Sampling parameters (FRONTEND 1.2): each reaches the backend, or is an error; none is dropped."""

from __future__ import annotations

import inspect
import json

import pytest
from tests_support import run_both

import sgc
from sgc import errors
from sgc.runtime.executor.interface.backend import LogprobsAsked
from sgc.runtime.executor.patterns.checked_constraints import MAX_TRIES, ConstraintFailed
from sgc.runtime.executor.run import options

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


def _program(**params):
    @sgc.function
    def program(s):
        s += "x" + sgc.gen("g", **params)

    return program


@pytest.mark.parametrize(("name", "own", "runs", "field", "is_own", "is_runs", "default"), TABLE,
                         ids=IDS)  # fmt: skip
def test_a_parameter_reaches_the_backend(
    recorded, name, own, runs, field, is_own, is_runs, default
):
    endpoint = recorded("r")
    run_name = "max_new_tokens" if name == "max_tokens" else name
    _program().run(backend=endpoint).sync()
    _program(**{name: own}).run(backend=endpoint).sync()
    _program().run(backend=endpoint, **{run_name: runs}).sync()
    _program(**{name: own}).run(backend=endpoint, **{run_name: runs}).sync()
    _program(**{name: own}).run_batch([{}], backend=endpoint, **{run_name: runs})
    _program().run_batch([{}], backend=endpoint, **{run_name: runs})
    found = [getattr(sampling, field) for sampling in endpoint.samplings]
    assert found == [default, is_own, is_runs, is_own, is_own, is_runs]


def test_own_neutral_values_replace_the_runs(recorded):
    """What a generation says counts even where it says the same as the default."""
    endpoint = recorded("r")
    program = _program(
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
    program = _program()
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
        _program().run(backend=recorded(), tempreature=0.5)
    with pytest.raises(errors.UsageError, match="tempreature"):
        _program().run_batch([{}], backend=recorded(), tempreature=0.5)


# -- n -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
def test_n_of_a_generation(recorded, n):
    endpoint = recorded(lambda text, sampling: f"{sampling.seed}")
    found = _program(n=n).run(backend=endpoint)["g"]
    assert len(endpoint.asked) == n
    texts = [found] if n == 1 else found
    assert isinstance(texts, list)
    assert len(set(texts)) == n


def test_n_of_a_run(recorded):
    endpoint = recorded(lambda text, sampling: f"{sampling.seed}")
    state = _program().run(backend=endpoint, n=2)
    assert len(state["g"]) == 2
    assert len(set(state["g"])) == 2
    assert isinstance(_program(n=1).run(backend=endpoint, n=2)["g"], str)


# -- log-probabilities ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "asked"),
    [
        ({}, None),
        ({"return_logprob": False, "top_logprobs_num": 3}, None),
        ({"return_logprob": True}, LogprobsAsked(None, 0, False)),
        (
            {"return_logprob": True, "logprob_start_len": 0, "top_logprobs_num": 3},
            LogprobsAsked(0, 3, False),
        ),
        (
            {"return_logprob": True, "return_text_in_logprobs": True},
            LogprobsAsked(None, 0, True),
        ),
    ],
)
def test_logprob_parameters_reach_the_backend(recorded, params, asked):
    endpoint = recorded("r")
    _program(**params).run(backend=endpoint).sync()
    _program().run(backend=endpoint, **params).sync()
    assert [sampling.logprobs for sampling in endpoint.samplings] == [asked, asked]


def test_a_generations_own_logprob_parameters_replace_the_runs(recorded):
    endpoint = recorded("r")
    given = {"return_logprob": True, "top_logprobs_num": 5}
    _program(return_logprob=False).run(backend=endpoint, **given).sync()
    _program(top_logprobs_num=2).run(backend=endpoint, **given).sync()
    assert endpoint.samplings[0].logprobs is None
    assert endpoint.samplings[1].logprobs == LogprobsAsked(None, 2, False)


# -- constraints ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "regex", "stops"),
    [
        (int, r"[-+]?[0-9]+[ \n]*", (" ", "\n")),
        (float, r"[-+]?[0-9]*\.?[0-9]+[ \n]*", (" ", "\n")),
        (bool, r"(True|False)", ()),
        (str, r"\"[\w\d\s]*\"", ()),
        ("int", r"[-+]?[0-9]+[ \n]*", (" ", "\n")),
    ],
)
@pytest.mark.parametrize("own_stop", [None, "!", ["!", "?"], ("!",)])
def test_dtype_lowers_to_a_regex_and_stops(recorded, dtype, regex, stops, own_stop):
    endpoint = recorded("1")
    params = {} if own_stop is None else {"stop": own_stop}
    _program(dtype=dtype, **params).run(backend=endpoint).sync()
    (sampling,) = endpoint.samplings
    given = () if own_stop is None else (own_stop,) if isinstance(own_stop, str) else own_stop
    assert sampling.regex == regex
    assert sampling.stop == (*given, *stops)


def test_regexes_of_dtypes_have_sglangs_names():
    assert options.REGEX_INT == r"[-+]?[0-9]+[ \n]*"
    assert options.REGEX_FLOAT == r"[-+]?[0-9]*\.?[0-9]+[ \n]*"
    assert options.REGEX_BOOL == r"(True|False)"
    assert options.REGEX_STR == r"\"[\w\d\s]*\""


def test_regex_and_json_schema_reach_the_backend(recorded):
    endpoint = recorded("r")
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    _program(regex="a+").run(backend=endpoint).sync()
    _program(json_schema=json.dumps(schema)).run(backend=endpoint).sync()
    _program(json_schema=schema).run(backend=endpoint).sync()
    first, second, third = endpoint.samplings
    assert first.regex == "a+"
    assert json.loads(second.json_schema) == schema
    assert json.loads(third.json_schema) == schema


def test_a_regex_is_checked_and_asked_again_where_a_backend_cannot_decode_under_it(recorded):
    """SGLang warns that API models ignore the pattern, and keeps what does not match."""
    replies = iter(["no", "nor", "42", "never"])
    endpoint = recorded(lambda text, sampling: next(replies), refuses=frozenset({"regex"}))
    state = _program(regex="[0-9]+").run(backend=endpoint)
    assert state["g"] == "42"
    assert len(endpoint.asked) == 3
    assert {sampling.regex for sampling in endpoint.samplings} == {None}
    assert len({sampling.seed for sampling in endpoint.samplings}) == 3


def test_a_greedy_reply_that_does_not_match_is_drawn_anew(recorded):
    replies = iter(["no", "7"])
    endpoint = recorded(lambda text, sampling: next(replies), refuses=frozenset({"regex"}))
    assert _program(dtype=int, temperature=0.0).run(backend=endpoint)["g"] == "7"
    first, second = endpoint.samplings
    assert first.is_greedy
    assert not second.is_greedy


def test_a_regex_that_no_reply_meets_is_an_error_at_its_line(recorded):
    endpoint = recorded("no", refuses=frozenset({"regex"}))
    with pytest.raises(ConstraintFailed, match="met the pattern; the last was 'no'") as caught:
        _program(regex="[0-9]+").run(backend=endpoint).sync()
    assert len(endpoint.asked) == MAX_TRIES
    assert caught.value.where.startswith("test_parameters.py:")


def test_a_json_schema_is_checked_and_asked_again_where_it_must_be(recorded):
    """SGLang drops it without a word on API models."""
    replies = iter(["{", '{"a": 1}', '{"a": "b"}'])
    endpoint = recorded(lambda text, sampling: next(replies), refuses=frozenset({"json_schema"}))
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert _program(json_schema=schema).run(backend=endpoint)["g"] == '{"a": "b"}'


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
        _program().run(backend=endpoint, min_p=0.5).sync()
    assert _program().run(backend=endpoint, min_p=0.0)["g"] == "r"  # neutral: nothing to honour


def test_logprobs_that_a_backend_refuses_are_an_error(recorded):
    endpoint = recorded("r", refuses=frozenset({"logprobs"}))
    with pytest.raises(errors.UnsupportedParameter, match="cannot honour logprobs"):
        _program(return_logprob=True).run(backend=endpoint).sync()


def test_parameters_that_are_arguments_of_the_program(recorded):
    """SGLang's compiler fails on `max_tokens=ARG` in the worker."""
    endpoint = recorded("r!")

    @sgc.function
    def program(s, limit: int, heat: float, mark: str):
        s += "x" + sgc.gen("g", max_tokens=limit, temperature=heat, stop=mark)

    run_both(program, endpoint, limit=5, heat=0.5, mark="!")
    for sampling in endpoint.samplings:
        assert (sampling.max_tokens, sampling.temperature, sampling.stop) == (5, 0.5, ("!",))


# -- what SGLang's language does not expose --------------------------------------------------


def test_parameters_beyond_sglangs(recorded):
    endpoint = recorded("end")
    _program(seed=4, repetition_penalty=1.5, logit_bias={7: -1.0}).run(backend=endpoint).sync()
    _program(seed=4).run(backend=endpoint).sync()
    _program(seed=5).run(backend=endpoint).sync()
    _program(ebnf='root ::= "a"').run(backend=endpoint).sync()
    first, same, other, grammar = endpoint.samplings
    assert (first.repetition_penalty, first.logit_bias) == (1.5, ((7, -1.0),))
    assert first.seed == same.seed != other.seed
    assert grammar.ebnf == 'root ::= "a"'


def test_keep_stop_keeps_the_stop_string(recorded):
    assert _program(stop="!", keep_stop=True).run(backend=recorded("a!b"))["g"] == "a!"
    assert _program(stop="!").run(backend=recorded("a!b"))["g"] == "a"
