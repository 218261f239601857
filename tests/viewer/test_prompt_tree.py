"""The tree of prompts holds every prompt once, and its sums are the requests' own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.runtime.executor.interface.backend import Usage
from sgc.viewer.asked import Asked, generated_spans
from sgc.viewer.prompt_tree import common_length, prompt_tree


def asked(prompt: str, text: str | None = "", start_s: float = 0.0, **more: object) -> Asked:
    given = {"kind": "generate", "name": "x", "usage": Usage(), **more}
    return Asked(
        "0", "program", given["kind"], given["name"], "p.py:1", prompt, text, start_s,
        start_s + 0.5, given["usage"], choices=given.get("choices", ()),
    )  # fmt: skip


prompts = st.text("ab\U0001f600", max_size=8)
requests = st.lists(
    st.builds(
        lambda prompt, cached: asked(
            prompt,
            usage=Usage(len(prompt), min(cached, len(prompt)), max(0, len(prompt) - cached)),
        ),
        prompts,
        st.integers(0, 8),
    ),
    max_size=12,
)


@given(requests)
@examples(800)
def test_every_prompt_is_a_path_and_every_sum_is_kept(found: list[Asked]) -> None:
    tree = prompt_tree(found)
    for each, end in zip(found, tree.ends, strict=True):
        text, at = "", end
        while at:
            part = tree.parts[at]
            assert part.parent < at
            text = found[part.sample].prompt[tree.parts[part.parent].depth : part.depth] + text
            at = part.parent
        assert text == each.prompt
    for part in tree.parts[1:]:
        prefix = found[part.sample].prompt[: part.depth]
        assert part.requests == sum(each.prompt.startswith(prefix) for each in found)
    sums = [sum(getattr(part, name) for part in tree.parts) for name in ("tokens", "computed")]
    assert sums[0] == pytest.approx(sum(each.usage.prompt_tokens for each in found))
    assert sums[1] == pytest.approx(sum(each.usage.computed_tokens for each in found))


@given(requests)
@examples(800)
def test_siblings_begin_differently(found: list[Asked]) -> None:
    tree = prompt_tree(found)
    starts = [
        (part.parent, found[part.sample].prompt[tree.parts[part.parent].depth])
        for part in tree.parts[1:]
    ]
    assert len(set(starts)) == len(starts)


def test_what_was_shared_is_not_counted() -> None:
    usage = Usage(prompt_tokens=4, computed_tokens=4, from_shared=True)
    tree = prompt_tree([asked("abcd", usage=usage), asked("abcd", usage=Usage(4, 0, 4))])
    assert [(part.requests, part.tokens) for part in tree.parts] == [(2, 0.0), (2, 4.0)]


@given(prompts, prompts)
@examples(400)
def test_common_length(one: str, other: str) -> None:
    length = common_length(one, other)
    assert one[:length] == other[:length]
    assert one[length : length + 1] != other[length : length + 1] or length == len(one) == len(
        other
    )


def test_spans_are_what_models_wrote() -> None:
    first = asked("Tip:", " tea", 0.0)
    second = asked("Tip: tea\nWhy?", " hot", 1.0)
    choice = asked("Tip: tea\nWhy? hot\nGood?", None, 2.0, kind="score", choices=("no", "no way"))
    last = asked("Tip: tea\nWhy? hot\nGood?no way\nEnd", "", 3.0)
    pairs = generated_spans([last, choice, second, first])
    assert [each.text for each, _ in pairs] == [" tea", " hot", "no way", ""]
    assert [spans for _, spans in pairs] == [
        (), ((4, 8),), ((4, 8), (13, 17)), ((4, 8), (13, 17), (23, 29)),
    ]  # fmt: skip


def test_a_choice_that_nothing_tells_stays_unknown() -> None:
    choice = asked("Good?", None, 0.0, kind="score", choices=("yes", "no"))
    elsewhere = asked("Bad?", "", 1.0)
    assert generated_spans([choice, elsewhere])[0][0].text is None


def test_of_two_draws_the_longer_one_is_continued() -> None:
    draws = [asked("Tip:", " tea time", 0.0), asked("Tip:", " tea", 0.1)]
    *_, (_, spans) = generated_spans([*draws, asked("Tip: tea time\nWhy?", "", 1.0)])
    assert spans == ((4, 13),)
