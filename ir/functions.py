"""The table of pure functions that `compute` may name: their arguments, results and errors.

Each function does what Python's operation of that name does on run-time values. If the function can
fail as in Python, a program calls `attempt` first, and branches on the result of `attempt`.
`runtime/executor/ops/functions.py` evaluates the functions; the IR knows only this table.
"""

from __future__ import annotations

from dataclasses import dataclass

from sgc.ir.op_specs import ANY_VALUE, NUMERIC, PRINTABLE, TEXTUAL
from sgc.ir.types import Kind

BOOLS = frozenset({Kind.BOOL})
INTS = frozenset({Kind.INT, Kind.BOOL})
NUMBERS = NUMERIC | BOOLS
JSONS = frozenset({Kind.JSON})
LISTS = frozenset({Kind.LIST})
# A literal None is of kind json: it is for arguments that may be None in Python.
TEXT_OR_NONE = TEXTUAL | JSONS
INT_OR_NONE = INTS | JSONS


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """takes: the kinds of each argument; gives: the kind of the result, None if the arguments or
    the program decide it; error: the names of the exceptions that the function may raise, separated
    by spaces; n_optional: how many of the last arguments are optional; is_variadic: whether the
    last argument may repeat.
    """

    name: str
    doc: str
    takes: tuple[frozenset[Kind], ...]
    gives: Kind | None
    error: str = ""
    n_optional: int = 0
    is_variadic: bool = False

    @property
    def errors(self) -> tuple[str, ...]:
        return tuple(self.error.split())


def _text(name: str, *takes: frozenset[Kind], n_optional: int = 0) -> FunctionSpec:
    """A method of a text that returns a text."""
    return _method(name, takes, Kind.TEXT, n_optional)


def _method(
    name: str,
    takes: tuple[frozenset[Kind], ...],
    gives: Kind,
    n_optional: int = 0,
    error: str = "",
) -> FunctionSpec:
    words = ", ".join("bcde"[: len(takes)])
    return FunctionSpec(name, f"a.{name}({words})", (TEXTUAL, *takes), gives, error, n_optional)


_TO_TEXT = tuple(
    _text(name) for name in ("lower", "upper", "title", "capitalize", "casefold", "swapcase")
)
_STRIPS = tuple(_text(name, TEXTUAL, n_optional=1) for name in ("strip", "lstrip", "rstrip"))
_TESTS = tuple(
    _method(name, (), Kind.BOOL)
    for name in (
        "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower",
        "isnumeric", "isprintable", "isspace", "istitle", "isupper",
    )
)  # fmt: skip
_SPAN = (TEXTUAL, INT_OR_NONE, INT_OR_NONE)
_FINDS = tuple(_method(name, _SPAN, Kind.INT, 2) for name in ("find", "rfind", "count"))
_INDEXES = tuple(_method(name, _SPAN, Kind.INT, 2, "ValueError") for name in ("index", "rindex"))
_ENDS = tuple(
    _method(name, (TEXTUAL | LISTS, INT_OR_NONE, INT_OR_NONE), Kind.BOOL, 2)
    for name in ("startswith", "endswith")
)
_PADS = tuple(_text(name, INTS, TEXTUAL, n_optional=1) for name in ("center", "ljust", "rjust"))
_SPLITS = tuple(
    FunctionSpec(
        name,
        f"a.{name}(b, c), b a separator or None",
        (TEXTUAL, TEXT_OR_NONE, INTS),
        Kind.LIST,
        "ValueError",
        n_optional=2,
    )
    for name in ("split", "rsplit")
)
_PARTITIONS = tuple(
    FunctionSpec(name, f"a.{name}(b)[c]", (TEXTUAL, TEXTUAL, INTS), Kind.TEXT, "ValueError")
    for name in ("partition", "rpartition")
)

TEXT_FUNCTIONS: tuple[FunctionSpec, ...] = (
    *_TO_TEXT,
    *_STRIPS,
    *_TESTS,
    *_FINDS,
    *_INDEXES,
    *_ENDS,
    *_PADS,
    *_SPLITS,
    *_PARTITIONS,
    _text("removeprefix", TEXTUAL),
    _text("removesuffix", TEXTUAL),
    _text("replace", TEXTUAL, TEXTUAL, INTS, n_optional=1),
    _text("zfill", INTS),
    _text("expandtabs", INTS, n_optional=1),
    _method("splitlines", (BOOLS,), Kind.LIST, n_optional=1),
    FunctionSpec("in", "a in b, two texts", (TEXTUAL, TEXTUAL), Kind.BOOL),
    FunctionSpec("join", "a.join(b)", (TEXTUAL, LISTS | JSONS), Kind.TEXT, "TypeError"),
    FunctionSpec("repeat", "a * b", (TEXTUAL, INTS), Kind.TEXT),
    FunctionSpec("ord", "ord(a)", (TEXTUAL,), Kind.INT, "TypeError"),
    FunctionSpec("chr", "chr(a)", (INTS,), Kind.TEXT, "ValueError OverflowError"),
    FunctionSpec("str", "str(a)", (PRINTABLE | LISTS,), Kind.TEXT),
    FunctionSpec("repr", "repr(a)", (PRINTABLE | LISTS,), Kind.TEXT),
    FunctionSpec("format", "format(a, b)", (PRINTABLE, TEXTUAL), Kind.TEXT, "ValueError TypeError"),
)


def _compares(name: str, sign: str) -> FunctionSpec:
    both = NUMBERS | TEXTUAL
    return FunctionSpec(name, f"a {sign} b", (both, both), Kind.BOOL)


def _arithmetic(name: str, sign: str, error: str = "") -> FunctionSpec:
    return FunctionSpec(name, f"a {sign} b", (NUMBERS, NUMBERS), None, error)


def _bits(name: str, sign: str, error: str = "") -> FunctionSpec:
    return FunctionSpec(name, f"a {sign} b", (INTS, INTS), None, error)


NUMBER_FUNCTIONS: tuple[FunctionSpec, ...] = (
    _compares("lt", "<"),
    _compares("le", "<="),
    _compares("gt", ">"),
    _compares("ge", ">="),
    _arithmetic("add", "+"),
    _arithmetic("sub", "-"),
    _arithmetic("mul", "*"),
    _arithmetic("truediv", "/", "ZeroDivisionError"),
    _arithmetic("floordiv", "//", "ZeroDivisionError"),
    _arithmetic("mod", "%", "ZeroDivisionError"),
    FunctionSpec("divmod", "divmod(a, b)[c]", (NUMBERS, NUMBERS, INTS), None, "ZeroDivisionError"),
    _arithmetic("pow", "**", "ZeroDivisionError OverflowError"),
    _bits("bit_and", "&"),
    _bits("bit_or", "|"),
    _bits("bit_xor", "^"),
    _bits("lshift", "<<", "ValueError"),
    _bits("rshift", ">>", "ValueError"),
    FunctionSpec("invert", "~a", (INTS,), Kind.INT),
    FunctionSpec("neg", "-a", (NUMBERS,), None),
    FunctionSpec("pos", "+a", (NUMBERS,), None),
    FunctionSpec("abs", "abs(a)", (NUMBERS,), None),
    FunctionSpec(
        "round", "round(a, b)", (NUMBERS, INTS), None, "ValueError OverflowError", n_optional=1
    ),
    FunctionSpec("floor", "math.floor(a)", (NUMBERS,), Kind.INT, "ValueError OverflowError"),
    FunctionSpec("ceil", "math.ceil(a)", (NUMBERS,), Kind.INT, "ValueError OverflowError"),
    FunctionSpec("min", "min(a, b, …)", (NUMBERS | TEXTUAL,), None, is_variadic=True),
    FunctionSpec("max", "max(a, b, …)", (NUMBERS | TEXTUAL,), None, is_variadic=True),
    FunctionSpec(
        "int",
        "int(a, b), b the base of a text",
        (TEXTUAL | NUMBERS | JSONS, INTS),
        Kind.INT,
        "ValueError OverflowError TypeError",
        n_optional=1,
    ),
    FunctionSpec(
        "float",
        "float(a)",
        (TEXTUAL | NUMBERS | JSONS,),
        Kind.FLOAT,
        "ValueError OverflowError TypeError",
    ),
)

VALUE_FUNCTIONS: tuple[FunctionSpec, ...] = (
    FunctionSpec("eq", "a == b", (ANY_VALUE, ANY_VALUE), Kind.BOOL),
    FunctionSpec("ne", "a != b", (ANY_VALUE, ANY_VALUE), Kind.BOOL),
    FunctionSpec("not", "not a", (BOOLS,), Kind.BOOL),
    FunctionSpec("truth", "bool(a)", (ANY_VALUE,), Kind.BOOL),
    FunctionSpec("len", "len(a)", (TEXTUAL | LISTS | JSONS,), Kind.INT, "TypeError"),
    FunctionSpec(
        "item",
        "a[b]",
        (TEXTUAL | LISTS | JSONS, TEXTUAL | INTS),
        None,
        "KeyError IndexError TypeError",
    ),
    FunctionSpec(
        "slice",
        "a[b:c:d]",
        (TEXTUAL | LISTS | JSONS, INT_OR_NONE, INT_OR_NONE, INT_OR_NONE),
        None,
        "ValueError TypeError KeyError",
    ),
    FunctionSpec("has", "b in a", (LISTS | JSONS, ANY_VALUE), Kind.BOOL, "TypeError"),
    FunctionSpec("get", "a.get(b, c)", (JSONS, TEXTUAL, ANY_VALUE), None, "AttributeError"),
    FunctionSpec("keys", "list(a.keys())", (JSONS,), Kind.LIST, "AttributeError"),
    FunctionSpec("values", "list(a.values())", (JSONS,), Kind.LIST, "AttributeError"),
    FunctionSpec(
        "is_a",
        "isinstance(a, (b, …)), b the name of a type",
        (JSONS | {Kind.FLOAT}, TEXTUAL),
        Kind.BOOL,
        is_variadic=True,
    ),
    FunctionSpec(
        "as",
        "a, which is of type b; its attribute c is asked for",
        (JSONS, TEXTUAL, TEXTUAL),
        None,
        "AttributeError",
    ),
    FunctionSpec(
        "concat", "a + b, two texts", (TEXTUAL | JSONS, TEXTUAL | JSONS), Kind.TEXT, "TypeError"
    ),
    FunctionSpec("unpack", "a, which has b items", (LISTS | JSONS, INTS), None, "ValueError"),
    FunctionSpec("json_loads", "json.loads(a)", (TEXTUAL,), None, "JSONDecodeError ValueError"),
    FunctionSpec(
        "json_dumps",
        "json.dumps(a, indent=b, ensure_ascii=c, sort_keys=d, separators=(e, f))",
        (ANY_VALUE, INT_OR_NONE | TEXTUAL, BOOLS, BOOLS, TEXTUAL, TEXTUAL),
        Kind.TEXT,
        "TypeError",
    ),
    FunctionSpec(
        "raises",
        "whether the function b of c, … raises the exception a",
        (TEXTUAL, TEXTUAL, ANY_VALUE),
        Kind.BOOL,
        is_variadic=True,
    ),
)

# Each returns a new list: a program that mutates a list continues with the new one.
LIST_FUNCTIONS: tuple[FunctionSpec, ...] = (
    FunctionSpec("plus", "a + b, two lists", (LISTS, LISTS), Kind.LIST),
    FunctionSpec("times", "a * b, a a list", (LISTS, INTS), Kind.LIST),
    FunctionSpec("push", "[*a, b]", (LISTS, ANY_VALUE), Kind.LIST),
    FunctionSpec("insert", "a after a.insert(b, c)", (LISTS, INTS, ANY_VALUE), Kind.LIST),
    FunctionSpec("put", "a after a[b] = c", (LISTS, INTS, ANY_VALUE), Kind.LIST, "IndexError"),
    FunctionSpec("without", "a after a.pop(b)", (LISTS, INTS), Kind.LIST, "IndexError"),
    FunctionSpec("removed", "a after a.remove(b)", (LISTS, ANY_VALUE), Kind.LIST, "ValueError"),
    FunctionSpec("named", "dict(a)[b], a a list of pairs", (LISTS, TEXTUAL), None, "KeyError"),
    FunctionSpec("sorted", "sorted(a, reverse=b)", (LISTS, BOOLS), Kind.LIST, "TypeError"),
    FunctionSpec("n_of", "a.count(b), a a list", (LISTS, ANY_VALUE), Kind.INT),
    FunctionSpec("where", "a.index(b), a a list", (LISTS, ANY_VALUE), Kind.INT, "ValueError"),
    FunctionSpec("sum", "sum(a, b)", (LISTS, NUMBERS), None, "TypeError"),
    FunctionSpec("smallest", "min(a), a a list", (LISTS,), None, "ValueError TypeError"),
    FunctionSpec("largest", "max(a), a a list", (LISTS,), None, "ValueError TypeError"),
    FunctionSpec("any", "any(a)", (LISTS,), Kind.BOOL),
    FunctionSpec("all", "all(a)", (LISTS,), Kind.BOOL),
)

_PATTERN = (TEXTUAL, INTS, TEXTUAL)

REGEX_FUNCTIONS: tuple[FunctionSpec, ...] = (
    FunctionSpec("re_match", "re.match(a, c, b), as spans", _PATTERN, Kind.LIST),
    FunctionSpec("re_search", "re.search(a, c, b), as spans", _PATTERN, Kind.LIST),
    FunctionSpec("re_fullmatch", "re.fullmatch(a, c, b), as spans", _PATTERN, Kind.LIST),
    FunctionSpec("re_findall", "re.findall(a, c, b)", _PATTERN, Kind.LIST),
    FunctionSpec("re_split", "re.split(a, c, d, b)", (*_PATTERN, INTS), Kind.LIST),
    FunctionSpec("re_sub", "re.sub(a, d, c, e, b)", (*_PATTERN, TEXTUAL, INTS), Kind.TEXT),
    FunctionSpec("re_took_part", "a[b] is not None", (LISTS, INTS), Kind.BOOL),
    FunctionSpec("re_group", "the text of c in the span a[b]", (LISTS, INTS, TEXTUAL), Kind.TEXT),
    FunctionSpec("re_start", "where the span a[b] starts", (LISTS, INTS), Kind.INT),
    FunctionSpec("re_end", "where the span a[b] ends", (LISTS, INTS), Kind.INT),
    FunctionSpec("re_escape", "re.escape(a)", (TEXTUAL,), Kind.TEXT),
)

FUNCTION_TABLE: tuple[FunctionSpec, ...] = (
    *TEXT_FUNCTIONS,
    *NUMBER_FUNCTIONS,
    *VALUE_FUNCTIONS,
    *LIST_FUNCTIONS,
    *REGEX_FUNCTIONS,
)

FUNCTIONS: dict[str, FunctionSpec] = {row.name: row for row in FUNCTION_TABLE}
