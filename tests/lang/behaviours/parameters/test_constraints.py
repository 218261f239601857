"""Types, patterns and schemas of generations, whether a backend decodes under them or not."""

from __future__ import annotations

import json

import pytest
from lang.behaviours.shared import one_gen

from sgc.runtime.executor.patterns.checked_constraints import MAX_TRIES, ConstraintFailed
from sgc.runtime.executor.run import options


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
    one_gen(dtype=dtype, **params).run(backend=endpoint).sync()
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
    one_gen(regex="a+").run(backend=endpoint).sync()
    one_gen(json_schema=json.dumps(schema)).run(backend=endpoint).sync()
    one_gen(json_schema=schema).run(backend=endpoint).sync()
    first, second, third = endpoint.samplings
    assert first.regex == "a+"
    assert json.loads(second.json_schema) == schema
    assert json.loads(third.json_schema) == schema


def test_a_regex_is_checked_and_asked_again_where_a_backend_cannot_decode_under_it(recorded):
    """SGLang warns that API models ignore the pattern, and keeps what does not match."""
    replies = iter(["no", "nor", "42", "never"])
    endpoint = recorded(lambda text, sampling: next(replies), refuses=frozenset({"regex"}))
    state = one_gen(regex="[0-9]+").run(backend=endpoint)
    assert state["g"] == "42"
    assert len(endpoint.asked) == 3
    assert {sampling.regex for sampling in endpoint.samplings} == {None}
    assert len({sampling.seed for sampling in endpoint.samplings}) == 3


def test_a_greedy_reply_that_does_not_match_is_drawn_anew(recorded):
    replies = iter(["no", "7"])
    endpoint = recorded(lambda text, sampling: next(replies), refuses=frozenset({"regex"}))
    assert one_gen(dtype=int, temperature=0.0).run(backend=endpoint)["g"] == "7"
    first, second = endpoint.samplings
    assert first.is_greedy
    assert not second.is_greedy


def test_a_regex_that_no_reply_meets_is_an_error_at_its_line(recorded):
    endpoint = recorded("no", refuses=frozenset({"regex"}))
    with pytest.raises(ConstraintFailed, match="met the pattern; the last was 'no'") as caught:
        one_gen(regex="[0-9]+").run(backend=endpoint).sync()
    assert len(endpoint.asked) == MAX_TRIES
    assert caught.value.where.startswith("shared.py:")


def test_a_json_schema_is_checked_and_asked_again_where_it_must_be(recorded):
    """SGLang drops it without a word on API models."""
    replies = iter(["{", '{"a": 1}', '{"a": "b"}'])
    endpoint = recorded(lambda text, sampling: next(replies), refuses=frozenset({"json_schema"}))
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert one_gen(json_schema=schema).run(backend=endpoint)["g"] == '{"a": "b"}'
