"""The names that a graph's code may use: builtins, items of modules, and special methods.

`restored(Class, attributes)` makes an instance without a call of `__init__`; `unchanged(value)` is
a value that nothing may change: a run ends with an error if something does; `always(value)` is a
`default_factory` that returns copies of a value; `cached(function, text)` calls a function once for
each tuple of arguments; `refused(text)` ends a run. Python has none of these functions.
"""

from __future__ import annotations

EXCEPTIONS = (
    "ArithmeticError", "AssertionError", "AttributeError", "EOFError", "Exception",
    "FloatingPointError", "IndexError", "KeyError", "LookupError", "NameError",
    "NotImplementedError", "OSError", "OverflowError", "RuntimeError", "StopIteration",
    "SyntaxError", "TimeoutError", "TypeError", "UnboundLocalError", "UnicodeDecodeError",
    "UnicodeEncodeError", "UnicodeError", "ValueError", "ZeroDivisionError",
)  # fmt: skip
ADDED = ("always", "cached", "refused", "restored", "unchanged")  # not in Python
BUILTINS = frozenset(
    {
        *EXCEPTIONS, *ADDED,
        "abs", "all", "any", "ascii", "bin", "bool", "bytes", "callable", "chr", "dict", "divmod",
        "enumerate", "filter", "float", "format", "frozenset", "getattr", "hasattr", "hash", "hex",
        "int", "isinstance", "iter", "len", "list", "map", "max", "min", "next", "oct", "ord",
        "pow", "range", "repr", "reversed", "round", "set", "setattr", "slice",
        "sorted", "str", "sum", "tuple", "type", "zip", "NotImplemented",
    }
)  # fmt: skip

_OPERATORS = (
    "attrgetter itemgetter methodcaller add sub mul truediv floordiv mod neg pos pow lt le eq ne "
    "gt ge and_ or_ xor not_ truth contains getitem concat abs is_ is_not"
)
_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf "
    "erfc exp exp2 expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot inf isclose isfinite "
    "isinf isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod "
    "radians remainder sin sinh sqrt tan tanh tau trunc ulp"
)
_DECIMAL = (
    "Decimal DecimalException DivisionByZero Inexact InvalidOperation Overflow ROUND_05UP "
    "ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP"
)
_TABLE = {
    "math": _MATH,
    "re": "compile match fullmatch search findall finditer split sub subn escape error I "
    "IGNORECASE M MULTILINE S DOTALL A ASCII X VERBOSE U UNICODE Match Pattern",
    "json": "loads dumps JSONDecodeError",
    "collections": "Counter defaultdict deque OrderedDict",
    "itertools": "chain islice zip_longest groupby accumulate pairwise product combinations "
    "combinations_with_replacement permutations takewhile dropwhile count cycle repeat starmap "
    "filterfalse compress",
    "functools": "reduce partial cmp_to_key total_ordering",
    "operator": _OPERATORS,
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits punctuation whitespace "
    "capwords hexdigits octdigits printable",
    "shlex": "join quote split",
    "textwrap": "dedent indent fill wrap shorten",
    "random": "Random",
    "datetime": "date datetime timedelta time timezone",
    "decimal": _DECIMAL,
    "fractions": "Fraction",
    "statistics": "mean fmean median median_low median_high mode multimode stdev pstdev variance "
    "pvariance harmonic_mean geometric_mean quantiles correlation covariance StatisticsError",
    "difflib": "SequenceMatcher get_close_matches unified_diff ndiff",
    "html": "escape unescape",
    "unicodedata": "normalize category combining name east_asian_width",
    "copy": "copy deepcopy",
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "graphlib": "TopologicalSorter CycleError",
    "heapq": "heappush heappop heapify heappushpop heapreplace nlargest nsmallest",
    "base64": "b64encode b64decode urlsafe_b64encode urlsafe_b64decode",
    "hashlib": "md5 sha1 sha224 sha256 sha384 sha512",
    "uuid": "NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL NAMESPACE_X500 UUID uuid3 uuid5",
    "urllib.parse": "quote quote_plus unquote unquote_plus urlencode urlparse urljoin parse_qs "
    "parse_qsl",
    "csv": "reader DictReader writer DictWriter",
    "io": "StringIO",
    "ast": "literal_eval",
    "dataclasses": "dataclass field replace asdict astuple fields",
    "enum": "Enum IntEnum StrEnum auto",
    "typing": "NamedTuple",
    "pydantic": "BaseModel ValidationError",
    "urllib": "",
}
# Optional packages.
OPTIONAL = frozenset({"pydantic"})
# Names by module. typing has no others, since annotations are not evaluated.
LIBRARY: dict[str, frozenset[str]] = {
    module: frozenset(names.split()) for module, names in _TABLE.items()
}

# Special methods that a class may define.
_SPECIAL = """
init post_init repr str format eq ne lt le gt ge hash len iter next contains getitem setitem delitem
bool call reversed abs neg pos invert int float add radd iadd sub rsub isub mul rmul imul truediv
rtruediv itruediv floordiv rfloordiv ifloordiv mod rmod imod divmod rdivmod pow rpow ipow lshift
rlshift ilshift rshift rrshift irshift and rand iand or ror ior xor rxor ixor
"""
SPECIAL_METHODS = frozenset(f"__{name}__" for name in _SPECIAL.split())
# The decorators of methods, and the options of a dataclass.
DECORATORS = frozenset({"cached_property", "classmethod", "property", "staticmethod"})
DATACLASS_OPTIONS = frozenset(
    {"eq", "frozen", "init", "kw_only", "order", "repr", "slots", "unsafe_hash"}
)
