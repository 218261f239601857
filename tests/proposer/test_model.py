"""Code movement proposed by a model, validated on rows, and the command that does both."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from conftest import prompt_text

import sgc
from sgc.errors import UsageError
from sgc.ir.file.sgir import load
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.passes.changing.movement.move import lines, move
from sgc.passes.changing.movement.prompts import prompts
from sgc.proposer.model import by_model, judged, question
from sgc.proposer.validation import greedy, validate
from sgc.runs.endpoint import Endpoint
from sgc.runs.rows_file import InputRow
from sgc.runtime.executor.backends.scripted import ScriptedBackend

PROGRAM = """sgir 1
program @p(%x: text) {
  %s0 = stream "p"
  %s1 = const %s0 "Article: "
  %s2 = append %s1 %x
  %s3 = const %s2 "\\n\\nSummarize the article. Use plain words.\\n\\nSummary:"
  %s4, %g = gen %s3 name="g" temperature=0.7
  %s5 = const %s4 "\\n\\nTranslate the summary.\\n\\nFrench:"
  %s6, %h = gen %s5 name="h"
  publish %s6 "p" keys=["g", "h"] items=[%g, %h]
  return %h
}
"""
# 0 the article, 1 the instructions, 2 the cue


@pytest.fixture
def program():
    return parse(PROGRAM)


@pytest.fixture
def asked(scripted):
    """Makes an endpoint that proposes an order, and judges it as told."""

    def make(order, verdict="yes"):
        return scripted(lambda p, s: order, lambda p, choices: choices.index(verdict))

    return make


def test_what_the_model_is_asked(program):
    (prompt,) = prompts(program)
    assert question(prompt).endswith(
        'Pieces:\n0 argument "Article: {x}"\n1 text "Summarize the article. Use plain words."\n'
        '2 cue "Summary:"\nOrder:'
    )
    assert judged(prompt, (1, 0, 2)).endswith(
        "<first>\nArticle: {x}\n\nSummarize the article. Use plain words.\n\nSummary:\n</first>\n\n"
        "<second>\nSummarize the article. Use plain words.\n\nArticle: {x}\n\nSummary:\n</second>"
    )


def test_a_good_proposal_is_carried_out(program, asked):
    outcome = move(program, by_model(asked(" [1, 0, 2]")))
    assert not outcome.stays
    text = to_text(outcome.graph)
    assert '"Summarize the article. Use plain words.\\n\\nArticle: "' in text
    assert re.search(r"Article: \"\n.*append", text), "a label stays with its argument"
    assert outcome.graph == move(program).graph, "as the rule does it"
    assert "moved in front of the arguments" in "\n".join(lines(outcome))


def test_special_tokens_of_a_prompt_are_plain_text_to_the_model():
    """A program's text about roles must not begin one when a model is asked about it."""
    requests = []

    class Special(ScriptedBackend):
        async def capabilities(self):
            return replace(await super().capabilities(), special_tokens=("<|end|>",))

        async def generate(self, prompt, sampling, on_delta=None):
            requests.append(prompt)
            return await super().generate(prompt, sampling, on_delta)

    program = parse(PROGRAM.replace("Use plain words.", "Use <|end|> no words."))
    move(program, by_model(Endpoint(Special(lambda p, s: "[1, 0, 2]"))))
    ((run,),) = requests
    (special,) = run.literal
    assert run.text[slice(*special)] == "<|end|>"


def test_an_order_that_stays_is_told_so(program, asked):
    outcome = move(program, by_model(asked("[0, 1, 2]")))
    assert outcome.graph is program
    assert outcome.stays[0].reason == "no text comes in front of the first argument"


def test_the_judge_has_the_last_word(program, asked):
    outcome = move(program, by_model(asked("[1, 0, 2]", "no")))
    assert outcome.graph is program
    assert "the judge says that it would not ask the same" in "\n".join(lines(outcome))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I would move the instructions first.", "not a JSON list of numbers"),
        ("", "not a JSON list of numbers: ''"),
        ("[1, 2, 0", "not a JSON list of numbers"),
        ("[1.5]", "not a JSON list of numbers"),
        ("[" * 10_000, "not a JSON list of numbers"),
        ('["1", "0"]', "not a JSON list of numbers"),
        ("[1, 0]", "piece 2 is there 0 times"),
        ("[1, 1, 0, 2]", "piece 1 is there 2 times"),
        ("[1, 0, 2, 3]", "there is no piece 3"),
        ("[]", "piece 0 is there 0 times"),
        ("[2, 1, 0]", "piece 2 begins the reply and must stay last"),
    ],
)
def test_other_proposals_are_not_done_and_nothing_is_lost(program, asked, reply, reason):
    outcome = move(program, by_model(asked(reply)))
    assert outcome.graph is program
    (stays,) = outcome.stays
    assert stays.reason.startswith(reason)
    assert reason in "\n".join(lines(outcome))


def test_a_model_may_move_what_the_rule_leaves(asked):
    """The paper's own example: its instruction stands on the argument's line."""
    program = parse(PROGRAM.replace("Article: ", "Here is a question ").replace(
        "\\n\\nSummarize the article. Use plain words.\\n\\nSummary:",
        ". Please act as a math expert and solve the given question.",
    ))  # fmt: skip
    assert move(program).graph is program
    text = to_text(move(program, by_model(asked("[1, 0]"))).graph)
    assert "Please act as a math expert and solve the given question. Here is a question" in text


def test_a_long_stream_is_not_asked_about(scripted):
    requests = []
    long = PROGRAM.replace("Use plain words.", "Use plain words. " * 2000)
    outcome = move(parse(long), by_model(scripted(lambda p, s: requests.append(p) or "")))
    assert "its question has over" in outcome.stays[0].reason
    assert not requests


def test_the_last_list_counts(program, asked):
    reply = "First [0, 1, 2], or rather: [1,0, 2]. Done"
    assert move(program, by_model(asked(reply))).graph == move(program).graph


# -- validation --


def rows(*texts):
    return [InputRow(str(i), {"x": text}, i + 1) for i, text in enumerate(texts)]


def test_validation_tells_what_differs(program, scripted):
    seen = []

    def reply(prompt, sampling):
        seen.append(sampling.temperature)
        text = prompt_text(prompt)
        return " one" if "same" in text else f" {text.index('Article')}"

    after = move(program).graph
    found = validate(program, after, rows("same", "other"), scripted(reply))
    assert {(d.key, d.name) for d in found} == {
        ("1", "p[0].g"), ("1", "p[0].h"), ("1", "the returned value"),
    }  # fmt: skip
    assert set(seen) == {0.0}


def test_every_draw_is_made_greedy(program):
    assert "temperature=0.7" not in to_text(greedy(program))
    assert to_text(greedy(program)).count("temperature=0.0") == 2


# -- the command --


@pytest.fixture
def compiled(tmp_path):
    @sgc.function
    def p(s, article):
        s += "Article: " + article + "\n\nSummarize the article.\n\nSummary:"
        s += sgc.gen("summary", max_tokens=8)

    path = tmp_path / "p.sgir"
    p.compile().save(path)
    return path


@pytest.fixture
def opt(monkeypatch, capsys, scripted, tmp_path):
    """Runs `sgc opt -p hoist_prefix` where every engine is a scripted one."""
    from sgc.cli.programs import hoist
    from sgc.cli.programs.opt import opt_program

    def run(path, reply=lambda p, s: "", **options):
        asked = []
        monkeypatch.setattr(hoist, "connect", lambda uri: asked.append(uri) or scripted(reply))
        monkeypatch.setattr(hoist, "resolve_backend", lambda endpoint: scripted(reply))
        out = tmp_path / "out.sgir"
        given = {"level": 1, "passes": "hoist_prefix", "show": "changed", "folder": None}
        given |= {"kept": "all", "model": None, "rows": 2}
        opt_program(path, out, **(given | options))
        return load(out), capsys.readouterr().err, asked

    return run


def test_opt_shows_what_moved_and_what_stays(opt, compiled):
    found, err, _ = opt(compiled)
    assert '"Summarize the article.\\n\\nArticle: "' in to_text(found)
    assert "moved in front of the arguments: 22 characters more in the constant prefix" in err
    again, err, _ = opt(compiled, passes="fold_constants")
    assert "moved" not in err
    assert again == load(compiled)


def test_opt_asks_a_model(opt, compiled):
    found, err, engines = opt(compiled, lambda p, s: "[1, 0, 2]", proposer="model", engine="unix:x")
    assert engines == ["unix:x"]
    assert '"Summarize the article.\\n\\nArticle: "' in to_text(found)
    assert found.receipts[-1].pass_name == "hoist_prefix"
    found, err, _ = opt(compiled, lambda p, s: "[2, 1, 0]", proposer="model", engine="unix:x")
    assert found == load(compiled)
    assert "piece 2 begins the reply and must stay last" in err


def test_opt_validates(opt, compiled, tmp_path):
    sample = tmp_path / "rows.jsonl"
    sample.write_text("".join(json.dumps({"article": a}) + "\n" for a in ("same", "b", "same")))

    def reply(prompt, sampling):
        text = prompt_text(prompt)
        return " one" if "same" in text else f" {text.index('Article')}"

    found, err, _ = opt(compiled, reply, validate_rows=sample)
    assert found == load(compiled)
    assert "validated: 2 of 3 rows equal; the move is rejected (--min-equal 1)" in err
    assert "row 1: p[0].summary was ' 0', is ' 24'" in err
    found, err, _ = opt(compiled, reply, validate_rows=sample, min_equal=0.6)
    assert found != load(compiled)
    assert "validated: 2 of 3 rows equal; the move is kept" in err


@pytest.mark.parametrize(
    "options",
    [
        {"proposer": "model", "passes": None},
        {"proposer": "model", "passes": "fold_constants,hoist_prefix"},
        {"engine": "unix:x"},
        {"min_equal": 0.5},
    ],
)
def test_opt_refuses_what_cannot_be_meant(opt, compiled, options):
    with pytest.raises(UsageError):
        opt(compiled, **options)
