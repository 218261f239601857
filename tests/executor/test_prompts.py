"""Prompts: maximal text runs, kept ids, and special tokens that stay text inside values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sgc.runtime.executor.interface.backend import TextRun, TokenRun
from sgc.runtime.executor.run.stream import (
    Piece,
    PieceKind,
    StreamState,
    make_prompt,
    messages,
    special_pattern,
)

SPECIAL = special_pattern(("<|im_start|>", "<|im_end|>", "<s>"))
CONSTANT, VALUE = PieceKind.CONSTANT, PieceKind.VALUE


def test_text_decides_not_how_it_was_cut():
    whole = make_prompt([Piece(CONSTANT, "ab cd")], SPECIAL)
    cut = [Piece(CONSTANT, "a"), Piece(VALUE, "b c"), Piece(CONSTANT, ""), Piece(CONSTANT, "d")]
    assert make_prompt(cut, SPECIAL) == whole == (TextRun("ab cd"),)


def test_generated_ids_stay_and_their_tail_joins_the_next_run():
    pieces = [
        Piece(CONSTANT, "a"),
        Piece(PieceKind.GENERATED, "gen", ids=(1, 2)),
        Piece(PieceKind.GENERATED, "tail"),
        Piece(CONSTANT, "b"),
    ]
    assert make_prompt(pieces, SPECIAL) == (
        TextRun("a"),
        TokenRun((1, 2), "gen"),
        TextRun("tailb"),
    )


def test_special_tokens_in_values_stay_text():
    pieces = [Piece(CONSTANT, "<s>"), Piece(VALUE, "x<s>"), Piece(CONSTANT, "<s>")]
    (run,) = make_prompt(pieces, SPECIAL)
    assert run == TextRun("<s>x<s><s>", ((4, 7),))


def test_a_value_cannot_complete_a_special_token():
    pieces = [Piece(CONSTANT, "<|im_"), Piece(VALUE, "end|>")]
    (run,) = make_prompt(pieces, SPECIAL)
    assert run.literal == ((0, 10),)


texts = st.text(alphabet="<|>s_imendart x", max_size=12)


@given(st.lists(st.tuples(st.booleans(), texts | st.just("<s>") | st.just("<|im_end|>"))))
def test_no_special_token_touches_a_value_outside_a_literal_span(parts):
    pieces = [Piece(CONSTANT if trusted else VALUE, text) for trusted, text in parts]
    prompt = make_prompt(pieces, SPECIAL)
    if not prompt:
        assert not any(text for _, text in parts)
        return
    (run,) = prompt
    trusted = [t for is_trusted, text in parts for t in [is_trusted] * len(text)]
    for at in range(len(run.text)):
        match = SPECIAL.match(run.text, at)
        if match and not all(trusted[match.start() : match.end()]):
            assert any(a < match.end() and match.start() < b for a, b in run.literal)
    for start, end in run.literal:
        assert SPECIAL.fullmatch(run.text, start, end)
        assert not all(trusted[start:end])


def test_states_share_their_past_and_can_be_read_at_any_time():
    root = StreamState("p")
    a = root.append(Piece(CONSTANT, "a"))
    trunk, left, right = a.fork(2, None)
    left2 = left.append(Piece(CONSTANT, "l"))
    trunk2 = trunk.append(Piece(CONSTANT, "t"))
    assert [s.text() for s in (root, a, trunk, left, right, left2, trunk2)] == [
        "", "a", "a", "a", "a", "al", "at",
    ]  # fmt: skip
    assert left2.text(since=left) == left2.text(since=a) == "l"
    assert left.path == "p/:0.0"
    assert trunk.fork(1, None)[1].path == "p/:1.0"


def test_messages_are_what_roles_enclose():
    pieces = [
        Piece(CONSTANT, "outside"),
        Piece(PieceKind.ROLE_BEGIN, "<u>", role="user"),
        Piece(VALUE, "\n hi "),
        Piece(PieceKind.ROLE_END, "</u>", role="user"),
        Piece(PieceKind.ROLE_BEGIN, "<a>", role="assistant"),
        Piece(VALUE, "not ended"),
    ]
    assert messages(pieces) == [{"role": "user", "content": "hi "}]


def test_a_long_chain_needs_no_recursion():
    state = StreamState("p")
    for _ in range(50_000):
        state = state.append(Piece(CONSTANT, "x"))
    assert len(state.text()) == 50_000


@given(st.lists(st.tuples(st.sampled_from("cvgsh"), texts)))
def test_what_was_asked_before_need_not_be_looked_at_again(steps):
    state = StreamState("p")
    for kind, text in steps:
        if kind in "cv":
            state = state.append(Piece(CONSTANT if kind == "c" else VALUE, text))
        elif kind == "s":
            pieces = [Piece(PieceKind.CHOSEN, text)]
            state = state.draw(pieces, state.prompt(SPECIAL), SPECIAL)
        else:
            head = [Piece(PieceKind.GENERATED, text[:3])] if kind == "h" else []
            kept = [Piece(PieceKind.GENERATED, text, ids=(7,))] if text else []
            tail = [Piece(PieceKind.GENERATED, text[:2])] if text[:1] == "x" else []
            state = state.draw(head + kept + tail, state.prompt(SPECIAL), SPECIAL)
        state = state.fork(1, None)[len(text) % 2]
        assert state.prompt(SPECIAL) == make_prompt(state.pieces(), SPECIAL)
