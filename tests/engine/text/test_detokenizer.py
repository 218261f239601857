"""Pieces of text concatenate to the whole; stop strings are found whatever the token cuts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from property_tests import examples

from sgc.runtime.engine.preparing.generated_text import GeneratedText
from sgc.runtime.engine.text.detokenizer import (
    IncrementalDetokenizer,
    StopChecker,
    first_stop,
    split_kept,
)
from sgc.runtime.engine.text.tokenizer import Tokenizer

TABLE_KINDS = ["shipped", "byte", "byte_prefix", "spm_first", "prepend", "unigram"]
BYTE_KINDS = ["shipped", "byte", "byte_prefix", "spm_first", "prepend"]
TokenizerOf = Callable[[str], Tokenizer]
ALPHABET = "ab c\nédog你🙂 the."
texts = st.text(alphabet=ALPHABET, max_size=24)


def pieces_of(tokenizer: Tokenizer, ids: list[int], step: int = 1) -> list[str]:
    detokenizer = IncrementalDetokenizer(tokenizer)
    out = [detokenizer.feed(ids[i : i + step]) for i in range(0, len(ids), step)]
    return [*out, detokenizer.flush()]


@pytest.mark.parametrize("kind", BYTE_KINDS)
def test_text_comes_back_as_it_was(kind: str, tokenizer_of: TokenizerOf) -> None:
    tokenizer = tokenizer_of(kind)

    @examples(100)
    @given(texts, st.integers(1, 3))
    def check(text: str, step: int) -> None:
        ids = tokenizer.encode_continuation(text)
        assert "".join(pieces_of(tokenizer, ids, step)) == text

    check()


@pytest.mark.parametrize("kind", TABLE_KINDS)
def test_any_ids_decode_like_the_library(kind: str, tokenizer_of: TokenizerOf) -> None:
    """But for a leading space, which a continuation keeps, and bytes that are no UTF-8."""
    tokenizer = tokenizer_of(kind)

    @examples(150)
    @given(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=12))
    def check(ids: list[int]) -> None:
        ours = "".join(pieces_of(tokenizer, ids))
        theirs = tokenizer.backend.decode(ids, skip_special_tokens=True)
        if "\ufffd" in ours and kind not in ("shipped", "byte", "byte_prefix"):
            return
        assert ours == theirs or ours.removeprefix(" ") == theirs

    check()


@pytest.mark.parametrize("kind", TABLE_KINDS)
def test_no_piece_is_ever_retracted(kind: str, tokenizer_of: TokenizerOf) -> None:
    tokenizer = tokenizer_of(kind)

    @examples(80)
    @given(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=10), st.integers(0, 10))
    def check(ids: list[int], at: int) -> None:
        detokenizer = IncrementalDetokenizer(tokenizer)
        early = detokenizer.feed(ids[:at])
        assert "".join(pieces_of(tokenizer, ids)).startswith(early)

    check()


def test_a_character_in_several_tokens_waits_for_the_last(shipped: Tokenizer) -> None:
    ids = shipped.encode_continuation("🙂")
    assert len(ids) == 4
    assert pieces_of(shipped, ids) == ["", "", "", "🙂", ""]
    assert pieces_of(shipped, ids[:2]) == ["", "", "\ufffd"]
    detokenizer = IncrementalDetokenizer(shipped)
    detokenizer.feed(ids[:2])
    assert not detokenizer.is_whole


def test_leading_space_stays(tokenizer_of: TokenizerOf) -> None:
    for kind in TABLE_KINDS:
        tokenizer = tokenizer_of(kind)
        assert "".join(pieces_of(tokenizer, tokenizer.encode_continuation(" dog"))) == " dog"


def test_special_tokens_give_no_text(shipped: Tokenizer) -> None:
    ids = [*shipped.encode_continuation("a"), 1, 2, *shipped.encode_continuation("b"), 0]
    assert "".join(pieces_of(shipped, ids)) == "ab"


def test_unknown_decoder_is_decoded_by_windows(shipped: Tokenizer) -> None:
    class Unknown(Tokenizer):
        decoder_spec = {"type": "WordPiece"}  # noqa: RUF012

    tokenizer = Unknown(shipped._files)
    text = "The answer — naïve 🙂 café. " * 8
    ids = shipped.encode_continuation(text)
    assert "".join(pieces_of(tokenizer, ids)) == text


@examples(200)
@given(
    st.text("ab ", max_size=12),
    st.lists(st.text("ab ", min_size=1, max_size=4), min_size=1, max_size=3),
)
@example("abcd", ["bcd", "c"])
def test_first_stop_is_the_one_that_ends_first(text: str, stop: list[str]) -> None:
    ends = [(end, -len(s), s) for s in stop for end in range(len(text) + 1) if _ends(text, end, s)]
    assert first_stop(text, stop, 0) == (min(ends)[::-2] if ends else None)


def _ends(text: str, end: int, string: str) -> bool:
    return end >= len(string) and text[end - len(string) : end] == string


@pytest.mark.parametrize("kind", ["shipped", "spm_first"])
def test_stop_checker_does_not_depend_on_token_cuts(kind: str, tokenizer_of: TokenizerOf) -> None:
    tokenizer = tokenizer_of(kind)
    stops = st.lists(st.text("ab dogthe.é\n", min_size=1, max_size=5), min_size=1, max_size=3)

    @examples(150)
    @given(texts, stops, st.integers(1, 4))
    def check(text: str, stop: list[str], step: int) -> None:
        ids = tokenizer.encode_continuation(text)
        checker = StopChecker(tokenizer, stop)
        found = next(
            (m for i in range(0, len(ids), step) if (m := checker.feed(ids[i : i + step]))), None
        )
        assert found == (first_stop(text, stop, 0) or (None,))[0]

    check()


def test_stop_checker_without_stop_strings_decodes_nothing(shipped: Tokenizer) -> None:
    assert StopChecker(shipped, []).feed([10**9]) is None


@pytest.mark.parametrize("kind", BYTE_KINDS)
def test_kept_ids_and_tail_are_the_text(kind: str, tokenizer_of: TokenizerOf) -> None:
    tokenizer = tokenizer_of(kind)

    @examples(150)
    @given(texts, st.integers(0, 24))
    def check(text: str, cut: int) -> None:
        cut = min(cut, len(text))
        ids = tokenizer.encode_continuation(text)
        kept, tail = split_kept(tokenizer, ids, cut)
        assert ids[: len(kept)] == list(kept)
        assert "".join(pieces_of(tokenizer, list(kept))) + tail == text[:cut]
        for n in range(len(kept) + 1, len(ids) + 1):
            longer = "".join(pieces_of(tokenizer, ids[:n]))
            assert not (longer and text[:cut].startswith(longer) and len(longer) > cut - len(tail))

    check()


def run_generation(
    tokenizer: Tokenizer, ids: list[int], stop: list[str]
) -> tuple[list[str], str, GeneratedText, object]:
    """What the worker and the server do together: deltas, the stop, the final text."""
    checker, text = StopChecker(tokenizer, stop), GeneratedText(tokenizer, stop)
    deltas, matched = [], None
    for token_id in ids:
        matched = checker.feed([token_id])
        delta = text.feed([token_id])
        if matched:
            break
        deltas.append(delta)
    return deltas, matched or "", text, text.finish(matched or "", False)


@pytest.mark.parametrize("kind", ["shipped", "spm_first"])
def test_streamed_text_never_shows_part_of_a_stop(kind: str, tokenizer_of: TokenizerOf) -> None:
    tokenizer = tokenizer_of(kind)
    stops = st.lists(st.text("ab dogthe\n", min_size=1, max_size=5), min_size=1, max_size=3)

    @examples(200)
    @given(texts, stops)
    @example("aab", ["ab"])
    @example("dog\nthe", ["\nthe dog", "\nthe"])
    def check(text: str, stop: list[str]) -> None:
        ids = tokenizer.encode_continuation(text)
        deltas, matched, generated, final = run_generation(tokenizer, ids, stop)
        streamed = "".join(deltas)
        assert final.text.startswith(streamed)
        first = first_stop(text, stop, 0)
        assert matched == (first[0] if first else "")
        expected = text[: _position(text, stop)] if first else text
        assert final.text == expected
        kept = generated.ids[: final.n_kept]
        assert "".join(pieces_of(tokenizer, kept)) + final.tail == final.text

    check()


def _position(text: str, stop: list[str]) -> int:
    end = min(e for e in range(len(text) + 1) if any(_ends(text, e, s) for s in stop))
    return min(end - len(s) for s in stop if _ends(text, end, s))


def test_an_early_occurrence_before_min_tokens_is_not_the_cut(shipped: Tokenizer) -> None:
    ids = shipped.encode_continuation("x. y. z")
    generated = GeneratedText(shipped, ["."])
    dots = [i for i, token in enumerate(ids) if shipped.backend.decode([token]) == "."]
    generated.feed(ids[: dots[1] + 1])
    assert generated.finish(".", False).text == "x. y"


def test_the_end_token_is_neither_text_nor_kept(shipped: Tokenizer) -> None:
    ids = shipped.encode_continuation("The answer")
    newline = shipped.encode_continuation("\n")
    for end in ([0], newline):
        generated = GeneratedText(shipped, [])
        generated.collect([*ids, *end])
        final = generated.finish("", True)
        assert (final.text, final.n_kept, final.tail) == ("The answer", len(ids), "")


def test_length_keeps_every_id_even_in_the_middle_of_a_character(shipped: Tokenizer) -> None:
    ids = shipped.encode_continuation("a🙂")[:-1]
    generated = GeneratedText(shipped, [])
    generated.feed(ids)
    final = generated.finish("", False)
    assert (final.text, final.n_kept, final.tail) == ("a\ufffd", len(ids), "")
