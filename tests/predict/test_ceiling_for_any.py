"""What a run with any arguments can cost at most: the dearest path, loops by their bounds."""

from __future__ import annotations

import math

import pytest
from hostile_programs import FAMILIES
from lang.map_programs import note
from tests_support import one_in

import sgc
from sgc.ir.text.parser import parse
from sgc.predict.bounds.ceiling import MAX_LOOPS, ceiling_for_any
from sgc.predict.bounds.flow import MAX_PATHS, Flow
from sgc.tracing.tracer import trace


def test_the_dearest_path_counts():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=5)
        if s["x"] == "a":
            s += sgc.gen("y", max_tokens=7) + sgc.gen("z", max_tokens=11)
        else:
            group = s.fork(3)
            group += sgc.gen("part", max_tokens=4)
            group.join()

    found = ceiling_for_any(trace(program))
    assert (found.requests, found.completion_tokens) == (1 + 4, 5 + 18)
    assert Flow(trace(program)).n_paths() == 2


def test_a_loop_counts_as_often_as_its_bound():
    @sgc.function
    def program(s, q: str):
        for turn in sgc.turns(6):
            s += f"{turn}" + sgc.gen("x", max_tokens=3)
            for again in sgc.turns(2):
                s += f"{again}" + sgc.gen("y")
            if s["x"] == "done":
                break

    found = ceiling_for_any(trace(program))
    assert found.requests == 6 * (1 + 2)
    assert found.completion_tokens == 18
    assert Flow(trace(program)).n_loops() == 1


def test_a_loop_without_a_bound_has_no_ceiling_and_max_turns_gives_one():
    def program(s):
        while True:
            s += "?" + sgc.gen("x", max_tokens=3)
            if s["x"] == "done":
                break

    assert ceiling_for_any(trace(sgc.function(program))).requests == math.inf
    bounded = ceiling_for_any(trace(sgc.function(program, max_turns=9)))
    assert bounded.requests == 9


def test_the_ceiling_counts_known_lists_and_names_others():
    @sgc.function
    def main(s, xs: list[str]):
        s += sgc.gen("many", n=3, max_tokens=2)
        sgc.map(note, s["many"])
        sgc.map(note, xs)

    most = ceiling_for_any(main.compile().graph)
    assert (most.requests, most.completion_tokens) == (3 + 3, 3 * 2 + 3 * 4)
    assert [
        (*key[1:], cost.requests, cost.completion_tokens) for key, cost in most.mapped.items()
    ] == [("note", ("%xs",), 1, 4)]


def test_more_paths_than_can_be_printed_are_not_counted() -> None:
    assert Flow(parse(FAMILIES["diamonds"](40))).n_paths() == MAX_PATHS
    assert Flow(parse(FAMILIES["diamonds"](9))).n_paths() == 2**10


@pytest.mark.parametrize("n", one_in(2, [2, 11, MAX_LOOPS - 2, MAX_LOOPS + 3]))
def test_loops_are_looked_into_so_far(n: int) -> None:
    found = ceiling_for_any(parse(FAMILIES["loops"](n))).requests
    assert found == (4**n if n <= MAX_LOOPS else math.inf)


def test_a_long_loop_counts_each_turn_without_being_followed() -> None:
    """And a counter that does not begin at zero, or in each turn anew, is no other number."""
    looped = """sgir 1
program @p(%x: text) {{
  %n: int = compute "int" [{begin}]
  %s = stream "p"
  jump "b" args=[%s, %n]
^b(%t: stream, %i: int):
  %a, %y = gen %t max_tokens=2
  %j: int = compute "add" [%i, {step}]
  %k: bool = compute "lt" [%j, 100000]
  branch %k then="on" orelse="end"
^on:
  jump "b" args=[%a, {again}]
^end:
  return
}}
"""

    def requests(begin: int = 0, step: int = 1, again: str = "%j") -> float:
        text = looped.format(begin=begin, step=step, again=again)
        return ceiling_for_any(parse(text)).requests

    assert requests() == requests(step=2) == 100_000
    assert requests(begin=-100_000) == 200_000
    assert requests(step=0) == requests(step=-1) == math.inf
    assert requests(again="%i") == requests(again="%n") == requests(again="7") == math.inf


def test_maps_of_maps_in_a_long_chain() -> None:
    assert len(ceiling_for_any(parse(FAMILIES["map_chain"](40))).mapped) == 40
    assert math.isinf(ceiling_for_any(parse(FAMILIES["map_chain"](1500))).requests)


def test_what_no_run_can_take_is_no_error_of_the_ceiling() -> None:
    """A file may hold literals that its ops cannot take."""
    graph = parse(
        """sgir 1
program @p(%x: text) {
  %s = stream "p"
  %t: text = tool "t" effect="pure" on_error="}"
  %a, %y = gen_n %s 1000000000000 max_tokens=-1
  %f = format %x "%WIDTH"
  return
}
""".replace("%WIDTH", "9" * 5000)
    )
    assert ceiling_for_any(graph).requests == math.inf
