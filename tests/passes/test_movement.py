"""Code movement by the rules: templates with verdicts, and what no template may lose."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from random_graphs import random_graph

from sgc.ir.graph import Graph
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.ir.verify import verify
from sgc.passes.changing.hoist_prefix import hoist_prefix
from sgc.passes.changing.movement import lines, move, report
from sgc.passes.pipeline import LEVELS, optimize

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches" / "movement"))

from templates import judge, prefix, program, read, sets


def verdicts(name):
    found = []
    for template in read(name):
        before = program(template)
        verify(before)
        after = hoist_prefix(before)
        verify(after)
        found.append((template, judge(template, before, after)))
    return found


@pytest.mark.parametrize("name", sets())
def test_no_wrong_move(name):
    found = verdicts(name)
    outcomes = Counter(verdict.outcome for _, verdict in found)
    wrong = [(t.name, v.wrong_words) for t, v in found if v.outcome == "wrong"]
    assert not wrong
    n_movable = sum(template.may for template, _ in found)
    assert outcomes["moved"] >= 0.6 * n_movable
    assert outcomes["kept"] == len(found) - n_movable


def test_three_quarters_of_the_movable_are_moved():
    outcomes = Counter(verdict.outcome for name in sets() for _, verdict in verdicts(name))
    assert outcomes["moved"] >= 0.75 * (outcomes["moved"] + outcomes["missed"])


def test_templates_cover_the_constructs():
    found = read("templates")
    assert len(found) >= 40
    covered = Counter(construct for template in found for construct in template.constructs)
    assert len(covered) >= 35
    both = {may: {c for t in found if t.may is may for c in t.constructs} for may in (True, False)}
    # What a rule tells apart is there on both sides.
    for construct in (
        "cue",
        "headings",
        "inline argument",
        "roles",
        "between arguments",
        "numbering",
    ):
        assert construct in both[True], construct
        assert construct in both[False], construct
    names = [template.name for name in sets() for template in read(name)]
    assert len(names) >= 150


def test_the_judge_finds_what_is_wrong():
    template = next(t for t in read("templates") if t.name == "the text above")
    moved = next(t for t in read("templates") if t.name == "summary with a cue")
    before = program(template)
    text = "Summarize the text above in one sentence.\n\n{text}\n\nSummary:"
    wrong = program(type(template)(template.name, (("", text),), False, (), (), (), ""))
    assert judge(template, before, wrong).outcome == "wrong"
    assert judge(moved, program(moved), program(moved)).outcome == "missed"


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
        "it may go on in its source",
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


@pytest.mark.parametrize(
    ("beside", "is_moved"), [("Half points are allowed.", True), ("The train was late.", False)]
)
def test_beside_an_instruction_norms_move_and_stories_stay(beside, is_moved):
    body = SUMMARY.replace("in one sentence.", f"in one sentence. {beside}")
    before = graph(f"""
        %s0 = stream "p"
        {body}
        return none
    """)
    after = hoist_prefix(before)
    assert (after is not before) == is_moved
    assert (beside in prefix(after)) == is_moved


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

    for turn in range(rng.randrange(1, 4)):
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


@pytest.mark.parametrize("part", range(4))
def test_only_order_and_white_space_change(part):
    n_moved = 0
    for seed in range(part * 100, part * 100 + 100):
        before = graph(random_body(random.Random(seed)))
        verify(before)
        after = hoist_prefix(before)
        verify(after)
        assert letters(text_of(after)) == letters(text_of(before)), seed
        assert hoist_prefix(after) is after, seed
        assert hoist_prefix(before) == after, seed
        n_moved += after is not before
        if after is not before:
            assert len(prefix(after).split()) > len(prefix(before).split()), seed
    assert n_moved > 5


def test_any_program_comes_out_sound():
    for seed in range(120):
        before = random_graph(seed, 30)
        after = hoist_prefix(before)
        verify(after)
        assert hoist_prefix(after) is after


AGAIN = "Use the text above. Say so. "


def test_long_prompts_are_bounded():
    """What would take long if it were looked through again for every line or sentence."""
    for unit in ("Use it. ", "{\n", "<a>\n", "- a\n", "# a\n", "if a, ", "```\n", AGAIN):
        body = (unit * (8_000 // len(unit))).replace("\n", "\\n")
        before = graph(
            f'%s0 = stream "p"\n%s1 = append %s0 %x\n%s2 = const %s1 "\\n{body}"\nreturn none'
        )
        verify(hoist_prefix(before))
    long = graph(PLAIN.replace("Summarize", "Summarize " * 6_000))
    assert hoist_prefix(long) is long
    assert "it has over 50000 characters" in report(long)[0]


def test_refusals_name_the_line_and_the_reason():
    template = next(t for t in read("templates") if t.name == "the text above")
    found = list(lines(move(program(template))))
    assert found == [
        "template.py:2: stays: 'Summarize the text above in one sentence.': 'above' points at its "
        "surroundings"
    ]
