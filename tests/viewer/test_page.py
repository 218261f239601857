"""A page is one file: hostile texts are data in it, and its policy lets it load nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.viewer.page import page
from sgc.viewer.texts import cut, plain, script_json

LOOP: list[object] = []
LOOP.append(LOOP)
HOSTILE = ("</script><script>alert(1)</script>", "<!--<script>", "]]>", "\u2028", "\ud800", "&lt;")
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(HOSTILE),
    lambda each: (
        st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=3), each, max_size=3)
    ),
    max_leaves=8,
)


@given(values)
@examples(400)
def test_data_ends_no_element_and_rounds_no_number(value: object) -> None:
    text = script_json(value)
    assert not re.search(r"[<>&]", text)
    text.encode("ascii")

    def refuse(name: str) -> None:
        raise AssertionError(f"no JSON: {name}")

    def check(number: str) -> int:
        assert abs(int(number)) < 2**53
        return int(number)

    json.loads(text, parse_constant=refuse, parse_int=check)


def test_the_page_has_its_data_once_and_its_policy() -> None:
    data = {"rows": {"rows": [{"key": HOSTILE[0], "inputs": {}}], "all": 1, "failed": 0}}
    html = page(data, "<b>title</b>")
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert [json.loads(each) for each in found] == [data]
    assert "<title>&lt;b&gt;title&lt;/b&gt;</title>" in html
    page({}, "\ud800" * 1000).encode("utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy[1]
    assert policy[1].count("sha256-") == html.count("<script>")


def test_no_asset_names_another_file() -> None:
    html = page({}, "x")
    assert "sourceMappingURL" not in html
    assert not re.search(r"""(?:src|href)\s*=\s*["']|@import|url\(["']?(?:\w+:)?//""", html)


def test_our_scripts_parse_no_html() -> None:
    import sgc.viewer.page as module

    for script in (Path(module.__file__).parent / "assets").glob("*.js"):
        text = script.read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text
        ), script


@given(st.text(max_size=300), st.integers(20, 100))
@examples(400)
def test_a_cut_text_keeps_both_ends(text: str, most: int) -> None:
    found = cut(text, most)
    if len(text) <= most:
        assert found == text
        return
    head, _, tail = found.partition("\n[… ")
    assert text.startswith(head)
    assert text.endswith(tail.partition(" …]\n")[2])
    assert len(head) + len(tail.partition(" …]\n")[2]) == most


@pytest.mark.parametrize(
    "value", [{"a": object()}, [1, {2, 3}], {(1, 2): 3}, LOOP, "x" * 200_000, float("nan")]
)
def test_plain_values_are_json(value: object) -> None:
    json.dumps(plain(value))
    assert len(json.dumps(plain(value))) < 120_000
