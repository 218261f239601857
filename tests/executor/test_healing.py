"""Healed borders: text before the kept ids joins the run before them, and is never special."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests_support import run_both

import sgc
from sgc.errors import UnsupportedParameter
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.interface.backend import (
    FinishReason,
    Generated,
    MediaRun,
    Prompt,
    Sampling,
    TextRun,
    TokenRun,
    Usage,
)
from sgc.runtime.executor.interface.media import media
from sgc.runtime.executor.run.stream import (
    Piece,
    PieceKind,
    StreamState,
    make_prompt,
    special_pattern,
)

CONSTANT, GENERATED = PieceKind.CONSTANT, PieceKind.GENERATED


class Healing(ScriptedBackend):
    """Where heal is asked, replies have a head and a tail of so many characters."""

    def __init__(self, text: str, n_head: int, n_tail: int = 0, special: tuple[str, ...] = ()):
        super().__init__(lambda prompt, sampling: text)
        self._cut = n_head, n_tail
        self._special = special
        self.asked: list[tuple[Prompt, Sampling]] = []

    async def capabilities(self):
        return replace(CAPABILITIES, special_tokens=self._special)

    async def generate(self, prompt, sampling, on_delta=None) -> Generated:
        self.asked.append((prompt, sampling))
        reply = await super().generate(prompt, sampling, on_delta)
        if not sampling.heal:
            return reply
        n_head, n_tail = self._cut
        kept = reply.text[n_head : len(reply.text) - n_tail]
        return replace(
            reply,
            kept_ids=tuple(map(ord, kept)),
            head=reply.text[:n_head],
            tail=reply.text[n_head + len(kept) :],
        )


def asked_next(backend: Healing, before: str, after: str, **params) -> tuple[str, Prompt]:
    """What a healed generation gave, and the prompt of the one after it."""

    @sgc.function
    def program(s):
        s += before + sgc.gen("a", heal=True, **params) + after + sgc.gen("b")

    result = run_both(program, Endpoint(backend))
    return result["a"], backend.asked[-1][0]


def test_a_head_joins_the_text_before_it():
    text, prompt = asked_next(Healing("//a.org", 2), "see http:", " and")
    assert text == "//a.org"
    ids = TokenRun(tuple(map(ord, "a.org")), "a.org")
    assert prompt == (TextRun("see http://"), ids, TextRun(" and"))


def test_a_head_and_a_tail_join_what_is_beside_them():
    text, prompt = asked_next(Healing("//a.org", 2, 2), "http:", "!")
    assert text == "//a.org"
    assert prompt == (TextRun("http://"), TokenRun(tuple(map(ord, "a.o")), "a.o"), TextRun("rg!"))


def test_a_reply_that_is_all_head_keeps_no_ids():
    _, prompt = asked_next(Healing("//", 2), "http:", "a.org")
    assert prompt == (TextRun("http://a.org"),)


def test_a_stop_that_is_kept_comes_after_all_of_it():
    text, prompt = asked_next(Healing("//a!b", 2), "http:", "?", stop="!", keep_stop=True)
    assert text == "//a!"
    assert prompt == (TextRun("http://"), TokenRun((ord("a"),), "a"), TextRun("!?"))


def test_generated_text_completes_no_special_token():
    backend = Healing("s>x", 2, special=("<s>",))
    _, prompt = asked_next(backend, "<s>a<", "b")
    assert prompt[0] == TextRun("<s>a<s>", ((4, 7),))


def test_a_special_token_that_a_head_makes_longer_is_no_longer_special():
    special = special_pattern(("<s>", "<s>x"))
    state = StreamState("p").append(Piece(CONSTANT, "<s>"))
    pieces = [Piece(GENERATED, "x"), Piece(GENERATED, "y", ids=(1,))]
    drawn = state.draw(pieces, state.prompt(special), special)
    assert drawn.prompt(special) == (TextRun("<s>x", ((0, 4),)), TokenRun((1,), "y"))


@pytest.mark.parametrize(
    "before",
    [
        [],
        [Piece(GENERATED, "t", ids=(5,))],
        [Piece(PieceKind.MEDIA, "<image>", media=media(b"\x89PNG\r\n\x1a\n", "image/png", 0))],
    ],
    ids=["nothing", "tokens", "an image"],
)
def test_a_head_after_no_text_is_a_run_of_its_own(before):
    state = StreamState("p")
    for piece in before:
        state = state.append(piece)
    pieces = [Piece(GENERATED, "h"), Piece(GENERATED, "k", ids=(1,))]
    drawn = state.draw(pieces, state.prompt(None), None)
    assert drawn.prompt(None) == make_prompt([*before, *pieces], None)
    assert drawn.prompt(None)[-2:] == (TextRun("h"), TokenRun((1,), "k"))
    assert not before or isinstance(drawn.prompt(None)[0], TokenRun | MediaRun)


SPECIAL = special_pattern(("<s>", "<s>x", "<|e|>"))
texts = st.text(alphabet="<s>x|e ", max_size=6)
replies = st.tuples(texts, st.text(alphabet="<s>x|e ", min_size=1, max_size=6), texts)


@given(st.lists(st.tuples(st.booleans(), texts, replies), max_size=6))
def test_a_prompt_after_a_draw_is_that_of_all_its_pieces(steps):
    state = StreamState("p")
    for is_constant, text, (head, kept, tail) in steps:
        state = state.append(Piece(CONSTANT if is_constant else PieceKind.VALUE, text))
        parts = [(head, ()), (kept, (7,)), (tail, ())]
        pieces = [Piece(GENERATED, each, ids=ids) for each, ids in parts if each]
        state = state.draw(pieces, state.prompt(SPECIAL), SPECIAL)
        assert state.closed is None or state.piece.ids
        assert state.prompt(SPECIAL) == make_prompt(state.pieces(), SPECIAL)


def test_a_stream_shows_a_head_as_what_was_generated():
    @sgc.function
    def program(s):
        s += "http:" + sgc.gen("a", heal=True)

    backend = Healing("//a", 2)
    state = program.run(backend=Endpoint(backend), stream=True)
    assert "".join(state.text_iter("a")) == "//a"
    result = program.compile().run(backend=Endpoint(backend))
    assert result.main.pieces == (("constant", "http:"), ("generated", "//"), ("generated", "a"))


def test_several_texts_are_healed_and_the_first_is_appended():
    @sgc.function
    def program(s):
        s += "http:" + sgc.gen("a", n=2, heal=True) + "b" + sgc.gen("c")

    backend = Healing("//a", 2)
    assert run_both(program, Endpoint(backend))["a"] == ["//a", "//a"]
    assert backend.asked[-1][0][0] == TextRun("http://")


def test_reasoning_is_separated_from_a_healed_text():
    @sgc.function
    def program(s):
        s += "A <thi" + sgc.separate_reasoning(sgc.gen("a", heal=True), "qwen3")

    result = run_both(program, Endpoint(Healing("nk>so</think>yes", 2)))
    assert result.text() == "A <thi" + result["a"]


def test_a_backend_that_cannot_heal_says_so():
    class Refusing(Healing):
        async def capabilities(self):
            return replace(CAPABILITIES, refuses=frozenset({"heal"}))

    @sgc.function
    def program(s, heal: bool):
        s += "x" + sgc.gen("a", heal=heal)

    endpoint = Endpoint(Refusing("r", 0))
    assert program.run(heal=False, backend=endpoint)["a"] == "r"
    with pytest.raises(UnsupportedParameter, match="cannot honour heal") as caught:
        program.run(heal=True, backend=endpoint).text()
    assert caught.value.where.startswith("test_healing.py:")


def test_a_finished_generation_has_no_head_by_itself():
    assert Generated("a", (1,), (1,), "", FinishReason.STOP, None, Usage()).head == ""
