"""Prompts become the ids that the model's own tokenizer gives; later runs are continuations."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from property_tests import examples
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, processors

from sgc.errors import LoadError
from sgc.runtime.engine.text.literal import SpecialFinder, SpecialToken
from sgc.runtime.engine.text.tokenizer import Ids, Text, Tokenizer, _RunCache, load_tokenizer

KINDS = [
    "shipped",
    "byte",
    "byte_prefix",
    "spm_first",
    "spm_always",
    "unigram",
    "prepend",
    "llama_class",
]
TokenizerOf = Callable[[str], Tokenizer]
PIECES = [
    *("a", "The", " ", "  ", "\n", "dog", " dog", "é", "你好", "🙂", "▁", "12", "3", ".", "I'm"),
    *(
        "<s>",
        "</s>",
        "<|mid|>",
        "<|end|>",
        "<|im_end|>",
        "<unk>",
        "<",
        "|>",
        "<0x41>",
        "\t",
        "\u200d",
    ),
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=8).map("".join)


@cache
def hugging_face(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder))


@pytest.mark.parametrize("kind", KINDS)
def test_prompt_without_generation_is_what_autotokenizer_gives(
    kind: str, tokenizer_of: TokenizerOf, tokenizer_folder: Callable[[str], Path]
) -> None:
    ours, theirs = tokenizer_of(kind), hugging_face(tokenizer_folder(kind))

    @examples(150)
    @given(texts)
    @example("")
    @example(" leading")
    @example("a <|mid|> b")
    @example("<|mid|>x")
    @example("The quick brown fox\n\n  jumps")
    def check(text: str) -> None:
        assert ours.encode_prompt([Text(text)]) == theirs(text).input_ids

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_continuation_has_no_bos_and_no_added_space(kind: str, tokenizer_of: TokenizerOf) -> None:
    ours = tokenizer_of(kind)
    start = [*ours.encode_prompt([Text("The dog")])]
    kept = ours.encode_continuation(" sleeps")
    whole = ours.encode_prompt([Text("The dog"), Ids(tuple(kept)), Text("dog")])
    assert whole[: len(start) + len(kept)] == start + kept
    rest = whole[len(start) + len(kept) :]
    assert ours.backend.decode([*kept, *rest]).strip() == "sleepsdog"
    assert not set(ours.prefix_ids) & set(rest)


@pytest.mark.parametrize("kind", ["byte_prefix", "spm_first", "unigram", "prepend"])
def test_first_run_gets_the_space_that_a_later_one_does_not(
    kind: str, tokenizer_of: TokenizerOf
) -> None:
    ours = tokenizer_of(kind)
    first = ours.encode_prompt([Text("dog")])[len(ours.prefix_ids) :]
    assert first != ours.encode_continuation("dog")
    assert first == ours.encode_continuation(" dog")


@pytest.mark.parametrize("kind", ["byte_prefix", "spm_first", "shipped"])
def test_empty_runs_change_nothing(kind: str, tokenizer_of: TokenizerOf) -> None:
    ours = tokenizer_of(kind)
    prefix = list(ours.prefix_ids)
    assert ours.encode_prompt([]) == ours.encode_prompt([Text("")]) == prefix
    assert ours.encode_prompt([Text(""), Text("dog")]) == ours.encode_prompt([Text("dog")])
    assert ours.encode_prompt([Text(""), Ids((7, 8))]) == [*prefix, 7, 8]
    assert ours.encode_prompt([Ids((7,)), Text("dog")]) == [
        *prefix,
        7,
        *ours.encode_continuation("dog"),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_special_token_in_a_literal_span_is_plain_text(
    kind: str, tokenizer_of: TokenizerOf
) -> None:
    ours = tokenizer_of(kind)
    special = ours.special_tokens[-1]
    special_id = ours.backend.token_to_id(special)
    text = f"a {special} b {special}"
    second = text.rindex(special)
    both = ours.encode_prompt([Text(text)])
    one = ours.encode_prompt([Text(text, ((2, 2 + len(special)),))])
    none = ours.encode_prompt([Text(text, ((3, 4), (second, second + 1)))])
    assert [ids.count(special_id) for ids in (both, one, none)] == [2, 1, 0]
    assert one[-1] == special_id
    if kind != "unigram":  # whose unknown characters are lost
        assert ours.backend.decode(none, skip_special_tokens=True).strip() == text


@pytest.mark.parametrize("kind", KINDS)
def test_literal_spans_that_touch_no_special_token_change_nothing(
    kind: str, tokenizer_of: TokenizerOf
) -> None:
    ours = tokenizer_of(kind)
    special = ours.special_tokens[-1]

    @examples(60)
    @given(st.lists(st.sampled_from(["a", " dog", special, "\n", " ", "The"]), max_size=8))
    def check(pieces: list[str]) -> None:
        text, spans = "", []
        for piece in pieces:
            if piece != special:
                spans.append((len(text), len(text) + len(piece)))
            text += piece
        assert ours.encode_prompt([Text(text, tuple(spans))]) == ours.encode_prompt([Text(text)])

    check()


@pytest.mark.parametrize("kind", ["byte", "byte_prefix", "spm_first", "spm_always", "prepend"])
def test_specials_outside_literal_spans_stay_special(kind: str, tokenizer_of: TokenizerOf) -> None:
    """A text with its literal special token swapped for a word splits at the same places."""
    ours = tokenizer_of(kind)
    text = "The<|mid|>dog <s> and<|mid|>dog"
    literal = ours.encode_prompt([Text(text, ((14, 17),))])
    mid = ours.backend.token_to_id("<|mid|>")
    assert literal.count(mid) == 2
    plain = ours.encode_prompt([Text(text.replace("<s>", "dog"))])
    assert literal[: literal.index(mid) + 2] == plain[: plain.index(mid) + 2]
    assert literal[-2:] == plain[-2:]


@pytest.mark.parametrize("kind", KINDS)
def test_choices_are_tokenized_with_the_prompt(kind: str, tokenizer_of: TokenizerOf) -> None:
    ours = tokenizer_of(kind)
    words = st.lists(st.sampled_from(["the", " dog", "do", "g", "12", "3", " ", "e", "\n"]))
    prompts = st.sampled_from(["The quick", "Hello ", "1", "Answer: ", "The dog\n"])

    @examples(80)
    @given(prompts, st.lists(words.map("".join).filter(bool), min_size=1, max_size=5))
    def check(prompt: str, choices: list[str]) -> None:
        prompt_ids, choice_ids = ours.encode_choices([Text(prompt)], choices)
        assert prompt_ids
        assert all(choice_ids)
        joint = [ours.encode_prompt([Text(prompt + choice)]) for choice in choices]
        if [prompt_ids + ids for ids in choice_ids] != joint:  # nothing in common
            assert prompt_ids == ours.encode_prompt([Text(prompt)])
            return
        alone = ours.encode_prompt([Text(prompt)])
        all_agree = len({tuple(ids[: len(prompt_ids) + 1]) for ids in [alone, *joint]}) == 1
        longer_would_be_empty = any(len(ids) == 1 for ids in choice_ids)
        assert not all_agree or longer_would_be_empty

    check()


def test_choice_that_merges_with_the_prompt_moves_the_border(shipped: Tokenizer) -> None:
    prompt_ids, choice_ids = shipped.encode_choices([Text("The answ")], ["er", "ers", " x"])
    alone = shipped.encode_prompt([Text("The answ")])
    assert len(prompt_ids) < len(alone)
    assert shipped.backend.decode(prompt_ids + choice_ids[0]) == "The answer"
    kept = Ids(tuple(alone))
    prompt_ids, choice_ids = shipped.encode_choices([kept], ["er", " x"])
    assert prompt_ids == alone  # kept ids never merge
    assert choice_ids[0] == shipped.encode_continuation("er")


def test_choices_without_prompt_or_text_are_refused(shipped: Tokenizer) -> None:
    with pytest.raises(ValueError, match="no token"):
        shipped.encode_choices([], ["a"])
    with pytest.raises(ValueError, match="empty"):
        shipped.encode_choices([Text("a")], ["b", ""])


def test_a_choice_without_tokens_of_its_own_moves_the_cut_back(
    tokenizer_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    spec = json.loads((tokenizer_folder("byte") / "tokenizer.json").read_text(encoding="utf-8"))
    spec["normalizer"] = {"type": "Strip", "strip_left": False, "strip_right": True}
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    tokenizer = load_tokenizer(tmp_path)
    alone = tokenizer.encode_prompt([Text("The dog")])
    prompt_ids, choice_ids = tokenizer.encode_choices([Text("The dog")], [" ", " and"])
    assert prompt_ids == alone[:-1]
    assert choice_ids[0] == alone[-1:]
    assert choice_ids[1][0] == alone[-1]


def test_a_literal_occurrence_does_not_hide_one_that_overlaps_it() -> None:
    finder = SpecialFinder([SpecialToken(1, "<<a"), SpecialToken(2, "a>>"), SpecialToken(3, "a")])
    text = "<<a>> <<a>>"
    assert [(o.start, o.end, o.id) for o in finder.outside(text, ((0, 1),))] == [
        (2, 5, 2),
        (6, 9, 1),
    ]
    assert not finder.touches(text, ((5, 6), (9, 9)))


def test_swallowed_spaces_belong_to_the_special_token() -> None:
    tokens = [
        SpecialToken(1, "<m>", lstrip=True, rstrip=True),
        SpecialToken(2, "w", single_word=True),
    ]
    found = SpecialFinder(tokens).outside("a  <m> b w aw", ())
    assert [(o.start, o.end, o.id) for o in found] == [(1, 7, 1), (9, 10, 2)]


def test_a_special_token_in_a_choice_is_plain_text(shipped: Tokenizer) -> None:
    _, choice_ids = shipped.encode_choices([Text("Say ")], ["<|im_end|>"])
    assert not set(choice_ids[0]) & shipped.special_ids


@pytest.mark.parametrize("kind", KINDS)
def test_commit_is_a_prefix_of_whatever_follows(kind: str, tokenizer_of: TokenizerOf) -> None:
    ours = tokenizer_of(kind)

    @examples(60)
    @given(st.sampled_from(["The qui", "Hello world", "Answer:", "a\n"]), texts, texts)
    def check(prompt: str, one: str, two: str) -> None:
        committed = ours.encode_commit([Text(prompt)], [one, two])
        wholes = [ours.encode_prompt([Text(prompt + head)]) for head in (one, two)]
        assert all(ids[: len(committed)] == committed for ids in wholes)
        at = len(committed)
        assert len({tuple(ids[at : at + 1]) for ids in wholes}) == 2 or wholes[0] == wholes[1]

    check()


def test_commit_without_heads_leaves_out_an_unsettled_last_token(shipped: Tokenizer) -> None:
    settled = shipped.encode_commit([Text("The answer is that the q")])
    whole = shipped.encode_prompt([Text("The answer is that the q")])
    assert settled == whole[: len(settled)]
    assert len(whole) - 2 <= len(settled) < len(whole)


def test_eos_ids_and_fingerprint(tokenizer_folder: Callable[[str], Path], tmp_path: Path) -> None:
    shipped = load_tokenizer(tokenizer_folder("shipped"))
    assert shipped.eos_ids == (0, 2)
    assert shipped.fingerprint == load_tokenizer(tokenizer_folder("shipped")).fingerprint
    for path in tokenizer_folder("shipped").glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    config |= {"bos_token": "<|new|>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    changed = load_tokenizer(tmp_path)
    assert changed.special_tokens[-1] == "<|new|>"
    assert changed.fingerprint != shipped.fingerprint


def test_unreadable_folders_are_load_errors(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"no tokenizer\.json"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(LoadError, match=r"tokenizer\.json is not valid JSON"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"}')
    with pytest.raises(LoadError, match="cannot be used"):
        load_tokenizer(tmp_path)


def test_loading_imports_neither_torch_nor_transformers() -> None:
    code = (
        "import sys; from sgc.runtime.engine.text.tokenizer import load_tokenizer;"
        "from sgc.runtime.engine.model.models import DEFAULT_FOLDER;"
        "import sgc.runtime.engine.text.detokenizer, sgc.runtime.engine.serve;"
        "import sgc.runtime.engine.serving;"
        "load_tokenizer(DEFAULT_FOLDER).encode_prompt([]);"
        "print([m for m in ('torch', 'transformers', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_text_without_an_end_token_is_a_prompt(
    kind: str, tokenizer_of: TokenizerOf
) -> None:
    ours = tokenizer_of(kind)
    assert ours.suffix_ids == ()
    assert ours.encode_whole([Text("The dog")]) == ours.encode_prompt([Text("The dog")])


def test_a_whole_text_has_what_the_tokenizer_puts_around_it(tmp_path: Path) -> None:
    backend = Backend(
        models.WordLevel({"<s>": 0, "</s>": 1, **{c: i + 2 for i, c in enumerate("abcd")}})
    )
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.add_special_tokens(["<s>", "</s>"])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    backend.save(str(tmp_path / "tokenizer.json"))
    ours = load_tokenizer(tmp_path)
    assert (ours.prefix_ids, ours.suffix_ids) == ((0,), (1,))
    for text in ("a b c d", "", "a </s>"):
        assert ours.encode_whole([Text(text)]) == backend.encode(text).ids
    assert ours.encode_prompt([Text("a b")]) == [0, 2, 3]
    assert ours.encode_whole([Ids((2, 3))]) == ours.encode_whole([Ids((2, 3, 1))]) == [0, 2, 3, 1]
    for last, ids in (
        (9, [0, 2, 3, 4, 1]),
        (5, [0, 2, 3, 4, 1]),
        (3, [0, 4, 1]),
        (2, [0, 1]),
        (1, [1]),
    ):
        assert ours.encode_whole([Text("a b c")], last) == ids


def test_what_is_remembered_of_texts_is_bounded_in_bytes() -> None:
    """Texts and ids together: as tuples of numbers the ids would be ten times their texts."""
    kept = _RunCache(max_chars=100_000)
    for i in range(300):
        kept.put((b"", f"{i} " + "word " * 400, (), True), tuple(range(1000, 1400)))
    held = sum(sys.getsizeof(key[1]) + sys.getsizeof(ids) for key, ids in kept._items.items())
    assert held < 200_000
    assert len(kept._items) > 20
    key = (b"", "299 " + "word " * 400, (), True)
    assert kept.get(key) == tuple(range(1000, 1400))
    assert kept.get((b"other", *key[1:])) is None
