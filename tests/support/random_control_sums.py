"""Statements of random programs: loops that accumulate something."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Sum:
    """An accumulated value. first: its initial value; updates: statements of an iteration, with its
    text `{x}`; shown: expressions that show it; is_closed: whether an iteration keeps the shape of
    its state, so that any loop stays small.
    """

    kind: str
    first: str
    updates: tuple[str, ...]
    shown: tuple[str, ...]
    is_closed: bool = False


SUMS = (
    Sum("text that grows", '""', ('{t} += {x} + ","', '{t} = f"{{{t}}}{{{q}}};"'),
        ("{t}", "{t}.strip(',')", "{t}[-9:]")),
    Sum("counter", "0", ("{t} += 1", 'if "e" in {x}:\n    {t} += 1', "{t} = {t} + 2"),
        ("str({t})", 'f"{{{t}:02}}"', '("L" if {t} > 1 else "S")')),
    Sum("sum of lengths", "0", ("{t} += len({x})", "{t} = max({t}, len({x}))"),
        ("str({t})", '"x" * ({t} % 5)'), is_closed=True),
    Sum("list that grows", "[]", ("{t}.append({x})", "{t} = [*{t}, {x}]", "{t} += [{x}]"),
        ('"/".join({t})', "str(len({t}))", '({t} or ["none"])[-1]', "str({t})")),
    Sum("set of seen texts", "[]", ("if {x} not in {t}:\n    {t}.append({x})",),
        ('"/".join({t})', "str(len({t}))")),
    Sum("best so far", '""', ("if len({x}) > len({t}):\n    {t} = {x}", "{t} = max({t}, {x})",
                              "if {x} > {t}:\n    {t} = {x}"),
        ("{t}", "{t}.upper()"), is_closed=True),
    Sum("last texts", "[]", ("{t} = [*{t}, {x}][-2:]", "{t} = ({t} + [{x}])[-3:]",
                             "{t}.append({x})\nif len({t}) > 2:\n    {t}.pop(0)"),
        ('"/".join({t})', "str({t})"), is_closed=True),
    Sum("history that is cut", '""', ("{t} = ({t} + {x})[-5:]", '{t} = f"{{{t}}}|{{{q}}}"[-300:]'),
        ("{t}", "{t}[:3]"), is_closed=True),
    Sum("draws", "random.Random(7)",
        ("{t}.random()", 'if "e" in {x}:\n    {t}.random()', "{t}.randint(0, len({x}))",
         "{t}.choice({x} or 'z')"),
        ('f"{{{t}.random():.4f}}"', "str({t}.randint(0, 999))", '{t}.choice(("d", "e", "f"))'),
        is_closed=True),
    Sum("table that grows", "{{}}", ('{t}[str(len({t}))] = {x}', '{t}["last"] = {x}'),
        ("str({t})", '"/".join({t}.values())')),
)  # fmt: skip
KINDS = tuple(each.kind for each in SUMS)

KNOWN = ("for _ in range(3):", 'for _ in ("a", "b"):')
COUNTED = ("for _ in sgc.turns(2):", "for _ in sgc.turns(3):")


@dataclass(frozen=True)
class Gathering:
    """A loop that accumulates a value, as lines."""

    kind: str
    before: str
    head: str
    update: tuple[str, ...]
    shown: str


def gathering(rng: random.Random, name: str, x: str, is_open: bool) -> Gathering:
    """A random loop. is_open: `sgc.turns` loops may have a state that changes its shape."""
    each = rng.choice(SUMS)
    heads = (*KNOWN, *COUNTED) if each.is_closed or is_open else KNOWN
    given = {"t": name, "x": x, "q": x.replace('"', "'")}
    update = rng.choice(each.updates).format(**given)
    shown = rng.choice(each.shown).format(**given)
    first = each.first.format()
    return Gathering(each.kind, f"{name} = {first}", rng.choice(heads),
                     tuple(update.split("\n")), shown)  # fmt: skip
