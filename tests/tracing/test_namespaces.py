"""What `argparse` gives is data: programs that read it compile, and its changes are seen."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from control_flow import replying

import sgc
from sgc.errors import TraceError

ARGS = Namespace(prefix="a", rows=[1, 2])


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    monkeypatch.setitem(globals(), "ARGS", Namespace(prefix="a", rows=[1, 2]))


@sgc.function
def reads(s, x):
    s += ARGS.prefix + str(len(ARGS.rows)) + x


def test_a_change_of_it_is_seen_and_compiled_anew():
    endpoint = replying(1, ["a"])
    assert reads("!", backend=endpoint).text() == "a2!"
    ARGS.prefix = "b"
    ARGS.rows.append(3)
    assert reads("!", backend=endpoint).text() == "b3!"
    assert reads.explain() == "reads(x: text): compiled"


@sgc.function
def writes(s, x):
    ARGS.prefix += x
    s += ARGS.prefix


def test_a_program_that_changes_it_is_interpreted_and_changes_it_once_a_run():
    for expected in ("ax", "axx"):
        assert writes("x", backend=replying(1, ["a"])).text() == expected == ARGS.prefix
    assert "changes 'ARGS'" in writes.explain()


@sgc.function
def given(s, settings, x):
    s += settings.prefix + x


def test_as_an_argument_it_is_guarded_by_value():
    endpoint = replying(1, ["a"])
    for prefix in ("a", "b", "a"):
        assert given(SimpleNamespace(prefix=prefix), "!", backend=endpoint).text() == prefix + "!"
    assert given.explain().count(": compiled") == 2


def test_one_with_an_object_in_it_is_not_data():
    ARGS.rows = object()
    assert reads("!", backend=replying(1, ["a"])).error() is not None
    assert "whose changes are not seen" in reads.explain()


class Box:
    items: ClassVar[list[str]] = []
    total = 0

    def __init__(self) -> None:
        self.n, self.seen = 0, ["a"]


BOX = Box()


def _counts(s: Any) -> None:
    BOX.n += 1


def _names(s: Any) -> None:
    BOX.name = s["x"]  # type: ignore[attr-defined]


def _keeps(s: Any) -> None:
    BOX.seen.append(s["x"])


def _of_class(s: Any) -> None:
    Box.total += 1


def _shares(s: Any) -> None:
    Box().items.append(s["x"])


def _remembers(s: Any, seen: list[str] = []) -> None:  # noqa: B006
    seen.append(s["x"])


def _tells(s: Any, *, counts: dict[int, str] = {}) -> None:  # noqa: B006
    counts[len(counts)] = s["x"]


class Teller:
    def __init__(self, texts: list[str] = []) -> None:  # noqa: B006
        self.texts = texts

    def __len__(self, calls: list[int] = []) -> int:  # noqa: B006
        calls.append(len(calls))
        return len(calls)


def _takes(s: Any) -> None:
    Teller().texts.append(s["x"])


def _calls(s: Any) -> None:
    s += str(len(Teller()))


@pytest.mark.parametrize("change", [_remembers, _tells, _takes, _calls])
def test_defaults_of_parameters_are_not_changed(change: Any) -> None:
    """They are the same in each call, and so in each run that Python makes."""

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=3)
        change(s)
        s += s["x"]

    with pytest.raises(TraceError):
        program.compile()
    methods = (Teller.__init__, Teller.__len__)
    assert [each.__defaults__ for each in (_remembers, *methods)] == [([],), ([],), ([],)]
    assert _tells.__kwdefaults__ == {"counts": {}}


@pytest.mark.sweep
@pytest.mark.parametrize("change", [_counts, _names, _keeps, _of_class, _shares])
@pytest.mark.parametrize("is_sure", [True, False])
def test_objects_and_classes_of_a_module_are_not_changed(change: Any, is_sure: bool) -> None:
    """What a trace would do to them a compiled program would not; and nothing of it stays."""

    @sgc.function
    def program(s, q: str):
        for _ in sgc.turns(3):
            s += q + sgc.gen("x", max_tokens=3)
            if is_sure or s["x"] == "yes":
                change(s)
        s += f"{BOX.n} {Box.total}"

    with pytest.raises(TraceError, match="an object outside of it"):
        program.compile()
    assert (vars(BOX), Box.items, Box.total) == ({"n": 0, "seen": ["a"]}, [], 0)
