"""The names that code may look up: globals, attributes, texts that name attributes, and imports."""

from __future__ import annotations

import dis
import functools
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, field

# Names by which code may look up names that it does not spell.
_DYNAMIC = frozenset(
    {"__dict__", "__getattribute__", "attrgetter", "dir", "eval", "exec", "getattr", "getmembers",
     "import_module", "vars"}
)  # fmt: skip
_NAME = re.compile(r"[^\W\d]\w*")
MAX_CHARS = 2_000  # of a text that may name attributes
_READS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


@dataclass(frozen=True, slots=True)
class Names:
    """read: as globals. used: also as attributes, or spelt in a text. imports: modules, each with
    the level of a relative import. is_dynamic: others may be looked up too, by names made at run
    time."""

    read: frozenset[str]
    used: frozenset[str]
    imports: frozenset[tuple[str, int]] = field(default_factory=frozenset)
    is_dynamic: bool = False


@functools.lru_cache(maxsize=4096)
def names_in(code: types.CodeType) -> Names:
    """The names of a function and of functions nested in it."""
    read, imports = set[str](), set[tuple[str, int]]()
    used = {*code.co_names, *_spelt(code.co_consts)}
    instructions = [each for each in dis.get_instructions(code) if each.opname != "EXTENDED_ARG"]
    for index, each in enumerate(instructions):
        if each.opname in _READS:
            read.add(str(each.argval))
        elif each.opname == "IMPORT_NAME":  # its level and its names are on the stack
            level = instructions[index - 2].argval
            imports.add((str(each.argval), level if isinstance(level, int) else 0))
    is_dynamic = not used.isdisjoint(_DYNAMIC)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = names_in(constant)
            read |= inner.read
            used |= inner.used
            imports |= inner.imports
            is_dynamic = is_dynamic or inner.is_dynamic
    return Names(frozenset(read), frozenset(used), frozenset(imports), is_dynamic)


def _spelt(constants: object) -> Iterator[str]:
    """The parts of constant texts that may name attributes, as in `getattr(module, "name")`."""
    if isinstance(constants, (tuple, frozenset)):
        for each in constants:
            yield from _spelt(each)
    elif isinstance(constants, str) and len(constants) <= MAX_CHARS:
        if "{" in constants:  # of a template, as in "{user.name}".format(user=user)
            yield from _NAME.findall(constants)
        elif all(part.isidentifier() for part in constants.split(".")):
            yield from (constants, *constants.split("."))
