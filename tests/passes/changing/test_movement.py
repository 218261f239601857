"""Code movement by the rule: templates with verdicts, golden cases, and what no prompt may lose."""

from __future__ import annotations

import hashlib
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from golden_files import compare
from random_graphs import random_graph
from waiting import cpu_below

from sgc.ir.graph import Graph
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.ir.verify import verify
from sgc.passes.changing.hoist_prefix import hoist_prefix
from sgc.passes.changing.movement.move import lines, move, report
from sgc.passes.changing.movement.pieces import SLOT, Kind
from sgc.passes.changing.movement.rule import plan
from sgc.passes.pipeline import LEVELS, optimize

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benches" / "movement"))

from templates import FOLDER, SETS, Template, judge, prefix, program, read

GOLDEN = Path(__file__).parent / "movement"
EVALUATION = "ab381a615e26939d431df5d8c63a53f74443f184ebb8ad21637c186bc03eab91"


@pytest.mark.parametrize("name", SETS)
def test_no_move_is_wrong_and_some_are_made(name):
    outcomes = Counter[str]()
    for template in read(name):
        before = program(template)
        after = hoist_prefix(before)
        verify(after)
        verdict = judge(template, before, after)
        assert verdict.outcome != "wrong", (template.name, verdict.wrong_words)
        outcomes[verdict.outcome] += 1
    assert outcomes["moved"] >= 0.3 * (outcomes["moved"] + outcomes["missed"])


def test_the_evaluation_set_is_what_it_was():
    """Nobody may make the rule look better by changing what it is measured on."""
    assert hashlib.sha256((FOLDER / "evaluation.toml").read_bytes()).hexdigest() == EVALUATION


def test_the_judge_finds_what_is_wrong():
    stays = Template("t", (("", "{text}\n\nSummarize the text above.\n\nSummary:"),))
    wrong = Template("t", (("", "Summarize the text above.\n\n{text}\n\nSummary:"),))
    assert judge(stays, program(stays), program(wrong)).outcome == "wrong"
    assert judge(stays, program(stays), program(stays)).outcome == "kept"
    may = Template("t", stays.messages, may=True, lead=("Summarize the text above.",))
    assert judge(may, program(may), program(may)).outcome == "missed"
    assert judge(may, program(may), program(wrong)).outcome == "moved"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda path: path.stem)
def test_golden(path):
    """A prompt; then the report, and the prompt as it is afterwards if it has changed."""
    prompt = path.read_text(encoding="utf-8").split("\n", 1)[1].partition("\n----\n")[0]
    outcome = move(program(Template("t", (("", prompt),))))
    told = "\n".join(lines(outcome)) or "nothing behind an argument"
    after = "".join(
        f"\n----\n{proposal.prompt.shown(proposal.order)}" for proposal in outcome.moved
    )
    compare(path, f"{prompt}\n----\n{told}{after}\n", f"pytest tests/passes -k {path.stem}")


# -- what moves nowhere --


def graph(body: str) -> Graph:
    lines_ = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    return parse(f"sgir 1\nprogram @p(%x: text, %y: text) {{\n{lines_}\n}}\n")


CUE = r"%s4, %g = gen %s3"
ARTICLE = r'"Article: "'
SUMMARIZE = r'"\n\nSummarize the article in one sentence.\n\nSummary:"'
SUMMARY = f"""%s1 = const %s0 {ARTICLE}
        %s2 = append %s1 %x
        %s3 = const %s2 {SUMMARIZE}
        {CUE}"""

STAYS = {
    "the program reads the text back": (
        f"""
        %s0 = stream "p"
        {SUMMARY}
        %t = text_of %s4
        return %t
        """,
        "the program reads this text back",
    ),
    "a span over it": (
        f"""
        %r = stream "p"
        %s0 = role_begin %r "user"
        {SUMMARY}
        %t = span %s0 %s4
        return %t
        """,
        "the program reads this text back",
    ),
    "the reply's own turn": (
        f"""
        %r = stream "p"
        %s0 = role_begin %r "assistant"
        {SUMMARY}
        return none
        """,
        "it is the beginning of the reply",
    ),
    "what goes on in the interpreter": (
        f"""
        %s0 = stream "p"
        {SUMMARY}
        deopt "a reason"
        """,
        "the program may continue in the interpreter",
    ),
    "behind another argument's turn": (
        f"""
        %r = stream "p"
        %q = append %r %y
        %r2 = role_begin %q "user"
        %s1 = const %r2 {ARTICLE}
        %s2 = append %s1 %x
        %s3 = const %s2 {SUMMARIZE}
        {CUE}
        return none
        """,
        "",
    ),
    "across a state that the program reads": (
        f"""
        %s0 = stream "p"
        {SUMMARY}
        publish %s2 "p"
        return none
        """,
        "",
    ),
}


@pytest.mark.parametrize("case", STAYS)
def test_stays(case):
    body, reason = STAYS[case]
    before = graph(body)
    verify(before)
    assert hoist_prefix(before) is before
    assert reason in "\n".join(report(before))


PLAIN = f"""
%s0 = stream "p"
%s1 = const %s0 {ARTICLE}
%s2 = append %s1 %x
%s3 = const %s2 {SUMMARIZE}
{CUE}
publish %s4 "p" keys=["g"] items=[%g]
return none
"""


def test_the_program_that_comes_out():
    found = to_text(hoist_prefix(graph(PLAIN)))
    assert "\n".join(found.splitlines()[2:6]) == (
        '  %s0     = stream "p"\n'
        r'  %s1     = const  %s0 "Summarize the article in one sentence.\n\nArticle: "' + "\n"
        "  %s2     = append %s1 %x\n"
        r'  %s3     = const  %s2 "\n\nSummary:"'
    )


def test_a_fork_of_a_constant_trunk_is_looked_at():
    before = graph(f"""
        %r = stream "p"
        %r1 = const %r "You are an editor.\\n\\n"
        %t, %c = fork %r1 1
        %s1 = const %c {ARTICLE}
        %s2 = append %s1 %x
        %s3 = const %s2 {SUMMARIZE}
        {CUE}
        return none
    """)
    after = hoist_prefix(before)
    verify(after)
    assert "Summarize the article in one sentence.\\n\\nArticle" in to_text(after)


def test_it_is_in_the_highest_level_alone():
    assert ["hoist_prefix" in {row.name for row in level} for level in LEVELS] == [
        False, False, False, True,
    ]  # fmt: skip
    found = optimize(graph(PLAIN), 3)
    assert "moved in front of the arguments" in found.receipts[0].details[0]


# -- properties --

LEADS = ("You are an editor. ", "", "Be fair.\n\n")
LABELS = ("Article: ", "", "<article>", "Translate ", "Here is the article:\n\n", "## Article\n")
BEHIND = ("", "</article>", " into French.", ".")
TAILS = (
    "\n\nSummarize the article. Use plain words.", "\n\nTranslate it.", " Then stop.",
    "\n\n- Be brief\n- Be kind", "\n\n## Rules\nBe brief.", "\n\n1. Be brief.\n2. See above.",
    "\n\n```\ncode\n```", "\n---\n", "\nAnswer in one word:\n- yes\n- no",
    "\n\nIs the article true?",
)  # fmt: skip
CUES = ("\n\nSummary:", "", "\n", "\nA: ")


def random_body(rng: random.Random) -> str:
    """A program of one stream: roles, arguments, text and generations in any order."""
    state, nodes = 0, ['%s0 = stream "p"']

    def add(op, rest, extra=""):
        nonlocal state
        nodes.append(f"%s{state + 1}{extra} = {op} %s{state} {rest}")
        state += 1

    def const(text):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        cut = rng.randrange(len(text) + 1)  # however the program cut its text
        if "\\" not in escaped and cut:
            add("const", f'"{escaped[:cut]}"')
            escaped = escaped[cut:]
        add("const", f'"{escaped}"')

    for turn in range(rng.randrange(1, 3)):
        has_role = rng.random() < 0.4
        if has_role:
            add("role_begin", '"user"')
        const(rng.choice(LEADS))
        for _ in range(rng.randrange(3)):
            const(rng.choice(LABELS))
            add("append", rng.choice(("%x", "%y")))
            const(rng.choice(BEHIND))
            for _ in range(rng.randrange(4)):
                const(rng.choice(TAILS + TAILS[:1] * 20))  # often one that may lead
        const(rng.choice(CUES))
        if has_role:
            add("role_end", '"user"')
        add("gen", f'name="g{turn}"', f", %g{turn}")
        if rng.random() < 0.3:
            nodes.append(f'publish %s{rng.randrange(state + 1)} "p"')
    return "\n".join([*nodes, "return none"])


def text_of(found: Graph) -> list[object]:
    """What the main stream says: letters of constants as one multiset between barriers, values."""
    stretches: list[object] = [[Counter(), []]]
    for node in found.nodes():
        if node.op == "const":
            stretches[-1][0].update(node.text("text").split())
        elif node.op == "append":
            stretches[-1][1].append(next(reversed(list(node.refs()))))
        elif node.op != "publish":
            stretches += [node.op, [Counter(), []]]
    return stretches


def letters(stretches):
    """The same without words' borders, which lie where an argument stood."""
    return [
        part if isinstance(part, str) else (Counter("".join(part[0].elements())), part[1])
        for part in stretches
    ]


def by_chance(rng: random.Random):
    """A proposer of any order that the check accepts or not."""

    def propose(prompt):
        numbers = range(len(prompt.pieces))
        first = [i for i in numbers if prompt.kinds[i] is Kind.TEXT and rng.random() < 0.6]
        rng.shuffle(first)
        return (*first, *(i for i in numbers if i not in first)), ""

    return propose


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(4))
def test_only_order_and_white_space_change(part):
    n_moved = 0
    for seed in range(part * 100, part * 100 + 100):
        rng = random.Random(seed)
        before = graph(random_body(rng))
        verify(before)
        assert hoist_prefix(hoist_prefix(before)) == hoist_prefix(before), seed
        for proposer in (plan, by_chance(rng)):
            after = move(before, proposer).graph
            verify(after)
            assert letters(text_of(after)) == letters(text_of(before)), seed
            n_moved += after is not before
            if after is not before:
                assert len(prefix(after).split()) > len(prefix(before).split()), seed
    assert n_moved > 20


def test_any_program_comes_out_sound():
    for seed in range(120):
        before = random_graph(seed, 30)
        after = hoist_prefix(before)
        verify(after)
        assert hoist_prefix(after) is after


AGAIN = "Use the text above. Say so. "


@pytest.mark.slow
def test_long_prompts_are_bounded():
    """What would take long if it were looked through again for every line or sentence."""
    for unit in (
        "Use it. ",
        "{\n",
        "<a>\n",
        "- a\n",
        "# a\n",
        "if a, ",
        "```\n",
        AGAIN,
        " ",
        "“",
        "a:\n",
    ):
        body = (unit * (49_000 // len(unit))).replace("\n", "\\n")
        before = graph(
            f'%s0 = stream "p"\n%s1 = append %s0 %x\n%s2 = const %s1 "\\n\\n{body}"\nreturn none'
        )
        with cpu_below(2):
            verify(hoist_prefix(before))
    long = graph(PLAIN.replace("Summarize", "Summarize " * 6_000))
    assert hoist_prefix(long) is long
    assert "it has over 50000 characters" in report(long)[0]


def test_many_prompts_are_bounded():
    """Streams that are interleaved in one block keep their places."""
    turns = [SUMMARY.replace("%s", f"%s{i}x").replace("%g", f"%g{i}") for i in range(300)]
    rows = [[f'%s{i}x0 = stream "p{i}"', *turn.splitlines()] for i, turn in enumerate(turns)]
    mixed = "\n".join(row for each in zip(*rows, strict=True) for row in each)
    before = graph(f"{mixed}\nreturn none")
    verify(before)
    with cpu_below(4):
        after = hoist_prefix(before)
    verify(after)
    assert to_text(after).count("Summarize the article in one sentence.\\n\\nArticle") == 300


def test_a_character_that_stands_for_arguments_is_left_alone():
    for replaced, by in (("Summarize", f"Summarize {SLOT}"), (SUMMARIZE, f'"\\n\\n{SLOT}"')):
        before = graph(PLAIN.replace(replaced, by))
        assert hoist_prefix(before) is before
        assert "the character that stands for an argument" in report(before)[0]
