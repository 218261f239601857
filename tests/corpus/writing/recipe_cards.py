"""Writes a recipe card for any number of guests."""

import sgc

units = {"flour": "g", "milk": "ml", "eggs": "", "sugar": "g"}


def nice(amount):
    if amount == int(amount):
        return str(int(amount))
    else:
        return str(round(amount, 1))


@sgc.function
def program(s, dish: str, for_one: dict[str, float], guests: int = 2, vegan: bool = False):
    s += "Recipe for " + dish + " (" + str(guests) + " guests)\n\nIngredients:\n"
    for name in for_one:
        amount = for_one[name] * guests
        if vegan and name in ["milk", "eggs"]:
            s += "- instead of " + name + ":"
            s += sgc.gen("swap", max_tokens=6, stop=["\n", ","]) + "\n"
            if s["swap"].strip() == "":
                s += "  (leave it out)\n"
        else:
            s += "- " + nice(amount) + " " + units.get(name, "") + " " + name + "\n"

    s += "\nHow many steps? " + sgc.gen("n_steps", regex="[1-5]") + "\n"
    minutes = 0
    for i in range(int(s["n_steps"])):
        s += "Step " + str(i + 1) + ":" + sgc.gen("step", max_tokens=24, stop="\n")
        s += " (minutes: " + sgc.gen("minutes", regex="[0-9]|[1-9][0-9]") + ")\n"
        minutes += int(s["minutes"])
    hours, minutes = divmod(minutes, 60)
    if hours > 0:
        s += "It takes %d h %02d min." % (hours, minutes)
    else:
        s += "It takes %d minutes." % minutes


ARGUMENTS = [
    {"dish": "pancakes", "for_one": {"flour": 62.5, "milk": 125, "eggs": 0.3}, "guests": 4},
    {"dish": "pancakes", "for_one": {"flour": 60, "milk": 120, "eggs": 1}, "vegan": True},
    {"dish": "air", "for_one": {}, "guests": 0},
]
REPLIES = [
    " Whisk the flour with the milk.",
    " oat milk",
    " Fry it, then enjoy!",
    "",
    ", whatever you like",
    " 30",
]
