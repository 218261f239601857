"""What of a streamed text is shown, and how much work that is."""

from __future__ import annotations

import random
from types import SimpleNamespace

from sgc.runtime.executor.backends.providers.wire import safe_stream
from sgc.runtime.executor.backends.providers.wire.reply import without_cut
from sgc.runtime.executor.backends.providers.wire.safe_stream import SafeStream
from sgc.runtime.executor.backends.stops import first_stop, n_pending_stop_chars


def stream(cut="", stop=()):
    shown = []
    return SafeStream(shown.append, SimpleNamespace(cut=cut, local_stop=stop)), shown


def expected(raw, cut, stop):
    """What may be shown of a text that may go on, found in all of it."""
    if any(cut.startswith(raw, at) for at in range(len(cut) - len(raw))):
        return ""
    text = without_cut(raw, cut)
    found = first_stop(text, stop)
    return text[: len(text) - n_pending_stop_chars(text, stop) if found is None else found[0]]


def test_what_is_shown_is_what_the_whole_text_says():
    draw = random.Random(7)
    for _ in range(3000):
        stop = tuple("".join(draw.choices("ab ", k=draw.randint(1, 4))) for _ in range(2))
        cut = "".join(draw.choices(" \n", k=draw.randint(0, 3)))
        safe, shown = stream(cut, stop)
        raw = ""
        for _ in range(draw.randint(1, 6)):
            piece = "".join(draw.choices("ab \n", k=draw.randint(0, 3)))
            raw += piece
            safe.add(piece)
            assert "".join(shown) == expected(raw, cut, stop), (raw, cut, stop)


def test_white_space_that_may_be_repeated_is_held_back():
    safe, shown = stream(cut=" \n ")
    for piece in ("\n", " ", "tip"):  # the first piece alone repeats no end of the prompt
        safe.add(piece)
    safe.finish("tip")
    assert "".join(shown) == "tip"


def test_the_work_is_that_of_the_pieces(monkeypatch):
    """Each piece is searched with what is held back, never with all the text before it."""
    searched = []
    for name, search in (
        ("first_stop", first_stop),
        ("n_pending_stop_chars", n_pending_stop_chars),
    ):

        def counting(text, stop, search=search):
            searched.append(len(text))
            return search(text, stop)

        monkeypatch.setattr(safe_stream, name, counting)
    safe, shown = stream(stop=("\n\n", "END"))
    for _ in range(2000):
        safe.add("a EN")
    safe.finish("a EN" * 2000)
    assert "".join(shown) == "a EN" * 2000
    assert max(searched) <= len("a EN") + len("EN")
    assert sum(searched) <= 2 * 2000 * len("a ENEN")
    assert max(map(len, shown)) <= len("a ENEN")
