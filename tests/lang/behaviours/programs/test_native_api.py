"""SGLang's native HTTP API, as programs use it."""

from __future__ import annotations

import base64
import json

import pytest

import sgc
from sgc import errors


def _program(**params):
    @sgc.function
    def program(s):
        s += "one two three"
        s += sgc.gen("a", **params)

    return program


def test_model_info(served):
    endpoint = served("some/model")
    assert endpoint.model_info["model_path"] == "some/model"
    assert endpoint.get_server_info()["tokenizer_path"] == "some/model"
    assert endpoint.flush_cache() == 0


def test_nobody_there():
    with pytest.raises(errors.EngineUnavailable, match="no server at"):
        sgc.RuntimeEndpoint("http://127.0.0.1:9")


def test_connect_by_address(served, server):
    served("some/model")
    with sgc.connect(f"sglang+{server.url}") as endpoint:
        assert endpoint.get_model_name() == "some/model"


# Parameter of `gen`, its value, and what stands in the body.
PARAMETERS = [
    ("max_tokens", 7, {"max_new_tokens": 7}),
    ("min_tokens", 2, {"min_new_tokens": 2}),
    ("stop", ["x", "y"], {"stop": ["x", "y"]}),
    ("stop_token_ids", [3, 4], {"stop_token_ids": [3, 4]}),
    ("stop_regex", "z+", {"stop_regex": ["z+"]}),
    ("temperature", 0.25, {"temperature": 0.25}),
    ("top_p", 0.5, {"top_p": 0.5}),
    ("top_k", 9, {"top_k": 9}),
    ("min_p", 0.125, {"min_p": 0.125}),
    ("frequency_penalty", 0.5, {"frequency_penalty": 0.5}),
    ("presence_penalty", 0.5, {"presence_penalty": 0.5}),
    ("repetition_penalty", 1.5, {"repetition_penalty": 1.5}),
    ("ignore_eos", True, {"ignore_eos": True}),
    ("regex", "[ab]+", {"regex": "[ab]+"}),
    ("json_schema", '{"type": "boolean"}', {"json_schema": '{"type": "boolean"}'}),
    ("dtype", int, {"regex": r"[-+]?[0-9]+[ \n]*", "stop": [" ", "\n"]}),
    ("dtype", bool, {"regex": "(True|False)"}),
    ("n", 3, {"n": 3}),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("name", "value", "expected"), PARAMETERS, ids=lambda v: str(v)[:20])
def test_each_parameter_in_the_body(served, server, name, value, expected, stream):
    _program(**{name: value}).run(backend=served(), stream=stream).sync()
    (body,) = server.requests
    assert body["text"] == "one two three"
    params = body["sampling_params"]
    assert {key: params[key] for key in expected} == expected
    neutral = {"max_new_tokens": 128, "temperature": 1.0}
    assert {key for key in params if key not in expected} == neutral.keys() - expected.keys()
    if name != "n":
        assert body.get("stream", False) is stream


def test_a_runs_defaults_in_the_body(served, server):
    _program().run(
        backend=served(), max_new_tokens=3, temperature=0.0, stop="x", top_p=0.5,
        return_logprob=True, logprob_start_len=1, top_logprobs_num=2,
        return_text_in_logprobs=True,
    ).sync()  # fmt: skip
    (body,) = server.requests
    assert body["sampling_params"] == {
        "max_new_tokens": 3, "temperature": 0.0, "stop": ["x"], "top_p": 0.5,
    }  # fmt: skip
    assert body["return_logprob"] is True
    assert (body["logprob_start_len"], body["top_logprobs_num"]) == (1, 2)
    assert body["return_text_in_logprobs"] is True


def test_the_reply_is_text_and_meta_info(served):
    state = _program(max_tokens=4, ignore_eos=True).run(backend=served())
    meta = state.get_meta_info("a")
    assert state.text() == "one two three" + state["a"]
    assert meta["id"]
    assert meta["finish_reason"] == {"type": "length", "length": 4}
    assert (meta["prompt_tokens"], meta["completion_tokens"]) == (3, 4)
    assert meta["cached_tokens"] == 1


def test_the_stop_that_matched(served):
    free = _program(ignore_eos=True).run(backend=served())["a"]
    stop = free[10:12]
    state = _program(ignore_eos=True, stop=stop).run(backend=served())
    assert state["a"] == free[: free.index(stop)]
    assert state.get_meta_info("a")["finish_reason"]["matched"] == stop
    kept = _program(ignore_eos=True, stop=stop, keep_stop=True).run(backend=served())
    assert kept["a"] == state["a"] + stop


def test_several_texts_are_one_request_and_a_list(served, server):
    state = _program(n=3, max_tokens=5).run(backend=served())
    assert len(set(state["a"])) == 3
    assert len(server.requests) == 1
    assert len(state.get_meta_info("a")) == 3


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_a_stream_is_cumulative_events(served, server, chunk):
    server.chunk_tokens = chunk
    endpoint = served()
    expected = _program(max_tokens=20, ignore_eos=True).run(backend=endpoint)["a"]
    state = _program(max_tokens=20, ignore_eos=True).run(backend=endpoint, stream=True)
    deltas = list(state.text_iter("a"))
    assert "".join(deltas) == expected == state["a"]
    assert len(deltas) == -(-20 // chunk)
    assert state.get_meta_info("a")["completion_tokens"] == 20


def test_log_probabilities_are_rows(served):
    params = {"return_logprob": True, "logprob_start_len": 1, "return_text_in_logprobs": True}
    state = _program(max_tokens=2, ignore_eos=True, **params).run(backend=served())
    meta = state.get_meta_info("a")
    assert [row[2] for row in meta["input_token_logprobs"]] == [" two", " three"]
    assert meta["input_token_logprobs"][0][0] is None
    assert "".join(row[2] for row in meta["output_token_logprobs"]) == state["a"]


def test_log_probabilities_without_texts(served):
    state = _program(max_tokens=2, return_logprob=True).run(backend=served())
    for logprob, token, text in state.get_meta_info("a")["output_token_logprobs"]:
        assert isinstance(logprob, float)
        assert isinstance(token, int)
        assert text is None


@pytest.mark.parametrize(
    ("dtype", "read"), [(int, int), (float, float), (bool, {"True": 1, "False": 0}.__getitem__)]
)
def test_a_dtype_gives_text_of_that_kind(served, dtype, read):
    for seed in range(5):
        state = _program(dtype=dtype).run(backend=served(), seed=seed)
        read(state["a"])


def test_gen_string_gives_a_quoted_text(served):
    @sgc.function
    def program(s):
        s += "one" + sgc.gen_string("a") + sgc.gen_int("b")

    state = program.run(backend=served())
    assert state["a"].startswith('"')
    assert state["a"].endswith('"')
    int(state["b"])


def test_a_json_schema_gives_json(served):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    state = _program(json_schema=schema).run(backend=served())
    assert isinstance(json.loads(state["a"])["n"], int)


def test_select_is_three_steps_at_most(served, server):
    @sgc.function
    def program(s):
        s += "one two three"
        s += sgc.select("a", [" x", " y z"], choices_method=sgc.unconditional_likelihood_normalized)

    program.run(backend=served()).sync()
    prefill, scored, alone = server.requests
    assert prefill["text"] == "one two three"
    assert scored["text"] == ["one two three x", "one two three y z"]
    assert scored["logprob_start_len"] == 1
    assert scored["return_logprob"] is True
    assert [len(ids) for ids in alone["input_ids"]] == [2, 3]  # from the prompt's last token on
    assert alone["return_logprob"] is True
    assert "text" not in alone
    for body in server.requests:
        assert body["sampling_params"]["max_new_tokens"] == 0


def test_select_near_the_beginning_starts_at_no_negative_place(served, server):
    @sgc.function
    def program(s):
        s += "one" + sgc.select("a", [" x", " y z"])

    program.run(backend=served()).sync()
    assert server.requests[1]["logprob_start_len"] == 0


def test_images_are_base64(served, server):
    data = b"\x89PNG\r\n\x1a\n123"

    @sgc.function
    def program(s):
        s += sgc.image(data) + "what?" + sgc.gen("a") + sgc.select("b", ["x", "y"])

    state = program.run(backend=served())
    state.sync()
    encoded = base64.b64encode(data).decode()
    assert [body["image_data"] for body in server.requests] == [encoded] * 3
    assert state.text() == "<image>what?" + state["a"] + state["b"]


def test_greedy_is_a_temperature_below_a_bound(served, server):
    _program(temperature=0.0).run(backend=served()).sync()
    assert server.requests[0]["sampling_params"]["temperature"] < 1e-5


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_of_the_server_is_told_in_its_words(served, server, stream):
    server.fail_on = (1,)
    with pytest.raises(errors.BackendError, match="request 1 was told to fail") as caught:
        _program().run(backend=served(), stream=stream).text()
    assert caught.value.where.startswith("test_native_api.py:")


def test_a_request_that_the_server_refuses(served):
    with pytest.raises(errors.BackendError, match="answered 400"):
        _program(regex="(?<=never)a").run(backend=served()).text()


def test_a_batch_at_a_server(served, server):
    @sgc.function
    def program(s, x):
        s += x + sgc.gen("a", max_tokens=3)

    states = program.run_batch([(f"row {i}",) for i in range(50)], backend=served())
    assert len({state["a"] for state in states}) > 40
    assert sorted(body["text"] for body in server.requests) == sorted(f"row {i}" for i in range(50))
    again = [program.run(f"row {i}", backend=served())["a"] for i in range(3)]
    assert again == [state["a"] for state in states[:3]]


# -- seen when SGLang's own front end ran the public programs ----------------------


def test_speculation_at_a_server_changes_nothing(served):
    """SGLang's own endpoint raises with `num_api_spec_tokens`."""

    def body(s):
        s += "Name:" + sgc.gen("a", stop="\n", max_tokens=4)
        s += "\nJob:" + sgc.gen("b", stop="\n", max_tokens=4)

    endpoint = served()
    plain = sgc.function(body).run(backend=endpoint)
    speculative = sgc.function(num_api_spec_tokens=20)(body).run(backend=endpoint)
    assert speculative.text() == plain.text()
    assert (speculative["a"], speculative["b"]) == (plain["a"], plain["b"])


@pytest.mark.parametrize("prompt", ["no no", "a a", "x", ". ."])
def test_select_after_a_prompt_that_repeats_its_last_token(served, prompt):
    """SGLang's default method raises where the prompt ends with its second-to-last token."""

    @sgc.function
    def program(s):
        s += prompt + sgc.select("a", [" x", " y z"])

    state = program.run(backend=served())
    assert state["a"] in (" x", " y z")
    for rows in state.get_meta_info("a")["input_token_logprobs"]:
        assert all(logprob is not None for logprob, _, _ in rows[1:])


def test_interpreted_and_compiled_programs_ask_a_server_for_the_same(served, server):
    """SGLang's `.compile()` matched its interpreter in 41 of 92 cases."""

    @sgc.function
    def inner(s, x):
        s += x + sgc.gen("i", max_tokens=2)

    @sgc.function
    def program(s, x, limit: int):
        s += sgc.system("S")
        s.user(f"{x}?")
        with s.assistant(), s.var_scope("scope"):
            s += "so " + sgc.gen("a", max_tokens=limit)
        forks = s.fork(2)
        forks += lambda i: f"{i}:" + sgc.gen("own", max_tokens=2)
        forks.join()
        s += inner(s["scope"])["i"] + s["own"][1]
        return s["a"]

    endpoint = served("Qwen/Qwen2.5-7B-Instruct")
    found = []
    for run in (
        lambda: program.run("x", 3, backend=endpoint),
        lambda: program.compile().run("x", 3, backend=endpoint),
        lambda: program("x", 3, backend=endpoint),
        lambda: program.run_batch([("x", 3)], backend=endpoint)[0],
    ):
        server.reset()
        state = run()
        values = (state.text(), state["scope"], state["own"], state.ret_value)
        found.append((values, sorted(map(json.dumps, server.requests))))
    assert all(each == found[0] for each in found)
