"""Log-probabilities: what is asked for, and what comes back."""

from __future__ import annotations

import pytest
from lang.behaviours.shared import one_gen

import sgc
from sgc.runtime.executor.interface.backend import LogprobsAsked


def test_no_tokens_still_give_the_first_places_top_logprobs(served, server):
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
    one_gen(**params).run(backend=endpoint).sync()
    one_gen().run(backend=endpoint, **params).sync()
    assert [sampling.logprobs for sampling in endpoint.samplings] == [asked, asked]


def test_a_generations_own_logprob_parameters_replace_the_runs(recorded):
    endpoint = recorded("r")
    given = {"return_logprob": True, "top_logprobs_num": 5}
    one_gen(return_logprob=False).run(backend=endpoint, **given).sync()
    one_gen(top_logprobs_num=2).run(backend=endpoint, **given).sync()
    assert endpoint.samplings[0].logprobs is None
    assert endpoint.samplings[1].logprobs == LogprobsAsked(None, 2, False)
