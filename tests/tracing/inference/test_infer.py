"""The types that are inferred for what code gives, and that the code gives them."""

from __future__ import annotations

from typing import Any

import pytest

from sgc.ir import types
from sgc.ir.code import parse_code
from sgc.ir.code_types import parse_code_type
from sgc.ir.types import FLOAT, INT, TEXT, Type
from sgc.runtime.executor.code.run import run_code
from sgc.tracing.inference.infer import inferred as known_of
from sgc.tracing.kinds.row_types import OBJECT, annotation_of, optional, row_of

TEXTS = types.list_of(TEXT)
T, L, N = (TEXT, "ab,c"), (TEXTS, ["b", "a"]), (INT, 7)
PAIRS = (types.list_of(row_of([TEXT, INT])), [("a", 1), ("b", 2)])

# The body of a function of x and y, its arguments' types and values, and the type of its result.
EXPRESSIONS: list[tuple[str, tuple[Type, Any], tuple[Type, Any], str]] = [
    ("min(x, key=len)", L, N, "str"),
    ("max(x, default=None)", L, N, "str | None"),
    ("max(x, y)", N, (FLOAT, 0.5), "object"),
    ("sorted(x)[:y]", L, N, "list[str]"),
    ("sorted(x) + [y]", L, N, "list[object]"),
    ("[len(a) for a in x]", L, N, "list[int]"),
    ("list(zip(x, range(y)))", L, N, "list[tuple[str, int]]"),
    ("list(enumerate(x, 1))", L, N, "list[tuple[int, str]]"),
    ("[(a, n / 2) for a, n in x]", PAIRS, N, "list[tuple[str, float]]"),
    ("dict(x)['a']", PAIRS, N, "int"),
    ("dict(x).get(y)", PAIRS, T, "int | None"),
    ("dict(x).get(y, 0)", PAIRS, T, "int"),
    ("sorted(dict(x).items(), key=lambda p: p[1])", PAIRS, N, "list[tuple[str, int]]"),
    ("Counter(x).most_common(1)[0]", L, N, "tuple[str, int]"),
    ("sum((Counter(x) & Counter(x)).values())", L, N, "int"),
    ("sum(x)", (types.list_of(FLOAT), [0.5]), N, "object"),  # of no floats it is the int 0
    ("sum(x, 0.0)", (types.list_of(FLOAT), [0.5]), N, "float"),
    ("round(x * 1.5, 1)", N, N, "float"),
    ("round(x / 2)", N, N, "int"),
    ("divmod(x, y)", N, N, "tuple[int, int]"),
    ("x ** y", N, N, "object"),
    ("-x", N, N, "int"),
    ("x.partition(',')", T, N, "tuple[str, str, str]"),
    ("x.split(',')[0].strip()", T, N, "str"),
    ("x.split(',', 1)[-1] or None", T, N, "str | None"),
    ("x.find('b') if x else 'no'", T, N, "object"),
    ("re.findall('[ab]', x)", T, N, "list[str]"),
    ("re.findall('([ab])(.)', x)", T, N, "list[tuple[str, str]]"),
    ("re.search('b', x)[0]", T, N, "str"),
    ("re.search('(b)|c', x)[1]", T, N, "str | None"),
    ("P.findall(x)", T, N, "list[tuple[str, str]]"),
    ("re.sub('b', '', x)", T, N, "str"),
    ("json.loads('[1]')", T, N, "object"),
    ("json.dumps(x)", L, N, "str"),
    ("math.floor(y / 2)", T, N, "int"),
    ("','.join(map(str, x))", (types.list_of(INT), [1]), N, "str"),
    ("list(map(len, x))", L, N, "list[int]"),
    ("list(filter(None, x))", L, N, "list[str]"),
    ("[g for g, _ in itertools.groupby(sorted(x))]", L, N, "list[str]"),
    ("list(itertools.pairwise(x))", L, N, "list[tuple[str, str]]"),
    ("[*x, *x]", L, N, "list[str]"),
    ("{a: len(a) for a in x}['a']", L, N, "int"),
    ("{**{'a': 1}, 'b': 0.5}['a']", L, N, "object"),
    ("random.Random(y).choice(x)", L, N, "str"),
    ("x in y", T, L, "bool"),
    ("not x", T, N, "bool"),
    ("f'{x}{y}'", T, N, "str"),
    ("'%s' % y", T, N, "str"),
    ("x and x[0]", T, N, "str"),
    ("x", (OBJECT, {"a"}), N, "object"),
    ("x or 'none'", (optional(TEXT), None), N, "str"),
    ("VALUES[x] + 1", (TEXT, "a"), N, "float"),
    ("(n := len(x)) + n", T, N, "int"),
    ("next((a for a in x if a == y), None)", L, T, "str | None"),
    ("textwrap.wrap(x, 2)", T, N, "list[str]"),
    ("{*x} | {'q'}", L, N, "object"),
    ("sorted({*x} | {'q'})", L, N, "list[str]"),
    ("copy.deepcopy(x)", PAIRS, N, "list[tuple[str, int]]"),
]
MODULES = "copy itertools json math random re textwrap"
BEFORE = "\n".join([
    *(f"import {name}" for name in MODULES.split()),
    "from collections import Counter, defaultdict",
    "import heapq",
    "P = re.compile('([ab])(.)')",
    "VALUES = {'a': 0.5}",
    "",
])  # fmt: skip


def inferred(source: str, *given: tuple[Type, Any]) -> str:
    """The type of what code gives; it is held that a run gives such a value."""
    type_ = annotation_of(known_of(parse_code(source), tuple(each for each, _ in given)).type)
    value = run_code(source, [value for _, value in given])
    assert parse_code_type(type_).fits(value), value
    return type_


@pytest.mark.parametrize(("expression", "x", "y", "wanted"), EXPRESSIONS, ids=lambda e: str(e)[:40])
def test_an_expression(expression: str, x: Any, y: Any, wanted: str) -> None:
    assert inferred(f"{BEFORE}def piece(x, y):\n    return {expression}", x, y) == wanted


BODIES = {
    "parsed": """
def parse(text, n):
    letters = [c for c in text if c.isalpha()]
    if len(letters) != n:
        return None
    return "".join(letters)
def piece(x):
    return parse(x, 3)
---str | None""",
    "a_list_that_grows": """
def piece(x):
    out = []
    for n, part in enumerate(x.split(",")):
        out.append((part, n))
    out.sort(key=lambda each: each[1])
    return out
---list[tuple[str, int]]""",
    "under_another_name": """
def put(into, what):
    into.append(what)
def piece(x):
    out = ["a"]
    same = out
    put(same, 1)
    return out
---list[object]""",
    "through_a_dict": """
def piece(x):
    found = defaultdict(list)
    for part in x:
        found[len(part)].append(part)
    found.setdefault(0, []).append(2.5)
    return [found[0], sorted(found)]
---list[list[object]]""",
    "a_dict_of_lists": """
def sections(text):
    found, current = {}, ""
    for line in text.split(","):
        if line.endswith("b"):
            current = line
            found[current] = []
        else:
            found[current].append(line)
    return {key: "".join(lines) for key, lines in found.items()}
def piece(x):
    return list(sections(x).items())
---list[tuple[str, str]]""",
    "a_generator": """
def pairs(text):
    for part in text.split(","):
        yield part, len(part)
def piece(x):
    return list(pairs(x))
---list[tuple[str, int]]""",
    "a_nested_function": """
def piece(x):
    n = 0
    def count(text):
        nonlocal n
        n += len(text)
        return n
    return [count(part) for part in x.split(",")]
---list[int]""",
    "recursion": """
def depth(n):
    return 0 if n < 1 else 1 + depth(n - 1)
def piece(x):
    return depth(len(x))
---int""",
    "a_tuple_of_itself": """
def piece(x):
    row = ()
    for part in x:
        row = (row, part)
    return row
---object""",
    "what_a_pattern_binds": """
def piece(x):
    match x.split(","):
        case [first, *rest]:
            return first
    return ""
---object""",
    "an_error": """
def piece(x):
    try:
        return int(x)
    except ValueError as error:
        return str(error)
---object""",
    "a_number_or_none": """
def piece(x):
    m = re.search("[0-9]+", x)
    return int(m.group()) if m else None
---int | None""",
    "unpacked": """
def piece(x):
    first, *rest = x.split(",")
    (a, b), c = (first, 1), 0.5
    return [(a, b, c, len(rest))]
---list[tuple[str, int, float, int]]""",
    "a_heap": """
def piece(x):
    heap = []
    for part in x.split(","):
        heapq.heappush(heap, (len(part), part))
    return heapq.heappop(heap)
---tuple[int, str]""",
    "a_list_that_others_change": """
def piece(x):
    out = ["a"]
    for change in (out.append, out.remove):
        change(x)
    return out
---list[object]""",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body(name: str) -> None:
    body, wanted = BODIES[name].split("---")
    assert inferred(BEFORE + body.strip(), T) == wanted


def test_each_of_several_values() -> None:
    code = parse_code("def piece(x):\n    a, b = x, len(x)\n    return [a, b, {a: b}]")
    assert known_of(code, (TEXT,)).items == (TEXT, INT, OBJECT)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [("x", True), ("x or []", True), ("[*x]", False), ("sorted(x)", False), ("[x][0]", True),
     ("list(x)", False), ("KEPT", True), ("[a for a in x]", False)],
)  # fmt: skip
def test_what_may_be_the_list_that_it_was_given(expression: str, wanted: bool) -> None:
    source = f"KEPT = ['a']\ndef piece(x):\n    return {expression}"
    assert known_of(parse_code(source), (TEXTS,)).may_share is wanted


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [("x", {0}), ("len(x)", set()), ("[y]", {1}), ("x[0]", set()), ("y[0]", {1}),
     ("x or y", {0, 1}), ("json.loads(x[0])", {0, 1}), ("x + [z for z in y[0]]", set()),
     ("y[:1]", {1})],
)  # fmt: skip
def test_which_arguments_it_may_hold(expression: str, wanted: set[int]) -> None:
    code = parse_code(f"import json\ndef piece(x, y):\n    return {expression}")
    assert known_of(code, (TEXTS, types.list_of(TEXTS))).shared == wanted


NEW: frozenset[int] = frozenset()


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [("x", {0}), ("x[:1]", NEW), ("x or ['a']", {0}), ("x + ['a']", NEW), ("sorted(x)", NEW),
     ("y[0]", None), ("y[:1]", NEW), ("[*y]", NEW), ("[x]", NEW), ("VALUES", None),
     ("max(y, key=len)", None), ("same(x)", {0}), ("noted('a')", None), ("o.split()", None),
     ("o['a']", None), ("[z for z in o]", NEW), ("same(x if x else VALUES)", None)],
)  # fmt: skip
def test_which_lists_are_new(expression: str, wanted: set[int] | None) -> None:
    source = (
        "VALUES = ['a']\ndef same(x):\n    x.append('b')\n    return x\n"
        "def noted(x, seen=['a']):\n    return seen\n"
        f"def piece(x, y, o):\n    return {expression}"
    )
    known = known_of(parse_code(source), (TEXTS, types.list_of(TEXTS), OBJECT))
    assert known.may_be == (wanted, *known.may_be[1:])


def test_which_lists_of_several_are_new() -> None:
    code = parse_code("def piece(x):\n    a = sorted(x)\n    return [a, len(x)]")
    assert known_of(code, (TEXTS,)).may_be[1:] == (NEW, None)
    code = parse_code("def piece(x):\n    a = b = sorted(x)\n    return [a, b]")
    assert known_of(code, (TEXTS,)).may_be[1:] == (None, None)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [("iter(x)", True), ("(a for a in x)", True), ("zip(x, x)", True), ("yielded(x)", True),
     ("map(len, x)", True), ("range(3)", False), ("{}.items()", False), ("list(zip(x))", False),
     ("[iter(x), 1]", True)],
)  # fmt: skip
def test_what_is_an_iterator(expression: str, wanted: bool) -> None:
    source = f"def yielded(x):\n    yield x\ndef piece(x):\n    return {expression}"
    assert known_of(parse_code(source), (TEXTS,)).has_iterator is wanted
