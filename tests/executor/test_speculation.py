"""API speculation: fewer requests, and what is given is what one request each would give."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace

import pytest

import sgc
from sgc.errors import BackendError, ContextExceeded
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.interface.backend import FinishReason, Generated, Logprobs, Usage
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.options import RunOptions

VALUES = {"Name:": " Ada Moor", "Age:": " 36", "Job:": " baker"}
TEMPLATE = "Name: Ada Moor\nAge: 36\nJob: baker\n"


class Model(ScriptedBackend):
    """Says what it was taught as long as the prompt does, else the value of the last label; one
    token a character.
    """

    def __init__(self, taught: str = TEMPLATE, tells_tokens: bool = True, speculates: bool = True):
        super().__init__(lambda prompt, sampling: "")
        self.taught, self.tells_tokens, self.speculates = taught, tells_tokens, speculates
        self.asked: list[str] = []

    async def capabilities(self):
        refuses = frozenset() if self.tells_tokens else frozenset({"logprobs"})
        return replace(CAPABILITIES, speculates=self.speculates, refuses=refuses)

    async def generate(self, prompt, sampling, on_delta=None):
        text = "".join(part.text for part in prompt)
        self.asked.append(text)
        reply, finish, matched = self.says(text), FinishReason.STOP, None
        stops = [(reply.index(stop), stop) for stop in sampling.stop if stop in reply]
        n_most = min(stops)[0] + 1 if stops else len(reply)
        if n_most > sampling.max_tokens:
            reply, finish = reply[: sampling.max_tokens], FinishReason.LENGTH
        elif stops:
            reply, matched = reply[: min(stops)[0]], min(stops)[1]
        if on_delta is not None:
            on_delta(reply)
        logprobs = None
        if sampling.logprobs is not None:
            logprobs = Logprobs(output=tuple((-1.0, ord(each), each) for each in reply))
        usage = Usage(prompt_tokens=len(text), completion_tokens=len(reply))
        return Generated(reply, (), (), reply, finish, matched, usage, logprobs)

    def says(self, text):
        said = text.partition("\n")[2]
        if self.taught.startswith(said):
            return self.taught[len(said) :]
        label = text[text.rindex("\n") + 1 :]
        return VALUES[label] + TEMPLATE.partition(VALUES[label])[2]


@sgc.function
def extract(s, text: str):
    s += text + "\nName:" + sgc.gen("name", stop="\n", max_tokens=12)
    s += "\nAge:" + sgc.gen("age", stop="\n", max_tokens=6)
    s += "\nJob:" + sgc.gen("job", stop="\n", max_tokens=12)


def run(program, model, **options):
    made = RunOptions(temperature=0.0, **options)
    return program.run_once({"text": "A text"}, made, Endpoint(model))


def compiled(level: int, function=extract) -> Program:
    return Program(optimize(function.compile(check=False).graph, level))


FUSED, PLAIN = compiled(2), compiled(1)


def test_three_generations_are_one_request():
    model, plain = Model(), Model()
    found, wanted = run(FUSED, model), run(PLAIN, plain)
    assert found.text() == wanted.text() == "A text\n" + TEMPLATE.rstrip("\n")
    assert dict(found.variables) == dict(wanted.variables)
    assert (len(model.asked), len(plain.asked)) == (1, 3)
    assert (found.stats.requests, found.stats.answered_ahead) == (1, 2)
    assert found.stats.prompt_tokens * 3 < wanted.stats.prompt_tokens


@pytest.mark.sweep
@pytest.mark.parametrize("tells_tokens", [True, False])
@pytest.mark.parametrize("change", ["~", "\n", ""])
@pytest.mark.parametrize("at", range(len(TEMPLATE)))
def test_a_reply_that_differs_anywhere_changes_nothing_but_the_requests(at, change, tells_tokens):
    taught = TEMPLATE[:at] + change + TEMPLATE[at + 1 :]
    model, plain = Model(taught, tells_tokens), Model(taught, tells_tokens)
    found, wanted = run(FUSED, model), run(PLAIN, plain)
    assert found.text() == wanted.text()
    assert dict(found.variables) == dict(wanted.variables)
    assert 1 <= len(model.asked) <= (3 if tells_tokens else 4)


def test_what_matches_is_kept_and_the_rest_is_asked_for():
    model = Model(TEMPLATE.replace("Job:", "Work:"))
    run(FUSED, model)
    assert [text[text.rindex("\n") + 1 :] for text in model.asked] == ["Name:", "Job:"]


def test_a_model_that_says_nothing_has_said_so():
    model = Model("Name:")
    assert run(FUSED, model)["name"] == ""
    assert len(model.asked) == 3


def test_the_annotation_does_it_interpreted_too():
    function = sgc.function(num_api_spec_tokens=60)(extract.python)
    model, other = Model(), Model()
    assert run(function, model).text() == run(compiled(0, function), other).text()
    assert len(model.asked) == len(other.asked) == 1


def test_an_engine_that_keeps_prefixes_is_asked_one_by_one():
    model = Model(speculates=False)
    run(FUSED, model)
    assert len(model.asked) == 3


@pytest.mark.parametrize("tells_tokens", [True, False])
def test_no_text_is_longer_than_it_may_be(tells_tokens):
    @sgc.function(num_api_spec_tokens=60)
    def short(s, text: str):
        s += text + "\nName:" + sgc.gen("name", stop="\n", max_tokens=4)
        s += "\nAge:" + sgc.gen("age", stop="\n", max_tokens=2)

    found = run(short, Model(tells_tokens=tells_tokens))
    assert (found["name"], found["age"]) == (" Ada", " 3")


def test_a_reply_that_is_thrown_away_is_a_request_that_was_paid_for():
    @sgc.function(num_api_spec_tokens=60)
    def short(s, text: str):
        s += text + "\nName:" + sgc.gen("name", stop="\n", max_tokens=4)

    model = Model(tells_tokens=False)
    found = run(short, model)
    assert found.stats.requests == len(model.asked) == 2
    assert found.stats.completion_tokens == len(TEMPLATE) - len("Name:") + 4


def test_other_sampling_is_asked_for():
    @sgc.function(num_api_spec_tokens=60)
    def mixed(s, text: str):
        s += text + "\nName:" + sgc.gen("name", stop="\n", max_tokens=12)
        s += "\nAge:" + sgc.gen("age", stop="\n", max_tokens=6, temperature=0.7)
        s += "\nJob:" + sgc.gen("job", stop="\n", max_tokens=12, regex=" [a-z]+")

    model = Model()
    assert run(mixed, model)["job"] == " baker"
    assert len(model.asked) == 3


def test_forks_do_not_take_what_the_trunk_was_told():
    @sgc.function(num_api_spec_tokens=60)
    def forked(s, text: str):
        s += text + "\nName:" + sgc.gen("name", stop="\n", max_tokens=12) + "\n"
        forks = s.fork(2)
        for fork in forks:
            fork += "Age:" + sgc.gen("age", stop="\n", max_tokens=6)
        s += "Age:" + sgc.gen("age", stop="\n", max_tokens=6)
        s += " and ".join(fork["age"] for fork in forks)

    model = Model()
    assert run(forked, model).text().endswith(" 36 36 and  36")
    assert len(model.asked) == 3  # one of the trunk, one of each child


def test_what_is_shown_as_it_comes_is_the_same_text():
    shown = {}
    for name, program in (("fused", FUSED), ("plain", PLAIN)):
        pieces = shown[name] = []
        program.run(
            text="A text",
            backend=Endpoint(Model()),
            temperature=0.0,
            on_text=lambda node, path, text, to=pieces: to.append(text),
        )
    assert "".join(shown["fused"]) == "".join(shown["plain"])


def test_a_request_that_fails_is_no_answer():
    class Failing(Model):
        n_left = 1

        async def generate(self, prompt, sampling, on_delta=None):
            if self.n_left:
                self.n_left -= 1
                raise BackendError("the connection was cut")
            return await super().generate(prompt, sampling, on_delta)

    model = Failing()
    with pytest.raises(BackendError, match="cut"):
        run(FUSED, model)
    assert run(FUSED, model)["job"] == " baker"


def test_rows_and_runs_share_nothing():
    model = Model()
    rows = FUSED.run_batch([{"text": f"text {n}"} for n in range(20)], backend=Endpoint(model))
    assert [row["job"] for row in rows] == [" baker"] * 20
    assert len(model.asked) == 20


def test_from_a_log_nothing_is_asked_again(tmp_path):
    model, again = Model(), Model()
    for each in (model, again):
        with RunLog.open(tmp_path / "log") as log:
            found = run(FUSED, each, log=log)
    assert (len(model.asked), len(again.asked)) == (1, 0)
    assert found.text() == "A text\n" + TEMPLATE.rstrip("\n")


class Altered(Model):
    """A model with other capabilities, and with tokens of its own."""

    def __init__(self, tokens=None, refuse_above=None, **capabilities):
        super().__init__()
        self.tokens, self.refuse_above, self.altered = tokens, refuse_above, capabilities

    async def capabilities(self):
        return replace(await super().capabilities(), **self.altered)

    async def generate(self, prompt, sampling, on_delta=None):
        if self.refuse_above is not None and sampling.max_tokens > self.refuse_above:
            raise ContextExceeded("too long")
        reply = await super().generate(prompt, sampling, on_delta)
        if self.tokens is None or reply.logprobs is None:
            return reply
        texts = [text for text in self.tokens if text in reply.text]
        return replace(reply, logprobs=Logprobs(output=tuple((-1.0, 0, text) for text in texts)))


def test_a_prompt_that_ends_within_a_token_is_asked_for():
    borders = Altered([" Ada Moor", "\n", "Age", ":", " 36", "\n", "Job", ":", " baker", "\n"])
    within = Altered([" Ada Moor", "\n", "Age", ": 3", "6", "\n", "Job:", " baker", "\n"])
    run(FUSED, borders)
    run(FUSED, within)
    assert (len(borders.asked), len(within.asked)) == (1, 3)


def test_where_tokens_are_not_told_one_begins_at_a_space():
    @sgc.function(num_api_spec_tokens=60)
    def close(s, text: str):
        s += text + "\nName:" + sgc.gen("name", stop="\n", max_tokens=12)
        s += "\nAge: " + sgc.gen("age", stop="\n", max_tokens=6)

    model = Model(tells_tokens=False)
    run(close, model)
    assert len(model.asked) == 2


def test_a_message_to_a_chat_model_is_not_gone_on_with():
    model = Altered(takes_messages=True)
    assert run(FUSED, model)["job"] == " baker"
    assert len(model.asked) == 3


def test_the_assistants_message_is_gone_on_with():
    @sgc.function(num_api_spec_tokens=60)
    def chat(s, text: str):
        s += sgc.user(text) + sgc.assistant_begin() + "\nName:"
        s += sgc.gen("name", stop="\n", max_tokens=12)
        s += "\nAge:" + sgc.gen("age", stop="\n", max_tokens=6) + sgc.assistant_end()

    model = Altered(takes_messages=True)
    assert run(chat, model)["age"] == " 36"
    assert len(model.asked) == 1


def test_where_so_much_is_refused_each_is_asked_for():
    model = Altered(refuse_above=12)
    assert run(FUSED, model).text() == run(PLAIN, Model()).text()
    assert len(model.asked) == 3


def test_the_stop_string_that_is_complete_first_counts():
    @sgc.function(num_api_spec_tokens=60)
    def stops(s, text: str):
        s += text + "\nName:" + sgc.gen("name", stop=["Moor\n", "oo"], max_tokens=12)

    assert run(stops, Model())["name"] == " Ada M"


# -- random programs, on a model that says the same of the same text ------------------------

CONSTS = ("\nb:", "a.", " b", "\n\n", ".a: ")
LETTERS = "ab\n. :"


def number_of(text: str, salt: str) -> int:
    return int.from_bytes(hashlib.blake2b((salt + text).encode(), digest_size=4).digest(), "big")


def next_letter(text: str) -> str:
    """A letter that depends on all that was said; half of the time one of a program's constants."""
    for k in range(min(4, len(text)), -1, -1):
        before = text[: len(text) - k]
        const = CONSTS[number_of(before, "which") % len(CONSTS)]
        if number_of(before, "begin") % 2 and const.startswith(text[len(before) :]) and const[k:]:
            return const[k]
    return LETTERS[number_of(text, "letter") % len(LETTERS)]


class Consistent(Model):
    def says(self, text):
        said = text
        for _ in range(80):
            said += next_letter(said)
        return said[len(text) :]


def random_program(r):
    """Rows of generations with texts between them, in the trunk and in the children of forks."""
    steps = [(r.choice("gggccaf"), r.randrange(100), r.choice((3, 6, 20))) for _ in range(9)]

    def add(s, step, name):
        kind, n, most = step
        if kind == "g":
            s += sgc.gen(name, stop=["\n", ".", [":", "\n"]][n % 3], max_tokens=most)
        else:
            s += CONSTS[n % len(CONSTS)]

    def program(s, text: str):
        s += text
        for i, step in enumerate(steps):
            if step[0] == "a":
                s += text
            elif step[0] == "f":
                for fork in s.fork(2):
                    for j, inner in enumerate(steps[i + 1 :]):
                        if inner[0] in "gc":
                            add(fork, inner, f"f{j}")
            else:
                add(s, step, f"x{i}")

    return sgc.function(program)


def test_random_programs_give_the_same_fused():
    n_answered = 0
    for seed in range(20):
        r = random.Random(seed)
        function = random_program(r)
        graph = function.compile(check=False).graph
        annotated = sgc.function(num_api_spec_tokens=r.choice((8, 40)))(function.python)
        programs = [Program(optimize(graph, level)) for level in (1, 2)]
        for text in ("a", "b:\n", ""):
            runs = []
            for program in (*programs, annotated):
                endpoint = Endpoint(Consistent(tells_tokens=bool(seed % 2)))
                found = program.run_once({"text": text}, RunOptions(temperature=0.0), endpoint)
                runs.append([(s.path, s.text, dict(s.variables)) for s in found.streams])
                n_answered += found.stats.answered_ahead
            assert runs[1] == runs[0], f"seed {seed}, fused"
            assert runs[2] == runs[0], f"seed {seed}, annotated"
    assert n_answered > 50
