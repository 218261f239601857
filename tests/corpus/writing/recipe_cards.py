"""Writes a recipe card, scaled to the number of guests, with allergens checked against a table."""

import contextlib
from fractions import Fraction

import sgc

ALLERGENS = {
    "flour": "gluten",
    "milk": "lactose",
    "butter": "lactose",
    "almonds": "nuts",
    "eggs": "eggs",
}
SWAPS = {"gluten": "rice flour", "lactose": "oat milk", "nuts": "seeds"}


def pretty(amount: Fraction) -> str:
    whole, rest = divmod(amount, 1)
    if not rest:
        return str(whole)
    glyphs = {Fraction(1, 2): "½", Fraction(1, 4): "¼", Fraction(3, 4): "¾", Fraction(1, 3): "⅓"}
    part = glyphs.get(rest, f" {rest}")
    return (str(whole) if whole else "") + part


def scale(ingredients: dict[str, str], factor: Fraction) -> dict[str, str]:
    scaled = {}
    for name, quantity in ingredients.items():
        scaled[name] = quantity
        amount, *unit = quantity.split()
        with contextlib.suppress(ValueError):
            scaled[name] = " ".join([pretty(Fraction(amount) * factor), *unit])
    return scaled


@sgc.function
def program(s, dish: str, ingredients: dict[str, str], serves: int, guests: int, avoid: set[str]):
    amounts = scale(ingredients, Fraction(guests, serves))
    s += f"Recipe for {dish}, {guests} guests\n"
    swapped = []
    for name in ingredients:
        allergen = ALLERGENS.get(name)
        if allergen in avoid:
            if allergen in SWAPS:
                replacement = SWAPS[allergen]
            else:
                s += f"In place of {name} one can use"
                s += sgc.gen("replacement", max_tokens=6, stop=["\n", ".", ","]) + ".\n"
                replacement = s["replacement"].strip()
                if not replacement or replacement in ALLERGENS:
                    amounts.pop(name)
                    continue
            swapped.append((name, replacement))
            amounts[replacement] = amounts.pop(name)
    for name, amount in amounts.items():
        s += f"  {amount:>10}  {name}\n"

    steps = []
    s += "Number of steps: " + sgc.gen("n_steps", regex="[1-5]") + "\n"
    for i in range(int(s["n_steps"])):
        s += f"{i + 1}." + sgc.gen("step", max_tokens=24, stop="\n") + "\n"
        step = s["step"].strip()
        if step.lower().startswith("enjoy") or not step:
            break
        steps.append(step)
    forgotten = [n for n in amounts if not any(n in step.lower() for step in steps)]
    if steps and forgotten:
        s += f"(What about {forgotten[0]}?)" + sgc.gen("note", max_tokens=24, stop="\n")
    return {"amounts": amounts, "swapped": swapped, "steps": steps}


PANCAKES = {"flour": "200 g", "milk": "1/2 l", "eggs": "3", "salt": "a pinch"}
ARGUMENTS = [
    {
        "dish": "cake",
        "ingredients": PANCAKES,
        "serves": 4,
        "guests": 6,
        "avoid": {"gluten", "eggs"},
    },
    {"dish": "air", "ingredients": {}, "serves": 1, "guests": 1, "avoid": set()},
    {"dish": "crêpes", "ingredients": PANCAKES, "serves": 4, "guests": 1, "avoid": {"eggs"}},
]
REPLIES = [
    " Whisk the flour with the milk.",
    " Bananas",
    " Enjoy!",
    " eggs",
    " Add salt and fry.",
    "",
]
