"""Ways to take a choice, and what is scored for one."""

from __future__ import annotations

import inspect

import pytest
from tests_support import run_both

import sgc
from sgc import errors
from sgc.lang.choices import ChoicesDecision, ChoicesSamplingMethod
from sgc.runtime.executor.backends.sglang.wire import choice_rows
from sgc.runtime.executor.interface.backend import ChoiceScore, Scored, Usage

METHODS = [
    sgc.token_length_normalized,
    sgc.greedy_token_selection,
    sgc.unconditional_likelihood_normalized,
]


def _rows(*logprobs):
    return [[logprob, index, f"t{index}"] for index, logprob in enumerate(logprobs)]


def _decide(method, rows, alone=None):
    means = [sum(row[0] for row in each) / len(each) for each in rows]
    return method(
        choices=[f"c{i}" for i in range(len(rows))],
        normalized_prompt_logprobs=means,
        input_token_logprobs=rows,
        output_token_logprobs=[[] for _ in rows],
        unconditional_token_logprobs=alone,
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_called_as_sglang_calls_it(method):
    parameters = inspect.signature(type(method).__call__).parameters
    assert list(parameters) == [
        *("self", "choices", "normalized_prompt_logprobs", "input_token_logprobs"),
        *("output_token_logprobs", "unconditional_token_logprobs"),
    ]
    keywords = [p for name, p in parameters.items() if name != "self"]
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in keywords)
    assert isinstance(method, ChoicesSamplingMethod)


def test_which_methods_require_unconditional_logprobs():
    assert [method.requires_unconditional_logprobs for method in METHODS] == [False, False, True]


def test_token_length_normalized_takes_the_best_mean():
    decision = _decide(sgc.token_length_normalized, [_rows(-1.0, -1.0, -1.0), _rows(-1.5)])
    assert isinstance(decision, ChoicesDecision)
    assert decision.decision == "c0"
    assert decision.meta_info["normalized_prompt_logprobs"] == [-1.0, -1.5]


def test_token_length_normalized_prefers_long_options_that_predict_themselves():
    """The bias that SGLang's own document tells of; `joint` has it not."""
    rows = [_rows(-1.0), _rows(-3.0, -0.1, -0.1, -0.1)]
    assert _decide(sgc.token_length_normalized, rows).decision == "c1"
    assert _decide(sgc.joint, rows).decision == "c0"


def test_token_length_normalized_counts_logprobs_of_zero():
    """SGLang leaves those equal to 0.0 out of its mean, as they are falsy."""
    rows = [_rows(0.0, 0.0, -3.0), _rows(-1.5)]
    decision = _decide(sgc.token_length_normalized, rows)
    assert decision.decision == "c0"
    assert decision.meta_info["normalized_prompt_logprobs"] == [-1.0, -1.5]


@pytest.mark.parametrize("method", METHODS)
def test_logprobs_that_are_all_zero_divide_by_nothing(method):
    """SGLang raises ZeroDivisionError."""
    rows = [_rows(0.0, 0.0), _rows(0.0)]
    assert _decide(method, rows, [_rows(0.0, 0.0), _rows(0.0)]).decision == "c0"


def test_greedy_token_selection_goes_token_by_token():
    rows = [_rows(-1.0, -9.0), _rows(-2.0, -0.1), _rows(-1.0, -3.0)]
    decision = _decide(sgc.greedy_token_selection, rows)
    assert decision.decision == "c2"
    assert decision.meta_info["greedy_logprob_matrix"] == [[-1, -9], [-2, -0.1], [-1, -3]]


def test_greedy_token_selection_extends_short_options_with_their_mean():
    rows = [_rows(-1.0, -2.0), _rows(-1.0, -2.0, -1.4), _rows(-1.0, -2.0, -1.6)]
    decision = _decide(sgc.greedy_token_selection, rows)
    assert decision.meta_info["greedy_logprob_matrix"][0] == [-1.0, -2.0, -1.5]
    assert decision.decision == "c1"


def test_unconditional_likelihood_normalized_takes_what_the_prompt_adds():
    rows = [_rows(-1.0, -1.0), _rows(-2.0, -2.0)]
    alone = [[[None, 0, "a"], [-1.0, 1, "b"]], [[None, 0, "a"], [-9.0, 1, "b"]]]
    decision = _decide(sgc.unconditional_likelihood_normalized, rows, alone)
    assert decision.decision == "c1"
    # The first token alone has no log-probability, which counts as 0.
    assert decision.meta_info["normalized_unconditional_prompt_logprobs"] == [-0.5, 2.5]
    assert decision.meta_info["unconditional_token_logprobs"][1][1][0] == -9.0


def test_unconditional_likelihood_normalized_needs_them():
    with pytest.raises(errors.UsageError, match="needs unconditional_token_logprobs"):
        _decide(sgc.unconditional_likelihood_normalized, [_rows(-1.0)])


# -- in programs ---------------------------------------------------------------------------


def _select(method):
    @sgc.function
    def program(s):
        s += "x" + sgc.select("a", ["c0", "c1", "c2"], choices_method=method)

    return program


SCORES = (
    ChoiceScore((0,), (-1.0,), unconditional=(None,)),
    ChoiceScore((0, 1, 2), (-2.0, -0.1, -0.1), unconditional=(None, -0.1, -0.1)),
    ChoiceScore((0, 1), (-2.5, -2.0), unconditional=(None, -9.0)),
)


@pytest.mark.parametrize(
    ("method", "taken"),
    [
        (None, "c1"),
        (sgc.token_length_normalized, "c1"),
        ("token_length_normalized", "c1"),
        (sgc.greedy_token_selection, "c0"),
        (sgc.unconditional_likelihood_normalized, "c2"),
        ("joint", "c0"),
    ],
)
def test_each_method_decides_in_a_program(recorded, monkeypatch, method, taken):
    endpoint = recorded()

    async def score(prompt, choices, unconditional=False):
        return Scored(SCORES, Usage())

    monkeypatch.setattr(endpoint.backend, "score", score)
    assert run_both(_select(method), endpoint)["a"] == taken


@pytest.mark.parametrize("method", METHODS)
def test_unconditional_logprobs_are_asked_for_where_they_are_needed(recorded, method):
    endpoint = recorded()
    _select(method).run(backend=endpoint).sync()
    assert [asked[2] for asked in endpoint.backend.scored] == [
        method.requires_unconditional_logprobs
    ]


def test_a_method_that_a_backend_cannot_serve_names_the_line(recorded):
    endpoint = recorded(unconditional=False)
    with pytest.raises(errors.UnsupportedParameter, match="without the prompt") as caught:
        _select(sgc.unconditional_likelihood_normalized).run(backend=endpoint).sync()
    assert caught.value.where.startswith("test_choices.py:")


def test_an_unknown_method_names_the_line(recorded):
    with pytest.raises(errors.UsageError, match="no choices_method 'guess'") as caught:
        _select("guess").run(backend=recorded()).sync()
    assert caught.value.where.startswith("test_choices.py:")


class Last(ChoicesSamplingMethod):
    """Takes the last choice, and tells what it was given."""

    requires_unconditional_logprobs = True

    def __call__(self, **given):
        self.given = given
        return ChoicesDecision(given["choices"][-1], {"note": "last"})


def test_a_method_of_ones_own(recorded):
    method = Last()
    endpoint = recorded()
    state = _select(method).run(backend=endpoint)
    assert (state["a"], state.text()) == ("c2", "xc2")
    assert method.given["choices"] == ["c0", "c1", "c2"]
    assert len(method.given["normalized_prompt_logprobs"]) == 3
    assert len(method.given["input_token_logprobs"]) == 3
    assert len(method.given["unconditional_token_logprobs"]) == 3
    assert endpoint.backend.scored[0][2] is True


def test_meta_info_of_a_method_of_ones_own(recorded):
    """As in SGLang it is what the method says."""
    state = _select(Last()).run(backend=recorded())
    assert state.get_meta_info("a")["note"] == "last"


def test_meta_info_of_the_methods(recorded):
    for method, keys in (
        (sgc.token_length_normalized, set()),
        (sgc.greedy_token_selection, {"greedy_logprob_matrix"}),
        (
            sgc.unconditional_likelihood_normalized,
            {"unconditional_token_logprobs", "normalized_unconditional_prompt_logprobs"},
        ),
    ):
        meta = _select(method).run(backend=recorded()).get_meta_info("a")
        common = {
            "normalized_prompt_logprobs", "input_token_logprobs", "output_token_logprobs",
        }  # fmt: skip
        assert meta.keys() >= common | keys
        assert sum(meta["probabilities"]) == pytest.approx(1.0)


# -- at a server ---------------------------------------------------------------------------


@pytest.mark.parametrize("pads", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_each_method_at_a_server(served, server, pads, method):
    """With the null that servers put first, two of SGLang's three raise."""
    server.pads_first_logprob = pads
    endpoint = served()

    @sgc.function
    def program(s):
        s += "The sky is"
        s += sgc.select("a", [" blue", " red as wine", " no"], choices_method=method)

    state = program.run(backend=endpoint)
    assert state["a"] in (" blue", " red as wine", " no")
    meta = state.get_meta_info("a")
    assert len(meta["input_token_logprobs"]) == 3
    n_requests = 3 if method.requires_unconditional_logprobs else 2
    assert len(server.requests) == n_requests
    if n_requests == 3:
        body = server.requests[2]
        told = meta["input_token_logprobs"]
        expected = [[row[1] for row in rows if row[0] is not None] for rows in told]
        assert body["input_ids"] == expected
        assert body["sampling_params"]["max_new_tokens"] == 0
        assert body["return_logprob"] is True


def test_the_prompts_last_token_is_dropped_where_it_did_not_heal():
    """The protocol: the window starts two tokens early; the first row is dropped if it is the
    prompt's own."""

    def rows(*given):
        return {"meta_info": {"input_token_logprobs": [list(row) for row in given]}}

    kept = choice_rows(rows((None, 1, "sky"), (-0.5, 2, " is"), (-1.0, 3, " blue")), "the sky is")
    assert [row[2] for row in kept] == [" is", " blue"]
    kept = choice_rows(rows((-0.5, 2, " is"), (-1.0, 3, " blue")), "the sky is")
    assert [row[2] for row in kept] == [" blue"]
    kept = choice_rows(rows((-0.5, 2, " isn"), (-1.0, 3, "'t")), "the sky is")
    assert [row[2] for row in kept] == [" isn", "'t"]


def test_select_scores_prompt_and_choice_together_from_two_tokens_before(served, server):
    @sgc.function
    def program(s):
        s += "Is it true? Answer:" + sgc.select("a", ["True", "False", " Perhaps so"])

    state = program.run(backend=served(), temperature=0.9)
    assert state["a"] in ("True", "False", " Perhaps so")
    prefill, scored = server.requests
    assert prefill["sampling_params"]["max_new_tokens"] == 0
    assert prefill["text"] == "Is it true? Answer:"
    assert scored["text"] == ["Is it true? Answer:" + c for c in ("True", "False", " Perhaps so")]
    assert scored["logprob_start_len"] == 4  # of the prompt's six tokens the last two
    assert scored["return_logprob"] is True
    for body in server.requests:
        assert body["sampling_params"]["temperature"] == 0.0  # the run's is for generations


def test_the_choice_is_appended_as_it_is(recorded):
    @sgc.function
    def program(s):
        s += "Answer:" + sgc.select("a", ["True", " False"]) + "."

    assert run_both(program, recorded()).text() == "Answer:True."
    assert run_both(program, recorded(prefer=lambda p, c: 1)).text() == "Answer: False."


def test_a_select_with_a_temperature_draws(recorded):
    """SGLang asserts that it is 0."""

    @sgc.function
    def program(s):
        s += "x" + sgc.select("a", ["y", "z"], temperature=5.0)

    found = {program.run(backend=recorded(), seed=seed)["a"] for seed in range(40)}
    assert found == {"y", "z"}
