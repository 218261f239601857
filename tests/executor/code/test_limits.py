"""Hostile code ends soon, and takes little memory."""

from __future__ import annotations

import pytest
from executor.code.hostile import check_it_is_ended

from sgc.runtime.executor.code import fuel

HOSTILE = """
while True: pass
while True: x = [1]
for i in itertools.count(): pass
return f(n)
return (lambda g: g(g))(lambda g: g(g))
return "a" * 10 ** 9
return [0] * 10 ** 8
return (0,) * 10 ** 8
return 10 ** 10 ** 6
return 1 << 10 ** 9
return 2 ** 10 ** 10
return pow(10, 10 ** 7)
return math.factorial(10 ** 6)
return math.comb(10 ** 9, 10 ** 8)
return statistics.quantiles([1, 2], n=10 ** 9)
return statistics.quantiles([1, 2], n=2 ** 70)
return math.perm(10 ** 6)
return math.prod(range(1, 10 ** 5))
return math.lcm(*range(1, 10 ** 5))
return f"{n:{10 ** 9}}"
return f"{1.5:.{10 ** 9}f}"
return "{:>999999999}".format(1)
return "{:{}}".format(1, 10 ** 9)
return "%*d" % (10 ** 9, 1)
return "%999999999d" % 1
return "%.*f" % (10 ** 9, 1.5)
return "a".center(10 ** 9)
return "1".zfill(10 ** 9)
return "\\t".expandtabs(10 ** 9)
return ("a" * 10 ** 6).replace("a", "b" * 10 ** 4)
return ("a" * 10 ** 6).join(["x"] * 10 ** 4)
return ("a" * 10 ** 6).translate({97: "b" * 10 ** 4})
return ("a," * 5 * 10 ** 6).split(",")
return list(range(10 ** 9))
return sum(range(10 ** 12))
return max(range(10 ** 12))
return sorted(range(10 ** 9))
return "a" in range(10 ** 12)
return range(10 ** 12).index(1.5)
return [*range(10 ** 9)]
return len([*itertools.count()])
return list(itertools.count())
return set(itertools.count())
return sum(itertools.count())
return max(itertools.count())
return any(itertools.repeat(0))
return all(itertools.repeat(1))
return 5 in itertools.repeat(1)
return next(filter(None, itertools.repeat(0)))
return next(itertools.filterfalse(None, itertools.repeat(1)))
return next(itertools.dropwhile(bool, itertools.repeat(1)))
return next(itertools.islice(itertools.count(), 10 ** 12, None))
return next(itertools.chain.from_iterable(itertools.repeat([])))
return next(itertools.compress(itertools.repeat(1), itertools.repeat(0)))
return list(zip(itertools.count(), itertools.count()))
return list(itertools.product(range(1000), repeat=5))
return list(itertools.product([0], repeat=10 ** 8))
return list(itertools.permutations(range(20)))
return list(itertools.combinations(range(100), 10))
return sum(1 for _ in itertools.product([0, 1], repeat=10 ** 6))
return list(itertools.starmap(max, [itertools.count()]))
return dict([itertools.count()])
return dict.fromkeys(itertools.count())
return collections.Counter(itertools.count())
return collections.deque(itertools.count())
return collections.deque([0]) * 10 ** 9
return list(collections.Counter(a=10 ** 9).elements())
return functools.reduce(max, itertools.count())
return "".join(itertools.repeat("a"))
x = [0]\\n    while True: x += x
x = [0]\\n    while True: x.extend(x)
x = "a"\\n    while True: x += x
x = 3\\n    while True: x *= x
x = 3\\n    while True: x = x << 1000
x = []\\n    while True: x.append(x[:])
x = []\\n    while True: x = [x, x]
x = []\\n    for i in range(100): x = [x, x]\\n    return str(x)
x = ()\\n    for i in range(100): x = (x, x)\\n    return hash(x) if 0 else {x: 1}
x, y = [], []\\n    for i in range(100): x, y = [x, x], [y, y]\\n    return x == y
x, y = [], []\\n    for i in range(100): x, y = [x, x], [y, y]\\n    return x in [y]
x = []\\n    for i in range(100): x = [x, x]\\n    return json.dumps(x)
x = []\\n    for i in range(100): x = [x, x]\\n    return f"{x}"
x = []\\n    for i in range(100): x = [x, x]\\n    return "%s" % x
x = []\\n    for i in range(100): x = [x, x]\\n    return sorted([x, x[0]])
x = []\\n    for i in range(10 ** 6): x = [x]\\n    return x
x = []\\n    for i in range(10 ** 5): x = [x]\\n    return repr(x)
x = []\\n    for i in range(10 ** 5): x = [x]\\n    return x == [x]
x = []\\n    x.append(x)\\n    return repr(x)
x = None\\n    for i in range(10 ** 6): x = collections.deque([x])
x = None\\n    for i in range(10 ** 6): x = collections.defaultdict(int, {1: x})
x = None\\n    for i in range(10 ** 6): x = itertools.chain([1], x or [])
x = iter([1])\\n    for i in range(10 ** 6): x = map(abs, x)
x = iter([1])\\n    for i in range(10 ** 6): x = (y for y in x)
def w(g):\\n        yield from g\\n    x = []\\n    for i in range(10 ** 6): x = w(x)
def w():\\n     while 1:\\n       try: 1 / 0\\n       except: yield\\n    for i in w(): 0
x = {}\\n    for i in itertools.count(): x[i] = i
x = {}\\n    for i in itertools.count(): x[i] = {}
x = {i * (2 ** 61 - 1) for i in range(10 ** 6)}
x = {(i * (2 ** 61 - 1), 1): i for i in range(10 ** 6)}
return [set() for i in range(10 ** 7)]
return [collections.deque() for i in range(10 ** 7)]
return [collections.Counter() for i in range(10 ** 7)]
return [lambda: i for i in range(10 ** 7)]
return [(lambda: (yield)) for i in range(10)] if 0 else [str(i) * 50 for i in range(10 ** 7)]
x = []\\n    while True:\\n        try: 1 / 0\\n        except Exception as e: x.append(e)
return sorted(range(10), key=lambda v: sorted(range(10), key=lambda w: f(v)))
return json.loads("[" * 10 ** 5)
return json.dumps([[]] * 10 ** 6, indent=10 ** 6)
return json.loads("[" * 5000 + "]" * 5000)
return re.compile("(a*)*b").search("a" * 10 ** 5)
return [re.search("((a+)+)+b", "a" * 10 ** 6) for i in range(10 ** 4)]
return [re.search("(a|aa)+b", "a" * 10 ** 6) for i in range(10 ** 4)]
return re.compile("(" * 5000 + ")" * 5000)
return [re.compile(f"[{chr(i)}-{chr(i + 5)}]") for i in range(10 ** 4, 10 ** 5)]
return [re.findall("a.*b|a", "a" * 10 ** 5) for i in range(10 ** 4)]
return re.sub("a", "b" * 10 ** 5, "a" * 10 ** 6)
return re.compile("(?:(?:(?:a{0,100}b){0,100}){0,100}){0,100}")
while True: ("a" * 10 ** 6).find("a" * 10 ** 5 + "b")
while True: ("a" * 2400).count("a" * 1200 + "b")
while True: ("a" * 10 ** 5).rfind("b" + "a" * 10 ** 4)
while True: "a" * 10 ** 6
while True: [0] * 10 ** 5
while True: list(range(10 ** 5))
while True: sorted(range(10 ** 5))
while True: int("9" * 4300)
while True: str(10 ** 4299)
while True: 10 ** 4000 * 10 ** 4000 // 10 ** 4000
while True: pow(3, 10 ** 4000, 10 ** 4000 + 1)
while True: "a" * 10 ** 6 == "a" * 10 ** 6
while True: ("a" * 10 ** 6).upper()
while True: "x" in ["y"] * 10 ** 5
while True: 1.5 in [1] * 10 ** 5
while True: sum([0.5] * 10 ** 5)
while True: set(range(10 ** 5))
while True: "".join(["a"] * 10 ** 5)
while True: max([1] * 10 ** 5)
while True: json.dumps([1] * 10 ** 5)
while True: json.loads("[" + "1," * 10 ** 5 + "1]")
while True: list(map(str, [1] * 10 ** 5))
""".strip().splitlines()

HEAD = "import collections, functools, itertools, json, math, re, statistics\n"


@pytest.mark.slow
@pytest.mark.parametrize("n_steps", [200_000, pytest.param(fuel.MAX_STEPS, marks=pytest.mark.slow)])
def test_hostile_code_ends_soon_and_takes_little_memory(n_steps: int) -> None:
    """With fewer steps than a run has, in short."""
    check_it_is_ended(HOSTILE, HEAD, n_steps)
