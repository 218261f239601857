"""The least number of tokens of a text is never more than it has, and refuses what cannot fit."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.preparing.bounds import RequestError, ServerLimits
from sgc.runtime.engine.preparing.prepare import prepare_all, too_long
from sgc.runtime.engine.text.token_count import LeastTokens, least_tokens
from sgc.runtime.engine.text.tokenizer import Text
from sgc.runtime.engine.text.tokenizer import Tokenizer as SgcTokenizer

TokenizerOf = Callable[[str], SgcTokenizer]
SHORT = ServerLimits(64, 64, 3072)
PIECES = ["the", " ", "  ", "\n", "\t", "e\u0301", "\u1fbe\u0308\u0301", "\uff21", "\U0001d400"]
PIECES += [
    "<|pad|>",
    "<s>",
    "é",
    "世界",
    "\u3000",
    "\x1c",
    "a" * 20,
    " " * 30,
    "▁",
    "\u1100\u1161\u11a8",
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=20).map("".join)


def byte_level(normalizer: Any = None, **special: bool) -> Tokenizer:
    """Every byte is a token; so are runs of spaces, and words of up to twenty letters."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {char: i for i, char in enumerate(alphabet)}
    merges = []
    for char in "aĠ":
        for n in (1, 2, 4, 8):
            merges.append((char * n, char * n))
            vocabulary[char * 2 * n] = len(vocabulary)
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    if normalizer is not None:
        made.normalizer = normalizer
    made.add_special_tokens([AddedToken("<|pad|>", **special)])
    return made


MADE = {
    "plain": byte_level(),
    "strips": byte_level(lstrip=True, rstrip=True),
    "NFC": byte_level(normalizers.NFC()),
    "NFKC, strips": byte_level(normalizers.NFKC(), rstrip=True),
    "lowercase": byte_level(normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()])),
}


def least_of(tokenizer: Tokenizer) -> LeastTokens | None:
    return least_tokens(tokenizer, json.loads(tokenizer.to_str()))


@pytest.mark.parametrize("kind", MADE)
@examples(60)
@given(text=texts)
def test_no_text_has_fewer(kind: str, text: str) -> None:
    least = least_of(MADE[kind])
    assert least is not None
    n_tokens = len(MADE[kind].encode(text, add_special_tokens=False).ids)
    assert least.of(text) <= n_tokens
    most = least.most_bytes(n_tokens)
    assert most is None or len(text.encode("utf-8", "surrogatepass")) <= most
    most = least.most_bytes(n_tokens, is_json=True)
    assert most is None or len("".join(rf"\u{ord(c):04x}" for c in text if c <= "\uffff")) <= most
    assert most is None or len(json.dumps(text)) - 2 <= most


@pytest.mark.parametrize(
    "kind", ["shipped", "byte", "byte_prefix", "spm_first", "spm_always", "unigram", "prepend"]
)
def test_no_text_has_fewer_in_any_usual_tokenizer(kind: str, tokenizer_of: TokenizerOf) -> None:
    tokenizer = tokenizer_of(kind)
    for text in ("", "the " * 50, " " * 200, "世界" * 9, "".join(PIECES), "ﬁ" * 40, "\0" * 30):
        assert tokenizer.least_tokens(text) <= len(tokenizer.encode_continuation(text))


def test_it_is_known_of_the_usual_tokenizers(tokenizer_of: TokenizerOf) -> None:
    for kind in ("shipped", "byte", "byte_prefix", "spm_first", "spm_always", "prepend"):
        assert tokenizer_of(kind).least_tokens("x" * 10_000) > 100


@pytest.mark.parametrize(
    "change",
    [
        lambda t: setattr(t, "normalizer", normalizers.Strip()),
        lambda t: setattr(t, "normalizer", normalizers.Replace("a", "")),
        lambda t: setattr(t, "pre_tokenizer", pre_tokenizers.WhitespaceSplit()),
        lambda t: setattr(t, "pre_tokenizer", pre_tokenizers.Split(" ", "removed")),
        lambda t: setattr(t, "model", models.WordLevel({"[UNK]": 0}, unk_token="[UNK]")),
        lambda t: setattr(t, "model", models.BPE({"a": 0, "<unk>": 1}, [], unk_token="<unk>")),
        lambda t: setattr(t, "model", models.BPE({"a": 0}, [])),
    ],
)
def test_nothing_is_known_where_text_can_be_dropped(change: Callable[[Tokenizer], None]) -> None:
    tokenizer = byte_level()
    change(tokenizer)
    assert least_of(tokenizer) is None


def requests(text: str) -> list[pb.Request]:
    prompt = pb.Prompt(segments=[pb.Segment(text=pb.TextRun(text=text))])
    short = pb.Prompt(segments=[pb.Segment(text=pb.TextRun(text="x"))])
    sampling = pb.Sampling(max_tokens=1, top_p=1, top_k=-1, repetition_penalty=1)
    return [
        pb.Request(prompt=prompt, generate=pb.Generate(sampling=sampling)),
        pb.Request(prompt=prompt, score=pb.Score(choices=["a", "b"])),
        pb.Request(prompt=prompt, commit=pb.Commit()),
        pb.Request(prompt=prompt, prefetch=pb.Prefetch()),
        pb.Request(prompt=short, score=pb.Score(choices=["a", text])),
    ]


def test_what_is_far_too_long_is_tokenized_once(
    shipped: SgcTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not once more for each text that may follow it."""
    encoded = []
    fresh = SgcTokenizer._encode_fresh

    def counted(self: SgcTokenizer, run: Text, at_start: bool) -> tuple[int, ...]:
        encoded.append(run.text)
        return fresh(self, run, at_start)

    monkeypatch.setattr(SgcTokenizer, "_encode_fresh", counted)
    text = "9 8 7 6 5 4 3 2 1 " * 40
    assert SHORT.max_positions * 15 > len(text)  # by its size alone it could fit
    for found in prepare_all(requests(text)[1:4], shipped, SHORT):
        assert isinstance(found, RequestError)
        assert found.code == pb.ERROR_CODE_CONTEXT_EXCEEDED
    assert set(encoded) == {text}


def test_what_is_refused_leaves_nothing_in_cycles(shipped: SgcTokenizer) -> None:
    """The server looks for cycles seldom: fifty megabytes a second were left in them."""
    asked = requests("9 8 7 6 5 4 3 2 1 " * 40)

    def refuse() -> None:
        found = prepare_all(asked, shipped, SHORT)
        assert all(isinstance(each, RequestError) for each in found)
        problem = too_long(["9 " * 100_000], shipped, SHORT)
        assert problem is not None

    gc.collect()
    gc.disable()
    try:
        refuse()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_what_cannot_fit_is_refused_before_it_is_tokenized(
    shipped: SgcTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encoded(*arguments: Any) -> None:
        raise AssertionError("it was tokenized")

    monkeypatch.setattr(SgcTokenizer, "_encode_fresh", encoded)
    for found in prepare_all(requests("word " * 10_000), shipped, SHORT):
        assert isinstance(found, RequestError)
        assert found.code == pb.ERROR_CODE_CONTEXT_EXCEEDED
        assert "at least" in found.message
        assert "at most 64" in found.message
