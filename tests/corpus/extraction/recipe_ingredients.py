"""Ingredients of a recipe: amounts are read, converted to grams, and scaled to other portions."""

import re
from fractions import Fraction
from functools import partial

import sgc

GRAMS = {"g": 1, "kg": 1000, "cup": 120, "tbsp": 15, "tsp": 5, "oz": 28.35}
AMOUNT = re.compile(r"^(\d+(?:/\d+)?(?:\.\d+)?)\s*([a-z]+)?\s+(.+)$")


number = partial(sgc.gen, dtype=int)


def parse_amount(text: str) -> float:
    return float(Fraction(text))


@sgc.function
def program(s, recipe: str, portions: int, wanted: int):
    s += f"Recipe for {portions}:\n{recipe}\n\nIngredients, one a line, like '200 g flour':\n"
    s += sgc.gen("ingredients", max_tokens=100, stop="\n\n")
    factor = wanted / portions
    shopping = {}
    odd = []
    for line in s["ingredients"].splitlines():
        line = line.lower().strip(" -•*")
        if not line:
            continue
        m = AMOUNT.match(line)
        if m is None:
            odd.append(line)
            continue
        count, unit, name = m.groups()
        amount = parse_amount(count) * factor
        if unit in GRAMS:
            grams = amount * GRAMS[unit]
            shopping[name] = shopping.get(name, 0) + grams
        elif unit is None:
            shopping[f"{name} (pieces)"] = amount
        else:
            s += f"\n\nHow many grams is one {unit} of {name}? "
            s += number("grams")
            grams = int(s["grams"])
            if grams <= 0:
                odd.append(line)
            else:
                shopping[name] = shopping.get(name, 0) + amount * grams

    s += f"\n\nShopping list for {wanted}:\n"
    for name, amount in sorted(shopping.items(), key=lambda kv: -kv[1]):
        kilos, grams = divmod(round(amount), 1000)
        s += f"- {name}: " + (f"{kilos} kg {grams} g" if kilos else f"{grams}") + "\n"
    if odd:
        s += "- and some " + ", ".join(odd) + "\n"
    return shopping, odd


ARGUMENTS = [
    {"recipe": "Pancakes: flour, two eggs, half a cup of milk.", "portions": 2, "wanted": 6},
    {"recipe": "", "portions": 1, "wanted": 1},
    {"recipe": "Air", "portions": 0, "wanted": 2},
]
REPLIES = [
    "200 g flour\n -\n2 eggs\n1/2 cup milk\nsalt",
    "- 1.5 kg Flour\n- 3 pinches sugar\n",
    "a little love",
    "10",
]
