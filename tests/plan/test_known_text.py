"""What is known of a row before it runs: held to what its run asks."""

from __future__ import annotations

import random_programs

import sgc
from sgc.planning.known import MAX_NODES, MAX_PROMPTS, Reader
from sgc.runtime.executor.run.options import RunOptions


def known(function, max_tokens=128, **arguments):
    """The texts of known prompts, later characters and tokens that may be generated."""
    graph = function.compile(check=False).graph
    found = Reader(graph, max_tokens).read(arguments)
    texts = ["".join(pieces) for pieces in found.prompts]
    return texts, found.later_chars, found.generated_tokens


@sgc.function
def asked(s, topic: str, n: int):
    s += sgc.user("About " + topic.strip() + f", {n:03d} words:")
    s += sgc.assistant(sgc.gen("a", max_tokens=7)) + "later"
    s += sgc.gen("b")


def test_constants_arguments_and_roles_up_to_the_first_generation():
    texts, later, generated = known(asked, topic=" tea ", n=7)
    assert texts == ["<|user|>About tea, 007 words:<|/user|><|assistant|>"]
    assert later == len("<|/assistant|>later")
    assert generated == 7 + 128


@sgc.function
def forked(s, x: str):
    s += "trunk " + x
    branches = s.fork(2)
    for i in range(2):
        branches[i] += f" branch {i}" + sgc.gen("b", max_tokens=1)
    s += " trunk again" + sgc.select("c", choices=["yes", "no"])


def test_each_child_of_a_fork_has_a_prompt_of_its_own():
    texts, _, generated = known(forked, x="x")
    assert texts == ["trunk x branch 0", "trunk x branch 1", "trunk x trunk again"]
    assert generated == 1 + 1 + len("yesno")


@sgc.function
def judged(s, text: str, of: str):
    s += "Judge " + text + " of " + of + ":" + sgc.gen("j", max_tokens=2)


@sgc.function
def calling(s, a: str, xs: list[str]):
    s += "Outer " + a + ":" + sgc.gen("o", max_tokens=2)
    judged(s["o"], of="it")
    sgc.map(judged, xs, of=a)


def test_calls_and_mapped_calls_have_prompts_up_to_what_is_generated():
    texts, _, generated = known(calling, a="A", xs=["x", "y"])
    assert sorted(texts) == ["Judge ", "Judge x of A:", "Judge y of A:", "Outer A:"]
    assert generated == 8


@sgc.function
def branching(s, kind: str, x: str):
    s += "Begin. "
    if kind == "long":
        s += "Long: " + x
    else:
        s += "Short."
    s += sgc.gen("a", max_tokens=1)
    if s["a"] == "go":
        s += "on" + sgc.gen("b", max_tokens=1)


def test_a_branch_on_an_argument_is_followed():
    assert known(branching, kind="long", x="x")[0] == ["Begin. Long: x"]
    assert known(branching, kind="other", x="x")[0] == ["Begin. Short."]


@sgc.function
def undecided(s, x: str):
    first = s.fork(1)[0]
    first += "Ask " + x + sgc.gen("a", max_tokens=1)
    s += "Common " + x
    if first["a"] == "go":
        s += " left"
    s += " end" + sgc.gen("b", max_tokens=1)


def test_a_decision_on_what_is_generated_leaves_what_is_common_to_all_ways():
    assert known(undecided, x="x")[0] == ["Ask x", "Common x"]


@sgc.function
def looping(s, n: int):
    for i in sgc.turns(n):
        s += f"item {i}; "
    s += sgc.gen("a", max_tokens=1)


def test_a_loop_that_arguments_decide_is_followed_so_far():
    assert known(looping, n=3)[0] == ["item 0; item 1; item 2; "]
    (cut,) = known(looping, n=90_000)[0]
    assert cut.startswith("item 0; item 1; ")
    assert len(cut) < MAX_NODES * len("item 10000; ")


@sgc.function
def failing(s, x: str):
    s += "A" + sgc.gen("a", max_tokens=1)
    b = s.fork(1)[0]
    b += str(int(x)) + sgc.gen("b", max_tokens=1)


def test_what_fails_in_the_run_is_unknown_here():
    assert known(failing, x="no number")[0] == ["A"]


def test_many_prompts_are_cut_off():
    @sgc.function
    def many(s, x: str):
        for i in range(MAX_PROMPTS + 10):
            judged(x, of=str(i))

    assert len(known(many, x="x")[0]) == MAX_PROMPTS


def test_random_programs_ask_with_what_is_known_of_them(scripted):
    endpoint = scripted(prefer=lambda prompt, choices: len(str(prompt)) % len(choices))
    n_chars = 0
    for seed in range(10):
        function = random_programs.random_program(seed)
        arguments = {"x": "Tea ", "y": " is\n", "n": 5}
        result = function.compile(check=False).run_once(arguments, RunOptions(seed=1), endpoint)
        texts = ["".join(run.text for run in request.prompt) for request in result.requests]
        for prompt in known(function, **arguments)[0]:
            rendered = prompt
            for role in ("system", "user", "assistant"):
                rendered = rendered.replace(f"<|/{role}|>", "<|end|>")
            assert any(text.startswith(rendered) for text in texts), (seed, rendered)
            n_chars += len(prompt)
    assert n_chars > 100
