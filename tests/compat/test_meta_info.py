"""What programs read of `get_meta_info`: SGLang's shapes, whatever they run on."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from sglang_server import ScriptedServer

import sgc
from sgc.lang.choices import ChoicesDecision, ChoicesSamplingMethod
from sgc.runs.endpoints import RuntimeEndpoint

CHOICES = [" blue", " red wine", " no"]
LOGPROBS = {"return_logprob": True, "logprob_start_len": 1, "return_text_in_logprobs": True}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture(params=["server", "engine"])
def endpoint(request: pytest.FixtureRequest, server: ScriptedServer) -> Any:
    if request.param == "engine":
        return request.getfixturevalue("fake_engine")
    server.reset()
    return RuntimeEndpoint(server.url)


class Mean(ChoicesSamplingMethod):
    """A user's method, as it is written for SGLang's rows; then SGLang's own on the same rows."""

    def __init__(self, then: Any) -> None:
        self.then, self.means = then, []

    def __call__(self, **given: Any) -> ChoicesDecision:
        rows = given["input_token_logprobs"]
        self.means = [sum(row[0] for row in each[1:]) / len(each[1:]) for each in rows]
        return self.then(**given)


def program_of(method: Any = None) -> Any:
    @sgc.function
    def program(s):
        s += "The sky is" + sgc.select("a", CHOICES, choices_method=method)

    return program


def replies_of(url: str, body: Any) -> Any:
    request = urllib.request.Request(
        url + "/generate", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def test_a_selects_rows_begin_with_the_token_before_the_choice(endpoint):
    meta = program_of().run(backend=endpoint).get_meta_info("a")
    for rows, mean in zip(
        meta["input_token_logprobs"], meta["normalized_prompt_logprobs"], strict=True
    ):
        assert rows[0][0] is None
        assert "The sky is".count(rows[0][2]) == 1
        assert sum(row[0] for row in rows[1:]) / len(rows[1:]) == pytest.approx(mean)
        assert all(isinstance(token, int) and isinstance(text, str) for _, token, text in rows)


def test_servers_that_give_the_prompts_last_token_a_number(server):
    """Older ones, and `sgc serve --http`: the row is left out of the score, and still told."""

    @sgc.function
    def program(s):  # the window begins a token early, whose text the prompt ends with too
        s += "no no" + sgc.select("a", [" x", " y z"])

    server.reset()
    server.pads_first_logprob = False
    try:
        meta = program.run(backend=RuntimeEndpoint(server.url)).get_meta_info("a")
    finally:
        server.pads_first_logprob = True
    for rows, mean in zip(
        meta["input_token_logprobs"], meta["normalized_prompt_logprobs"], strict=True
    ):
        assert (rows[0][0], rows[0][2]) == (None, "no")
        assert sum(row[0] for row in rows[1:]) / len(rows[1:]) == pytest.approx(mean)


def test_a_selects_rows_are_those_that_the_server_told(server):
    """SGLang's front end hands them on as they are."""
    server.reset()
    meta = program_of().run(backend=RuntimeEndpoint(server.url)).get_meta_info("a")
    told = [reply["meta_info"] for reply in replies_of(server.url, server.requests[1])]
    for name in ("input_token_logprobs", "output_token_logprobs"):
        assert meta[name] == [each[name] for each in told]
    assert all(meta["output_token_logprobs"])


@pytest.mark.parametrize("then", [sgc.token_length_normalized, sgc.greedy_token_selection])
def test_a_method_of_ones_own_reads_the_same_rows(endpoint, then):
    """And may hand them to one of SGLang's methods, which decides as it does by itself."""
    method = Mean(then)
    state = program_of(method).run(backend=endpoint)
    wanted = program_of(then).run(backend=endpoint)
    meta, expected = state.get_meta_info("a"), wanted.get_meta_info("a")
    assert method.means == pytest.approx(meta["normalized_prompt_logprobs"])
    assert (state["a"], meta) == (wanted["a"], expected)


def test_the_matched_rows_without_the_prompt():
    rows = [[[None, 7, "x"], [-1.0, 8, "a"]], [[None, 7, "x"], [-2.0, 9, "b"]]]
    alone = [[[None, 7, "x"], [-3.0, 8, "a"]], [[None, 7, "x"], [-9.0, 9, "b"]]]
    decided = sgc.unconditional_likelihood_normalized(
        choices=["a", "b"],
        normalized_prompt_logprobs=[-1.0, -2.0],
        input_token_logprobs=rows,
        output_token_logprobs=[[], []],
        unconditional_token_logprobs=alone,
    )
    assert decided.decision == "b"
    assert decided.meta_info["normalized_unconditional_prompt_logprobs"] == [2.0, 7.0]
    assert decided.meta_info["unconditional_token_logprobs"] == alone


def test_a_generations_prompt_rows_begin_without_a_log_probability(endpoint):
    @sgc.function
    def program(s):
        s += "one two three" + sgc.gen("a", max_tokens=3, ignore_eos=True, **LOGPROBS)

    @sgc.function
    def tops(s):
        s += "one two three" + sgc.gen("a", max_tokens=3, top_logprobs_num=2, **LOGPROBS)

    meta = program.run(backend=endpoint, temperature=0).get_meta_info("a")
    first, *rest = meta["input_token_logprobs"]
    assert first[0] is None
    assert all(logprob < 0 for logprob, _, _ in rest)
    assert "one two three".endswith("".join(row[2] for row in [first, *rest]))
    assert len(meta["output_token_logprobs"]) == 3
    assert meta["finish_reason"] == {"type": "length", "length": 3}
    first, *rest = tops.run(backend=endpoint).get_meta_info("a")["input_top_logprobs"]
    assert first is None
    assert {len(rows) for rows in rest} == {2}
