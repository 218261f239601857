"""Only the program's own references keep code from changing a value: none that tracing leaves."""

from __future__ import annotations

import gc
import re
from dataclasses import dataclass, replace

import pytest
from control_flow import agree

import sgc
from sgc.errors import TraceError
from sgc.tracing.paths.exploration import Budget

POOL = ("a", "b,c", "", "a,b,c,d", "é,b", "NEW", "x,x", " a | b ")


@sgc.function
def grows_what_it_has_listed(s, words: list[str]):
    codes = {"b": 0}
    for word in words:
        s += "So far: " + "; ".join(f"{c} ({n})" for c, n in codes.items()) + "\n"
        s += sgc.gen("name", max_tokens=4, stop="\n")
        name = s["name"].strip().lower()
        if name not in codes:
            codes[name] = len(word)
    return {"codes": [*codes], "n": len(codes)}


def test_a_dict_may_change_after_a_comprehension_went_over_it():
    agree(
        grows_what_it_has_listed, POOL, budget=Budget(work=300_000), words=["one", "two", "three"]
    )


@sgc.function
def changes_what_it_shows(s, words: list[str]):
    codes = {"b": 0}
    shown = codes.items()
    for word in words:
        s += "So far: " + "; ".join(f"{c} ({n})" for c, n in shown) + "\n"
        s += sgc.gen("name", max_tokens=4, stop="\n")
        codes[s["name"].strip()] = len(word)
    return {"shown": len(shown)}


def test_a_view_of_the_programs_own_shows_the_change():
    with pytest.raises(TraceError, match="held in several places"):
        agree(changes_what_it_shows, POOL, words=["one", "two", "three"])


@dataclass(frozen=True)
class Place:
    street: str
    city: str

    @property
    def key(self):
        return re.sub(r"(str\.|street)$", "", self.street.lower()).strip(), self.city


@sgc.function
def merges_doubles(s, lines: list[str]):
    found = {}
    for line in lines:
        s += f"{line}: " + sgc.gen("row", max_tokens=8, stop="\n") + "\n"
        match [part.strip() for part in s["row"].split(",")]:
            case [street, city]:
                place = Place(street, city.title())
            case _:
                continue
        if place.street == "x":
            s += "Street: " + sgc.gen("street", max_tokens=8, stop="\n") + "\n"
            place = replace(place, street=s["street"])
        before = found.get(place.key)
        if before is None or len(before.street) < len(place.street):
            found[place.key] = place
    return {"n": len(found), "all": sorted(each.street for each in found.values())}


@pytest.mark.slow
def test_a_dict_may_change_whatever_was_decided_before():
    """While a budget is spent, frames are looked at to find pieces; none of them stays alive."""
    gc.disable()
    try:
        agree(merges_doubles, POOL, budget=Budget(work=300_000), lines=["1", "2", "3"])
    finally:
        gc.enable()
