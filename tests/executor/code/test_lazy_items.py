"""What takes items of an iterator takes them as Python does: one by one, until it raises.

So what was done before an error is done, an error that comes first is raised first, and what takes
only some items leaves the others.
"""

from __future__ import annotations

import pytest
from executor.code.comparing import by_python, by_us

from sgc.runtime.executor.code import fuel

# What is done with `items`, and where it is put; `xs`, `d`, `t`, `c` and `q` hold something before.
TAKERS = """
xs.extend(items)
xs.sort(key=lambda n: next(items))
xs += items
xs[1:1] = items
q.extend(items)
q.extendleft(items)
q += items
d.update(items)
d.update(items, z=1)
d |= items
d.update((k, len(d)) for k in items)
d.update(iter(k) for k in items)
d.update(pair(k) for k in items)
t.update(items)
t.update([5], items)
t.difference_update(items)
t.intersection_update(items)
t.symmetric_difference_update(items)
found = t.isdisjoint(items)
found = t.issubset(items)
found = t.issuperset(items)
found = t.union(items)
found = t.difference(items)
c.update(items)
c.subtract(items)
c += items
t |= items
found = set(items)
found = frozenset(items)
found = {*items}
found = {*items, d["none"]}
found = [*items, d["none"]]
found = dict(items)
found = OrderedDict(items)
found = defaultdict(int, items)
found = Counter(items)
found = deque(items)
found = deque(items, maxlen=2)
found = deque(iterable=items)
found = dict.fromkeys(items, 1)
found = sum(items)
found = sum(items, 0.5)
found = sum(items, [])
found = math.prod(items)
found = math.fsum(items)
found = max(items)
found = min(items, key=lambda item: -item)
found = max(items, default=1)
found = sorted(items)
found = sorted(items, key=len)
found = any(items)
found = all(items)
found = any(item == 2 for item in items)
found = bytes(items)
found = bytes(source=items)
found = ",".join(items)
found = list(zip(items, [1, 2]))
found = list(zip([1, 2], items))
found = 2 in items
found = tuple(items)
found = statistics.mean(items)
found = statistics.mean(data=items)
found = heapq.nlargest(2, items)
found = functools.reduce(lambda a, b: a + b, items)
first, *rest = items
first, second = items
csv.writer(file).writerows(items)
found = Random(1).choices([1, 2], items)
found = Random(1).choices([1, 2], cum_weights=items)
found = list(itertools.islice(items, 2))
found = list(itertools.takewhile(lambda item: item == 1, items))
""".strip().splitlines()
# Items as they come; one that raises stands for itself.
ITEMS = (
    [1, 2, 3], [1, 2, "x"], [1, [], 2], ["a", "b", "a"], [("a", 1), ("b", 2), 3],
    [("a", 1), ("b", 2, 3), ("c", 4)], [1.5, 0.1, 0.1, 0.1, 2**70, 0.1], [[1], [2], "x"],
    ["ab", "cd", [[], 1]], [],
)  # fmt: skip
_MODULE = """
import csv, functools, heapq, io, itertools, math, statistics
from collections import Counter, OrderedDict, defaultdict, deque
from random import Random
def f(values, given, ends):
    xs, d, t, q, log = [7, 8], {{"k": 0}}, {{1, 7}}, deque([7]), []
    c, file = Counter("ab"), io.StringIO()
    found = first = second = rest = said = None
    kinds = [TypeError, ValueError, KeyError, OverflowError, AttributeError]
    def pair(k):
        log.append(len(d))
        return [k, len(d)]
    def made():
        for n, item in enumerate(values):
            log.append((n, len(xs), len(d), len(t), len(q)))
            if n == ends:
                raise ValueError("ends")
            yield item
    items = made() if given else iter([*made()])
    try:
        {taker}
    except (TypeError, ValueError, KeyError, OverflowError, AttributeError) as error:
        said = str(error), [isinstance(error, kind) for kind in kinds]
    left = "ended"
    try:
        left = len(list(items))
    except ValueError:
        left = "raises"
    shown = list(rest) if rest is not None else None
    return xs, d, t, q, c, file.getvalue(), found, first, second, shown, said, left, log
"""


@pytest.mark.sweep
@pytest.mark.parametrize("taker", TAKERS)
def test_items_are_taken_as_python_takes_them(taker: str) -> None:
    source = _MODULE.format(taker=taker)
    for items in ITEMS:
        for ways in ([1, 9], [1, 2], [1, 0], [0, 9]):
            args = [items, *ways]
            assert by_us(source, args) == by_python(source, args), args


ENDLESS = """
xs.extend(items)
xs += items
q.extend(items)
found = deque(iterable=items)
d.update((k, k) for k in items)
d |= ((k, k) for k in items)
d.update([items])
t.update(items)
c.update(items)
found = set(items)
found = {*items}
found = dict((1, 2) for k in items)
found = dict.fromkeys(items)
found = sum(items)
found = math.prod(0 for k in items)
found = math.fsum(items)
found = max(items)
found = bytes(source=(0 for k in items))
found = statistics.mean(items)
found = statistics.mean(data=items)
found = heapq.nlargest(2, items)
csv.writer(file).writerows([k] for k in items)
found = Random(1).choices([1, 2], items)
found = Random(1).choices([1, 2], cum_weights=items)
found = Random(1).sample([1, 2], 1, counts=items)
found = textwrap.fill(text=items)
""".strip().splitlines()


@pytest.mark.sweep
@pytest.mark.parametrize("taker", ENDLESS)
def test_items_without_an_end_are_an_error(taker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuel, "MAX_STEPS", 200_000)  # so that it ends soon
    source = _MODULE.replace("import csv", "import textwrap, csv")
    source = source.replace("made() if given else iter([*made()])", "itertools.count()")
    kind, error, said = by_us(source.format(taker=taker), [[], 1, 9])
    found = error.__name__ if kind == "error" else said
    assert found in ("LimitExceeded", "NotAllowed"), said
