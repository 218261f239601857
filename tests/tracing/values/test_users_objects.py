"""Objects of the user's classes that are known only at run time: their own methods say what they
give, compiled as interpreted. Nothing here relies on the trace check."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from tests_support import one_in, results

import sgc
from sgc.runtime.executor.interface.backend import Prompt, Sampling
from sgc.runtime.executor.run.options import RunOptions

BAG = """
import sgc

class Bag:
    # Its `__getitem__` never ends, and each of its texts is another one.

    def __init__(self, items: dict[str, int]) -> None:
        self.items = dict(items)

    def __getitem__(self, name: str) -> int:
        return self.items.get(name, 0)

    def __setitem__(self, name: str, n: int) -> None:
        self.items[name] = n

    def __contains__(self, name: str) -> bool:
        return name in self.items

    def __len__(self) -> int:
        return sum(self.items.values())

    def __iter__(self):
        yield from sorted(self.items)

    def __str__(self) -> str:
        return "bag of " + "/".join(self.items)

    def __format__(self, spec: str) -> str:
        return f"format {spec}{len(self.items)}"

    def __add__(self, other: str) -> str:
        return "+".join([*self.items, other])

    def __radd__(self, other: str) -> str:
        return "-".join([other, *self.items])

    def __bool__(self) -> bool:
        return len(self.items) > 2

def program(s):
    bag = Bag({"a": 1})
    for _ in range(2):
        s += "q" + sgc.gen("g", stop="\\n")
        bag[s["g"]] += 1
        s += "[" + EXPRESSION + "]"
"""
EXPRESSIONS = (
    "', '.join(bag)", "bag + 'z'", "'z' + bag", "'%s' % bag", "'<%8s|%s>' % (bag, 'x')",
    "f'{bag}'", "f'{bag:x}'", "'{}'.format(bag)", "str(bag)", "str(list(bag))", "str(len(bag))",
    "str('b' in bag)", "'yes' if bag else 'no'", "bag['a'] * '!'",
)  # fmt: skip


@pytest.mark.parametrize("expression", one_in(7, EXPRESSIONS))
def test_its_own_methods_are_used(expression, scripted, tmp_path, monkeypatch):
    (tmp_path / "bag.py").write_text(BAG.replace("EXPRESSION", expression))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bag", raising=False)
    program = sgc.function(__import__("bag").program)
    compiled = program.compile(check=False)
    for said in ("bc", "aa", "ca"):
        ours, theirs = (
            results(each.run_once({}, RunOptions(seed=3), scripted(_saying(said))))
            for each in (compiled, program)
        )
        assert ours == theirs


def _saying(letters: str) -> Callable[[Prompt, Sampling], str]:
    """Replies of a letter each."""
    left = iter(letters)
    return lambda prompt, sampling: next(left)
