"""The names by which converted code calls operators."""

from __future__ import annotations

TEXT, CALLEE, CONTAINS, MODULO, ASCII, COMPARED, WHOLE, RETURNED, LOOPS, OVER, ITEM, SAME, \
    PIECE, IS_RUN_TIME, SLICE, PARTS, AS_SET, AS_DICT, OR_NONE, ALWAYS, OWN, UNCHANGED, \
    KEYED_PARTS, CLASS_PARTS, FORMATTED, READ_OF, ATTRIBUTE, IN_PYTHON, AS_VALUE, MATCHES, \
    FILLED, OWNER, IDENTICAL, GENERATES, SPREAD, HASHED, IS_LIVE, LIVE, BORN, METHOD, AS_TEXT, \
    KNOWN, CACHED, UNCACHED, SHOWN, TURN, LISTED, UNPACKED, ASKED, GIVEN, BY_KEYS, EXTENDS = (
    "__sgc_text__", "__sgc_callee__", "__sgc_contains__", "__sgc_modulo__", "__sgc_ascii__",
    "__sgc_compared__", "__sgc_whole__", "__sgc_returned__", "__sgc_loops__", "__sgc_over__",
    "__sgc_item__", "__sgc_same__", "__sgc_piece__", "__sgc_is_run_time__", "__sgc_slice__",
    "__sgc_parts__", "__sgc_as_set__", "__sgc_as_dict__", "__sgc_or_none__", "__sgc_always__",
    "__sgc_own__", "__sgc_unchanged__", "__sgc_keyed_parts__", "__sgc_class_parts__",
    "__sgc_formatted__", "__sgc_read_of__", "__sgc_attribute__", "__sgc_in_python__",
    "__sgc_as_value__", "__sgc_matches__", "__sgc_filled__", "__sgc_owner__",
    "__sgc_identical__", "__sgc_generates__", "__sgc_spread__", "__sgc_hashed__",
    "__sgc_is_live__", "__sgc_live__", "__sgc_born__", "__sgc_method__", "__sgc_as_text__",
    "__sgc_known__", "__sgc_cached__", "__sgc_uncached__", "__sgc_shown__", "__sgc_turn__",
    "__sgc_listed__", "__sgc_unpacked__", "__sgc_asked__", "__sgc_given__", "__sgc_by_keys__",
    "__sgc_extends__",
)  # fmt: skip
OPERATORS = frozenset({
    TEXT, CALLEE, CONTAINS, MODULO, ASCII, COMPARED, WHOLE, RETURNED, LOOPS, OVER, ITEM, SAME,
    PIECE, IS_RUN_TIME, SLICE, PARTS, AS_SET, AS_DICT, OR_NONE, ALWAYS, OWN, UNCHANGED,
    KEYED_PARTS, CLASS_PARTS, FORMATTED, READ_OF, ATTRIBUTE, IN_PYTHON, AS_VALUE, MATCHES,
    FILLED, OWNER, IDENTICAL, GENERATES, SPREAD, HASHED, IS_LIVE, LIVE, BORN, METHOD, AS_TEXT,
    KNOWN, CACHED, UNCACHED, SHOWN, TURN, LISTED, UNPACKED, ASKED, GIVEN, BY_KEYS,
    EXTENDS,
})  # fmt: skip

MANAGER = "__sgc_with_"  # the prefix of variables that hold the managers of open `with` blocks
# The methods of streams, and functions, whose `with` blocks belong to the language.
OWN_WITHS = frozenset({"system", "user", "assistant", "var_scope", "copy"})
