"""Tasks in which a tool is chosen."""

from __future__ import annotations

from random import Random

from tiny_model import world as w
from tiny_model.exchange import Exchange
from tiny_model.first_hour import sums
from tiny_model.first_hour.phrasings import head as phrased
from tiny_model.person_tasks import ABOUT_PERSON, biography, value_of
from tiny_model.world import World

TOOLS: dict[str, tuple[str, ...]] = {
    "search": ("search", "search engine", "lookup"),
    "calculator": ("calculator", "calculator", "math"),
    "calendar": ("calendar", "calendar", "date"),
    "weather": ("weather", "weather", "forecast"),
}
TOOL_DOES = {
    "search": "looks up a fact",
    "calculator": "works out a sum",
    "calendar": "tells days and dates",
    "weather": "tells the weather of a city",
}
TOOL_HEADS = [
    "Which tool answers the question? Tools: {}.",
    "Choose the right tool for the question: {}.",
    "You can use one of these tools: {}. Which one do you need?",
    "Pick a tool ({}) for the request.",
]


def big_sum(r: Random, world: World) -> tuple[str, int, int]:
    """A sign and two numbers; from the last stage on, none that the exams of sums may ask for."""
    while True:
        sign, x, y = world.pick(r, "big sum", "+-*", range(2, 100), range(2, 100))
        x, y = (max(x, y), min(x, y)) if sign == "-" else (x, y)
        if sums.may_have(world, sign, x, y):
            return sign, x, y


def tool_question(r: Random, world: World, tool: str) -> tuple[str, str, str, str]:
    """A question for the tool, the tool's input, its result, and the answer."""
    if tool == "calculator":
        sign, x, y = big_sum(r, world)
        value = {"+": x + y, "-": x - y, "*": x * y}[sign]
        spoken = {"+": "plus", "-": "minus", "*": "times"}[sign]
        asked = r.choice(
            [
                f"What is {x} {spoken} {y}?",
                f"What is {x} {sign} {y}?",
                f"How much is {x} {spoken} {y}?",
            ]
        )
        return asked, f"{x} {sign} {y}", str(value), f"{value}"
    if tool == "weather":
        place, sky = w.city(r), r.choice(["sunny", "rainy", "cloudy", "windy", "snowy"])
        degrees = r.randint(1, 30)
        asked = r.choice(
            [
                f"What is the weather in {place}?",
                f"Is it {sky} in {place} today?",
                f"Do I need an umbrella in {place}?",
                f"How warm is it in {place}?",
            ]
        )
        return (
            asked,
            place,
            f"{sky}, {degrees} degrees",
            f"It is {sky} in {place}, {degrees} degrees.",
        )
    if tool == "calendar":
        n, month = world.pick(r, "day", range(1, 29), w.MONTHS)
        day = r.choice(w.DAYS)
        asked = r.choice(
            [
                f"Which day of the week is {n} {month}?",
                f"What day is {n} {month}?",
                f"On which weekday does {n} {month} fall?",
            ]
        )
        return asked, f"{n} {month}", day, day
    if r.random() < 0.5:
        p = world.person(r)
        field = r.choice(["job", "city", "born", "food", "pet"])
        asked = r.choice(ABOUT_PERSON[field][:2]).format(first=p.name, name=p.name)
        while "{" not in "".join(ABOUT_PERSON[field]) or p.name not in asked:
            asked = r.choice(ABOUT_PERSON[field][:2]).format(first=p.name, name=p.name)
        return asked, p.name, biography(r, p, ["name", field]), str(value_of(p, field))
    country, city, _ = r.choice(w.rows("countries"))
    asked = r.choice(
        [f"What is the capital of {country}?", f"Which city is the capital of {country}?"]
    )
    return asked, f"capital of {country}", f"The capital of {country} is {city}.", city


def tool_names(r: Random, n_min: int = 2) -> dict[str, str]:
    """Some tools, with the name of each."""
    kinds = r.sample(sorted(TOOLS), r.randint(n_min, len(TOOLS)))
    return {kind: r.choice(TOOLS[kind]) for kind in kinds}


def tool_choice(r: Random, form: Random, world: World) -> Exchange:
    names = tool_names(form)
    tool = r.choice(sorted(names))
    question = tool_question(r, world, tool)[0]
    head = phrased(form, world, "tool", TOOL_HEADS).format(", ".join(names.values()))
    label = form.choice(["Question", "Question", "Request", "User"])
    return Exchange(head, label, question, form.choice(["Tool", "Tool", "Answer"]), names[tool])
