"""The types of results of the builtins, methods and library functions that code may call.

A row is `effects -> type`. In it, T is an item of the receiver, K and V a dict's key and value, A0
the first argument, I0 an item of A0, T0 an item of A0 if A0 is a list, D1 the second argument or
None, R1 the second argument or nothing; `any` is a value of any type. `V<A1` says that the second
argument becomes a value of the receiver. `iter` is any iterator.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Result:
    """effects: pairs of a part of the receiver or an argument, and the value that flows into it."""

    effects: tuple[tuple[str, str], ...]
    gives: ast.expr


@lru_cache(maxsize=1024)
def result(row: str) -> Result:
    """A row of the tables, parsed."""
    before, _, gives = row.rpartition("->")
    pairs = (each.partition("<") for each in before.split())
    effects = tuple((into, source) for into, _, source in pairs)
    return Result(effects, ast.parse(gives.strip(), mode="eval").body)


def _rows(table: str) -> dict[str, str]:
    """`name name: row` lines as a dict."""
    found = {}
    for line in filter(None, map(str.strip, table.splitlines())):
        names, _, row = line.partition(":")
        found.update(dict.fromkeys(names.split(), row.strip()))
    return found


_LIST = """
    append appendleft: T<A0 -> None
    extend extendleft: T<I0 -> None
    insert: T<A1 -> None
    pop popleft: T
    copy: list[T]
    index count: int
    remove sort reverse clear rotate: None
"""
_DICT = """
    get: V | D1
    setdefault: K<A0 V<D1 -> V
    pop: V | R1
    popitem: tuple[K, V]
    keys: view[K]
    values: view[V]
    items: view[tuple[K, V]]
    clear: None
"""
METHODS: dict[str, dict[str, str]] = {
    "str": _rows("""
        capitalize casefold center expandtabs format format_map join ljust lower lstrip: str
        removeprefix removesuffix replace rjust rstrip strip swapcase title translate: str
        upper zfill: str
        split rsplit splitlines: list[str]
        partition rpartition: tuple[str, str, str]
        find rfind index rindex count: int
        startswith endswith isalnum isalpha isascii isdecimal isdigit isidentifier: bool
        islower isnumeric isprintable isspace istitle isupper: bool
        encode: any
    """),
    "int": _rows("""
        bit_length bit_count conjugate: int
    """),
    "float": _rows("""
        is_integer: bool
        as_integer_ratio: tuple[int, int]
        conjugate: float
        hex: str
    """),
    "list": _rows(_LIST),
    "deque": _rows(_LIST) | {"copy": "deque[T]"},
    "set": _rows("""
        add: T<A0 -> None
        update symmetric_difference_update: T<I0 -> None
        discard remove clear difference_update intersection_update: None
        pop: T
        copy difference intersection: set[T]
        union symmetric_difference: set[T | I0]
        issubset issuperset isdisjoint: bool
    """),
    "dict": _rows(_DICT) | {"copy": "dict[K, V]"},
    "defaultdict": _rows(_DICT) | {"copy": "defaultdict[K, V]"},
    "Counter": _rows(_DICT)
    | _rows("""
        most_common: list[tuple[K, V]]
        elements: iter[K]
        total: int
        subtract: K<I0 -> None
        copy: Counter[K, V]
    """),
    "tuple": _rows("""
        index count: int
    """),
    "Match": _rows("""
        start end: int
        expand: str
        span: tuple[int, int]
    """),
    "Pattern": _rows("""
        search match fullmatch: Match | None
        finditer: iter[Match]
        sub: str
        subn: tuple[str, int]
    """),
    "Random": _rows("""
        random uniform gauss: float
        randint randrange getrandbits: int
        choice: I0
        choices sample: list[I0]
        shuffle seed: None
    """),
}
# Methods that return the same type for every object.
OF_ANY = _rows("""
    most_common: list[any]
    findall split rsplit splitlines: list[any]
    strip lstrip rstrip lower upper title capitalize casefold swapcase zfill ljust rjust: str
    removeprefix removesuffix isoformat strftime hexdigest: str
    startswith endswith isdigit isalpha isupper islower isspace isalnum: bool
    issubset issuperset isdisjoint: bool
    ratio quick_ratio real_quick_ratio: float
""")
BUILTINS = _rows("""
    str repr chr format ascii bin hex oct: str
    len int ord: int
    float: float
    bool any all isinstance callable: bool
    list sorted: list[I0]
    set frozenset: set[I0]
    tuple: tuple[I0, ...]
    iter reversed: iter[I0]
    enumerate: iter[tuple[int, I0]]
    range: range[int]
    next: I0 | R1
""")
LIBRARY = {
    "re": _rows("""
        search match fullmatch: Match | None
        finditer: iter[Match]
        sub escape: str
        subn: tuple[str, int]
    """),
    "json": {"dumps": "str"},
    "math": _rows("""
        acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees dist erf erfc: float
        exp exp2 expm1 fabs fmod fsum gamma hypot ldexp lgamma log log10 log1p log2: float
        nextafter radians remainder sin sinh sqrt tan tanh ulp: float
        ceil floor comb factorial gcd isqrt lcm perm trunc: int
        isclose isfinite isinf isnan: bool
        modf: tuple[float, float]
        frexp: tuple[float, int]
        e inf nan pi tau: float
    """),
    "collections": _rows("""
        deque: deque[I0]
    """),
    "itertools": _rows("""
        islice cycle takewhile dropwhile compress: iter[I0]
        pairwise: iter[tuple[I0, I0]]
        filterfalse: iter[I1]
        combinations combinations_with_replacement permutations: iter[tuple[I0, ...]]
        repeat: iter[A0]
    """),
    "string": _rows("""
        ascii_letters ascii_lowercase ascii_uppercase digits punctuation whitespace: str
        capwords hexdigits octdigits printable: str
    """),
    "shlex": _rows("""
        join quote: str
        split: list[str]
    """),
    "textwrap": _rows("""
        dedent indent fill shorten: str
        wrap: list[str]
    """),
    "random": {"Random": "Random"},
    "statistics": _rows("fmean geometric_mean correlation: float"),
    "difflib": {"get_close_matches": "list[I1]"},
    "html": {"escape": "str", "unescape": "str"},
    "unicodedata": _rows("""
        normalize category name east_asian_width: str
        combining: int
    """),
    "copy": {"copy": "A0", "deepcopy": "A0"},
    "bisect": _rows("""
        bisect bisect_left bisect_right: int
        insort insort_left insort_right: T0<A1 -> None
    """),
    "heapq": _rows("""
        heappush: T0<A1 -> None
        heappop: I0
        heapify: None
        heappushpop heapreplace: T0<A1 -> I0
        nlargest nsmallest: list[I1]
    """),
    "urllib.parse": _rows("""
        quote quote_plus unquote unquote_plus urlencode urljoin: str
    """),
}
