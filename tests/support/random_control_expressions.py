"""Expressions of random programs: names, texts and tests, some with a watched construct."""

from __future__ import annotations

import random
from typing import Any

import random_control_texts as texts
from random_control_tree import Mark, Place


class Expressions:
    """Draws expressions."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.n_names = 0
        self.drawn: list[Mark] = []

    def name(self, place: Place) -> str:
        self.n_names += 1
        if place.maybe and self.rng.random() < 0.2:
            return self.rng.choice(place.maybe)
        return f"{place.stream}{self.n_names}"

    def value(self, place: Place) -> str:
        return f'{place.stream}["{self.rng.choice(place.sure)}"]'

    def word(self) -> str:
        return self.rng.choice(("a", "b ", "c\n", "é", "{x}", "%s"))

    def watched(self, form: Any, place: Place) -> str:
        """An expression with a watched construct."""
        given = ["w", "word"] if place.is_called else ["w", "q", "p"]
        parts = self.value(place), self.value(place), self.rng.choice(given)
        written, mark = form(self.rng, place.stream, *parts)
        self.drawn.append(mark)
        return str(written)

    def text(self, place: Place) -> str:
        """An expression whose value is a text."""
        if self.rng.random() < 0.5:
            return self.watched(texts.text_form, place)
        v = self.value(place)
        quoted = v.replace('"', "'")
        forms = [
            v, v, f"{v}.strip()", f"{v}.lower()", f'{v}.replace("e", "i")', f"{v}.split()[0]",
            f"{v}[:2]", f'f"<{{{quoted}:>6}}>"', "w", 'f"{k}"', '",".join(words)', "str(d)",
            f'f"{{len({quoted})}}"', f'{v}.removeprefix("y")', '"%s" % w', f"{v}[-1]",
            f'("L" if {self.test(place, 2)} else "R")',
            "(lambda: w)()", f"record({v})", f'", ".join([w, {v}])',
        ]  # fmt: skip
        return self.rng.choice(forms)

    def test(self, place: Place, depth: int = 0) -> str:
        if self.rng.random() < 0.3:
            return self.watched(texts.test_form, place)
        v, other = self.value(place), self.value(place)
        forms = [
            f'{v} == "yes"', f'{v} == "yes"', f'{v} != "no"', f'{v}.strip().lower() == "yes"',
            f'{v}.startswith("y")', f'"e" in {v}', f"len({v}) > 2", f'{v} in ("yes", "7")',
            f"1 < len({v}) < 4", f"{v} == {other}", f"is_odd({v})", f"{v}.isdigit()",
            'w == "w"', "k > 0", f'(u := {v}) == "no"', f'{v} not in ["no", w]',
        ]  # fmt: skip
        if not place.is_called:
            forms += ["is_long", "n > 2", "len(q) == 2", f"{v} == q", "p == q"]
        if depth < 2 and self.rng.random() < 0.3:
            one, two = self.test(place, depth + 1), self.test(place, depth + 1)
            return self.rng.choice([f"not ({one})", f"({one}) and ({two})", f"({one}) or ({two})"])
        return self.rng.choice(forms)
