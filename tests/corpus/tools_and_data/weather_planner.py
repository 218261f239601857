"""Plans a week outdoors: forecasts from a tool, an activity a day, nothing twice in a row."""

from functools import partial
from typing import Literal

import sgc

Sky = Literal["sun", "cloud", "rain"]
ACTIVITIES: dict[Sky, list[str]] = {
    "sun": ["swim", "hike", "picnic"],
    "cloud": ["cycle", "hike", "museum"],
    "rain": ["museum", "cinema"],
}
short = partial(sgc.gen, max_tokens=12, stop="\n")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@sgc.tool(effect="pure", on_error={"sky": "cloud", "celsius": 15, "known": False})
def forecast(place: str, day: str) -> dict:
    if not place:
        raise ValueError("where?")
    n = (len(place) * 7 + DAYS.index(day) * 5) % 12
    sky = ("sun", "cloud", "rain")[n % 3]
    return {"sky": sky, "celsius": 12 + n, "known": True}


def fahrenheit(celsius: float) -> int:
    return round(celsius * 9 / 5 + 32)


@sgc.function
def program(s, place: str, n_days: int = 3, american: bool = False):
    s += f"A week in {place or 'an unknown place'}:\n"
    plan: dict[str, str] = {}
    previous = None
    temperatures = []
    for day in DAYS[:n_days]:
        weather = forecast(place, day)
        temperatures.append(weather["celsius"])
        degrees = f"{fahrenheit(weather['celsius'])} F" if american else f"{weather['celsius']} C"
        options = [a for a in ACTIVITIES[weather["sky"]] if a != previous]
        if weather["celsius"] < 18 and "swim" in options:
            options.remove("swim")
        s += f"{day} ({weather['sky']}, {degrees}): "
        if len(options) == 1:
            s += options[0] + "\n"
            choice = options[0]
        else:
            s += sgc.select(f"choice_{day}", choices=options) + "\n"
            choice = s[f"choice_{day}"]
        plan[day] = choice
        previous = choice
        if not weather["known"]:
            s += "  (no forecast)\n"
    warmest = max(zip(temperatures, plan), key=lambda pair: pair[0], default=(0, None))
    packing = {"swimsuit" for a in plan.values() if a == "swim"}
    packing |= {"boots" for a in plan.values() if a in ("hike", "cycle")}
    if packing:
        s += "Pack: " + ", ".join(sorted(packing)) + " and"
        s += short("more")
    return plan, warmest[1]


ARGUMENTS = [
    {"place": "Bled"},
    {"place": "Reno, Nevada", "n_days": 7, "american": True},
    {"place": "", "n_days": 2},
]
REPLIES = [" a hat", " sun cream", " nothing else", ""]
