"""Cache marks: where they are placed, where not, that they are the best ones and change nothing."""

from __future__ import annotations

import itertools
import random
import textwrap

import pass_runs as runs
import pytest

from sgc.errors import UsageError
from sgc.ir.graph import Graph
from sgc.ir.text.parser import parse
from sgc.passes.base import Preserves
from sgc.passes.hints.caching import tree as trees
from sgc.passes.hints.caching.rules import CacheRules, Expected
from sgc.passes.hints.caching.tree import ROOT, PromptTree, best_marks, gains
from sgc.passes.hints.place_caches import for_rules
from sgc.passes.pipeline import choose_passes, optimize, run_pass
from sgc.runs.cache_rules import passes_for, rules_of
from sgc.runtime.executor.backends.providers.connect import facts_of

# A character is 100 tokens, so that small programs have something to keep.
RULES = CacheRules(write=1.25, read=0.1, min_tokens=100, breakpoints=4, chars_per_token=0.01)


def graph(body: str, more: str = "") -> Graph:
    lines = "\n".join(f"  {line.strip()}" for line in textwrap.dedent(body).strip().splitlines())
    return parse(f"sgir 1\nprogram @p(%x: text, %xs: list[text]) {{\n{lines}\n}}\n{more}")


def called(body: str) -> str:
    lines = "\n".join(f"  {line.strip()}" for line in textwrap.dedent(body).strip().splitlines())
    return f"called @c(%y: text) {{\n{lines}\n}}\n"


CASES = {
    "a fork's trunk": (
        Expected(),
        """
        %s0 = stream "p"
        %s1 = const %s0 "long"
        %t, %u, %v = fork %s1 2
        %u1 = const %u "a"
        %u2, %a = gen %u1
        %v1 = const %v "b"
        %v2, %b = gen %v1
        return none
        """,
        """
        %s0 = stream "p"
        %s1 = const %s0 "long"
        %s1_kept = cache %s1
        %t, %u, %v = fork %s1_kept 2
        %u1 = const %u "a"
        %u2, %a = gen %u1
        %v1 = const %v "b"
        %v2, %b = gen %v1
        return none
        """,
    ),
    "turns of a chat, each but the last": (
        Expected(),
        """
        %s0 = stream "p"
        %s1 = role_begin %s0 "user"
        %s2 = append %s1 %x
        %s3 = role_end %s2 "user"
        %s4, %a = gen %s3
        %s5 = const %s4 "b"
        %s6, %b = gen %s5
        return none
        """,
        """
        %s0 = stream "p"
        %s1 = role_begin %s0 "user"
        %s2 = append %s1 %x
        %s3 = role_end %s2 "user"
        %s3_kept = cache %s3
        %s4, %a = gen %s3_kept
        %s5 = const %s4 "b"
        %s6, %b = gen %s5
        return none
        """,
    ),
    "what rows share, and not their arguments": (
        Expected(rows=8),
        """
        %s0 = stream "p"
        %s1 = const %s0 "rules"
        %s2 = append %s1 %x
        %s3, %a = gen %s2
        return none
        """,
        """
        %s0 = stream "p"
        %s1 = const %s0 "rules"
        %s1_kept = cache %s1
        %s2 = append %s1_kept %x
        %s3, %a = gen %s2
        return none
        """,
    ),
    "an argument that is the same in all rows": (
        Expected(rows=8, equal=frozenset({"x"})),
        """
        %s0 = stream "p"
        %s1 = append %s0 %x
        %s2, %a = gen %s1
        return none
        """,
        """
        %s0 = stream "p"
        %s1 = append %s0 %x
        %s1_kept = cache %s1
        %s2, %a = gen %s1_kept
        return none
        """,
    ),
    "two streams that begin alike": (
        Expected(),
        """
        %s0 = stream "p"
        %s1 = const %s0 "rules"
        %s2, %a = gen %s1
        %r0 = stream "q"
        %r1 = const %r0 "rules"
        %r2 = append %r1 %a
        %r3, %b = gen %r2
        return none
        """,
        """
        %s0 = stream "p"
        %s1 = const %s0 "rules"
        %s1_kept = cache %s1
        %s2, %a = gen %s1_kept
        %r0 = stream "q"
        %r1 = const %r0 "rules"
        %r1_kept = cache %r1
        %r2 = append %r1_kept %a
        %r3, %b = gen %r2
        return none
        """,
    ),
    "a prompt that is asked with once": (
        Expected(),
        """
        %s0 = stream "p"
        %s1 = const %s0 "rules"
        %s2, %a = gen %s1
        return none
        """,
        None,
    ),
    "rows that share nothing": (
        Expected(rows=8),
        """
        %s0 = stream "p"
        %s1 = append %s0 %x
        %s2 = const %s1 "rules"
        %s3, %a = gen %s2
        return none
        """,
        None,
    ),
    "replies held to different schemas read nothing of each other": (
        Expected(),
        """
        %s0 = stream "p"
        %s1 = const %s0 "rules"
        %t, %u = fork %s1 1
        %t1, %a = gen %t
        %u1, %b = gen %u json_schema="{}"
        return none
        """,
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_where_marks_are(case):
    expected, before, after = CASES[case]
    row = for_rules(RULES, expected)
    given = graph(before)
    found = run_pass(row, given)
    assert run_pass(row, found) is found
    if after is None:
        assert found is given
    else:
        assert found == graph(after)
        assert found.receipts[-1].pass_name == "place_caches"


def test_too_short_is_not_marked_and_dearer_writes_need_more_reads():
    _, before, after = CASES["a fork's trunk"]
    short = CacheRules(1.25, 0.1, min_tokens=1001, breakpoints=4, chars_per_token=0.01)
    assert run_pass(for_rules(short), graph(before)) == graph(before)
    hour = CacheRules(2.0, 0.1, min_tokens=100, breakpoints=4, chars_per_token=0.01, ttl="1h")
    assert run_pass(for_rules(hour), graph(before)) == graph(before)
    rows = run_pass(for_rules(hour, Expected(rows=2)), graph(before))
    assert rows == graph(after.replace("cache %s1", 'cache %s1 ttl="1h"'))


def test_where_the_provider_marks_by_itself_each_beginning_says_that_there_is_a_plan():
    rules = CacheRules(1.25, 0.1, min_tokens=100, breakpoints=4, is_implicit=True)
    found = run_pass(for_rules(rules), graph(CASES["a prompt that is asked with once"][1]))
    assert [node.op for node in found.nodes()][:3] == ["stream", "cache", "const"]


def test_a_loop_is_gone_round_and_marks_go_where_its_turns_ask():
    body = """
        ^entry:
          %s0 = stream "p"
          %s1 = append %s0 %x
          jump "turn" args=[%s1]
        ^turn(%t0: stream):
          %t1 = const %t0 "more"
          %t2, %a = gen %t1
          %done: bool = compute "eq" [%a, "stop"]
          branch %done then="end" orelse="again"
        ^again:
          jump "turn" args=[%t2]
        ^end:
          return none
    """
    found = run_pass(for_rules(RULES), graph(body))
    marked = [n.get("stream").name for n in found.nodes() if n.op == "cache"]
    assert marked == ["t1"]


def test_a_called_program_is_planned_for_its_items():
    body = '%s0 = stream "p"\n%a = map 0 %xs caller=%s0 names=["a"]\nreturn none'
    inner = called("""
        %s0 = stream "c"
        %s1 = const %s0 "rules"
        %s2 = append %s1 %y
        %s3, %a = gen %s2
        publish %s3 "c" keys=["a"] items=[%a]
        return none
    """)
    program = graph(body, inner)
    found = run_pass(for_rules(RULES, Expected(lengths={"xs": 3})), program)
    assert [n.op for n in found.called[0].nodes()][:4] == ["stream", "const", "cache", "append"]
    assert run_pass(for_rules(RULES, Expected(lengths={"xs": 1})), program) is program


def test_the_pass_is_for_a_model():
    with pytest.raises(UsageError, match="place_caches is for a model"):
        choose_passes(("place_caches",))
    target = passes_for("anthropic:claude-opus-5", rows=3)
    assert choose_passes(("place_caches",), target) == target
    for uri in ("anthropic:claude-unknown", "openai:gpt-4", "anthropic:claude-opus-5?cache=off"):
        with pytest.raises(UsageError, match="nothing is known of a prompt cache"):
            passes_for(uri)
    with pytest.raises(UsageError, match="expected a provider's model"):
        passes_for("grpc://host:1")
    ends = 'publish %u2 "p" keys=["a", "b"] items=[%a, %b]\nreturn none'
    body = textwrap.dedent(CASES["a fork's trunk"][1]).replace("return none", ends)
    before = graph(body.replace("long", "long " * 1000))
    assert optimize(before, 0, target=target) is before
    assert any(n.op == "cache" for n in optimize(before, 1, target=target).nodes())


@pytest.mark.parametrize(
    ("uri", "rules"),
    [
        ("anthropic:claude-opus-5", CacheRules(1.25, 0.1, 512, 4)),
        ("anthropic:claude-haiku-4-5?cache_ttl=1h", CacheRules(2.0, 0.1, 4096, 4, ttl="1h")),
        ("openai:gpt-5.6", CacheRules(1.25, 0.1, 1024, 4, is_implicit=True)),
        ("openai:gpt-4o", CacheRules(1.0, 0.5, 1024, None, n_in_one=True)),
        ("openai:gpt-4.1", CacheRules(1.0, 0.25, 1024, None, n_in_one=True)),
    ],
)
def test_rules_come_from_the_table_and_the_prices(uri, rules):
    assert rules_of(facts_of(uri)) == rules


# -- the best marks --


def random_tree(rng: random.Random, n: int) -> PromptTree:
    tree = PromptTree()
    for number in range(1, n):
        parent = rng.randrange(number)
        tokens, is_equal = rng.choice((10, 200, 900)), rng.random() < 0.7
        place = tree.places[tree.child_after(parent, number, tokens, is_equal)]
        place.states += [f"s{number}"] * (rng.random() < 0.8)
        if rng.random() < 0.5:
            place.asked[rng.choice("ab")] += rng.randrange(1, 3)
    return tree


def saved(tree: PromptTree, marks: frozenset[int], worth: list[float]) -> float:
    """What marks save: each keeps what lies between it and the one above."""
    total = 0.0
    for number in marks:
        above = tree.places[number].parent
        while above > ROOT and above not in marks:
            above = tree.places[above].parent
        kept = tree.places[number].tokens - tree.places[max(above, ROOT)].tokens
        total += worth[number] * kept
    return total


def fits(tree: PromptTree, marks: frozenset[int], most: int) -> bool:
    """Whether no path has too many marks before its first request, or between two."""
    left = {ROOT: most}
    for number, place in enumerate(tree.places):
        if number > ROOT:
            left[number] = left[place.parent] - (number in marks)
        if left[number] < 0:
            return False
        if place.asked:
            left[number] = most - 1
    return True


@pytest.mark.parametrize("seed", range(60))
def test_the_marks_are_the_best_of_all_sets(seed):
    rng = random.Random(seed)
    tree = random_tree(rng, 9)
    most = rng.choice((1, 2, 4))
    rows = rng.choice((1, 3))
    rules = CacheRules(rng.choice((1.25, 2.0)), 0.1, min_tokens=150, breakpoints=most)
    worth = gains(tree, rules, rows)
    found = best_marks(tree, rules, rows)
    assert fits(tree, found, most)
    places = [number for number, each in enumerate(worth) if each > 0]
    sets = (frozenset(s) for n in range(len(places) + 1) for s in itertools.combinations(places, n))
    best = max(saved(tree, each, worth) for each in sets if fits(tree, each, most))
    assert saved(tree, found, worth) == pytest.approx(best)


def test_in_a_tree_too_large_for_the_search_all_that_pays_is_marked(monkeypatch):
    tree = random_tree(random.Random(7), 60)
    rules = CacheRules(1.25, 0.1, min_tokens=150, breakpoints=1)
    few = best_marks(tree, rules)
    monkeypatch.setattr(trees, "MAX_STATES", 0)
    many = best_marks(tree, rules)
    assert few < many == {n for n, each in enumerate(gains(tree, rules, 1)) if each > 0}


# -- random programs --


@pytest.mark.slow
@pytest.mark.parametrize("made", [runs.straight_case, runs.control_case])
def test_marks_change_no_request(made):
    assert n_changed(made, range(3)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("made", [runs.straight_case, runs.control_case])
def test_marks_change_no_request_of_many(made):
    assert n_changed(made, range(6, 250)) > 100


def n_changed(made, seeds):
    """Programs that got marks; all of them ask for the same as before."""
    n = 0
    for seed in seeds:
        case = made(seed)
        if case is None:
            continue
        before, twin = runs.twins(case.graph)
        wanted = case.run(before)
        for rows in (1, 5):
            row = for_rules(RULES, Expected(rows=rows))
            after = runs.check_pass(row, before, twin)
            if after is not before:
                n += 1
                runs.assert_kept(Preserves.REQUESTS, wanted, case.run(after), f"seed {seed}")
    return n
