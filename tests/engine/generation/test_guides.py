"""What a guide must not allow: anything after an error, and tokens that are no text."""

from __future__ import annotations

import random

import numpy as np
import pytest

from sgc.runtime.engine.guides import grammar
from sgc.runtime.engine.guides.grammar import ConstraintError, composed, grammar_of
from sgc.runtime.engine.guides.guides import Compiled, Guide, Vocabulary


def allowed(guide: Guide, vocabulary: Vocabulary) -> list[int]:
    """The mask's tokens, the end of text among them."""
    row = np.zeros(vocabulary.n_words, np.int32)
    guide.write_mask(row)
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def test_after_an_error_nothing_is_allowed(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library itself would allow the end: a text that is cut would be called whole."""
    monkeypatch.setattr(grammar, "LIMITS", {**grammar.LIMITS, "max_lexer_states": 400})
    compiled = Compiled(composed(grammar_of("regex", "([^b]{0,60}a){3}b")), vocabulary)
    guide, rng = compiled.start(), random.Random(0)
    for _ in range(60):
        tokens = allowed(guide, vocabulary)
        if not tokens:
            break
        guide.take([rng.choice([token for token in tokens if token < vocabulary.size])])
    assert tokens == []
    assert not guide.may_end
    assert not guide.is_over
    with pytest.raises(ConstraintError, match="too many states"):
        guide.check()


def test_a_token_that_is_no_text_is_not_allowed(vocabulary: Vocabulary) -> None:
    """Grammars can name tokens by number, special ones and the end of text too."""
    special = vocabulary.tokens.index(b"")
    for token in (special, vocabulary.size):
        text = f'start: "a" (<[{token}]> "b" | "c")'
        guide = Compiled(composed(grammar_of("grammar", text)), vocabulary).start(jumps=False)
        guide.take(vocabulary.encode("a"))
        found = [each for each in allowed(guide, vocabulary) if each < vocabulary.size]
        assert found == vocabulary.encode("c")


def test_without_its_last_characters(vocabulary: Vocabulary) -> None:
    """A token may hold the cut in its middle."""
    compiled = Compiled(composed(grammar_of("regex", "[0-9]+[ é]*")), vocabulary)
    guide = compiled.start(jumps=False)
    guide.take(vocabulary.encode("120 é "))
    assert [guide.is_whole_without(n) for n in range(7)] == [True] * 6 + [False]
