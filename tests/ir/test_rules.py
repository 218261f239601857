"""Rules of the verifier at their edges: what is just right, and what is just not."""

from __future__ import annotations

import pytest

from sgc.ir.text.parser import parse
from sgc.ir.verify import find_breaches

JOIN = """
  %s = stream "p"
  %e0: bool = ended %s %ok
  %e1: bool = ended %s %ok
  %w: list[int] = join_first [%e0, %e1] k=K
  return %w
"""
SPAN = """
  %s = stream "p"
  %t, %c0 = fork %s 1
  %d = const %c0 "a"
  %u = append_span %t %c0 %d KV
  return none
"""
SWITCH = """
  switch %x cases=["a", CASE] targets=["b", "b"] default="b"
^b:
  return none
"""
HAND_ON = """
  jump "b" args=[%c]
^b(%d: choice[OPTIONS]):
  return %d
"""


SHOW = '\n  %s: bool = show "text" to=TO\n  return none\n'


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (SHOW.replace("TO", '"stderr"'), ""),
        (SHOW.replace("TO", '"modules"'), "to is one of stdout, stderr, log, warnings"),
        (JOIN.replace("K", "1"), ""),
        (JOIN.replace("K", "2"), ""),
        (JOIN.replace("K", "0"), "k is from 1 to 2, the number of entries, found 0"),
        (JOIN.replace("K", "3"), "k is from 1 to 2, the number of entries, found 3"),
        *[(SPAN.replace("KV", kv), "") for kv in ("", 'kv="first"', 'kv="next"')],
        (SPAN.replace("KV", 'kv="near"'), "kv is first or next, found 'near'"),
        (SPAN.replace("KV", "kv=none"), "kv"),
        (SPAN.replace("KV", "kv=7"), "kv"),
        (SPAN.replace("KV", "kv=%x"), "kv"),
        (SWITCH.replace("CASE", '"c"'), ""),
        (SWITCH.replace("CASE", '"a"'), "a case is there twice"),
        (HAND_ON.replace("OPTIONS", '"a", "b", "c"'), ""),
        (HAND_ON.replace("OPTIONS", '"a", "c"'), "%c for a parameter of type choice"),
    ],
)
def test_rules_at_their_edges(body: str, told: str) -> None:
    head = 'sgir 1\nprogram @p(%x: text, %ok: bool, %c: choice["a", "b"]) {'
    found = [breach.headline for breach in find_breaches(parse(f"{head}{body}}}\n"))]
    assert len(found) == bool(told), found
    assert told in "".join(found)
