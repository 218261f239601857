"""The operators that converted code calls instead of Python's own operations; see `convert`.

Without an abstract operand, each does exactly what Python does.
"""

from __future__ import annotations

from typing import Any

from sgc.lang.turns import turn
from sgc.tracing.code.operator_names import (
    ALWAYS,
    AS_DICT,
    AS_SET,
    AS_TEXT,
    AS_VALUE,
    ASCII,
    ASKED,
    ATTRIBUTE,
    BORN,
    BY_KEYS,
    CACHED,
    CALLEE,
    CLASS_PARTS,
    COMPARED,
    CONTAINS,
    EXTENDS,
    FILLED,
    FORMATTED,
    GENERATES,
    GIVEN,
    HASHED,
    IDENTICAL,
    IN_PYTHON,
    IS_LIVE,
    IS_RUN_TIME,
    ITEM,
    KEYED_PARTS,
    KNOWN,
    LISTED,
    LIVE,
    LOOPS,
    MATCHES,
    METHOD,
    MODULO,
    OR_NONE,
    OVER,
    OWN,
    OWNER,
    PARTS,
    PIECE,
    READ_OF,
    RETURNED,
    SAME,
    SHOWN,
    SLICE,
    SPREAD,
    TEXT,
    TURN,
    UNCACHED,
    UNCHANGED,
    UNPACKED,
    WHOLE,
)
from sgc.tracing.operators.attributes import attribute, own, owner, unchanged
from sgc.tracing.operators.calls import callee
from sgc.tracing.operators.code.in_python import in_python
from sgc.tracing.operators.code.pieces import as_value, piece
from sgc.tracing.operators.code.run_time import is_run_time
from sgc.tracing.operators.code.spread import spread
from sgc.tracing.operators.collected import as_dict, as_set, hashed
from sgc.tracing.operators.lists import parts
from sgc.tracing.operators.live.calls import cached, extends, method, uncached
from sgc.tracing.operators.live.keyed import asked, by_keys, given
from sgc.tracing.operators.live.patterns import known
from sgc.tracing.operators.live.pieces import as_text, born, is_live, listed, live, shown
from sgc.tracing.operators.live.unpacked import unpacked
from sgc.tracing.operators.lookups import contains, item, sliced_by
from sgc.tracing.operators.loops import filled, generates, gone_over, loops, matches
from sgc.tracing.operators.patterns import class_parts, keyed_parts
from sgc.tracing.operators.percent import modulo
from sgc.tracing.operators.surroundings import read_of
from sgc.tracing.operators.texts import (
    as_ascii,
    compared,
    formatted,
    identical,
    or_none,
    returned,
    same,
    text,
    whole,
)

OPERATORS: dict[str, Any] = {
    TEXT: text,
    CALLEE: callee,
    CONTAINS: contains,
    MODULO: modulo,
    ASCII: as_ascii,
    FORMATTED: formatted,
    COMPARED: compared,
    WHOLE: whole,
    RETURNED: returned,
    SAME: same,
    IDENTICAL: identical,
    OR_NONE: or_none,
    ITEM: item,
    SLICE: sliced_by,
    PARTS: parts,
    KEYED_PARTS: keyed_parts,
    CLASS_PARTS: class_parts,
    AS_SET: as_set,
    AS_DICT: as_dict,
    HASHED: hashed,
    LOOPS: loops,
    GENERATES: generates,
    OVER: gone_over,
    PIECE: piece,
    IN_PYTHON: in_python,
    IS_RUN_TIME: is_run_time,
    AS_VALUE: as_value,
    ALWAYS: True,
    OWN: own,
    READ_OF: read_of,
    ATTRIBUTE: attribute,
    OWNER: owner,
    UNCHANGED: unchanged,
    MATCHES: matches,
    FILLED: filled,
    SPREAD: spread,
    IS_LIVE: is_live,
    LIVE: live,
    BORN: born,
    METHOD: method,
    AS_TEXT: as_text,
    KNOWN: known,
    CACHED: cached,
    UNCACHED: uncached,
    SHOWN: shown,
    TURN: turn,
    LISTED: listed,
    UNPACKED: unpacked,
    ASKED: asked,
    GIVEN: given,
    BY_KEYS: by_keys,
    EXTENDS: extends,
}
