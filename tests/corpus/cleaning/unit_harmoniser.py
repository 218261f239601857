"""Brings lengths of mixed units to metres; what the regex cannot read goes to the model."""

import re

import sgc

FACTORS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "km": 1000.0, "ft": 0.3048, "in": 0.0254}


@sgc.tool(effect="pure")
def convert(value: float, unit: str) -> float:
    return round(value * FACTORS[unit], 6)


@sgc.function
def program(s, what: str, measurements: list[str]):
    metres = []
    for text in measurements:
        m = re.match(r"\s*([\d.,]+)\s*([a-z]+)", text)
        if m:
            number = float(m.group(1).replace(",", "."))
            unit = m.group(2)
        else:
            s += f"{text!r} in numbers: " + sgc.gen("number", regex=r"[0-9]+(\.[0-9]+)?") + " "
            s += sgc.select("unit", choices=list(FACTORS)) + "\n"
            number, unit = float(s["number"]), s["unit"]
        try:
            metres.append(convert(number, unit))
        except KeyError as e:
            s += f"I do not know {e}. It is" + sgc.gen("explained", max_tokens=16, stop="\n") + "\n"

    low, high = min(metres, default=0), max(metres, default=0)
    if high > 10 * low:
        s += f"Are {low:g} m and {high:g} m both possible for {what}? "
        s += sgc.select("possible", choices=["yes", "no"]) + "\n"
        if s["possible"] == "no":
            metres = [x for x in metres if x != high]
    mean = sum(metres) / len(metres) if metres else 0.0
    s += f"{what}: {mean:.3f} m (n={len(metres)})"
    return mean


ARGUMENTS = [
    {"what": "the height of a door", "measurements": ["2.1 m", "6,9 ft", "two metres", "2 km"]},
    {"what": "a pencil", "measurements": ["7 in", "18 furlongs", "17,5 cm"]},
    {"what": "nothing", "measurements": []},
]
REPLIES = ["2", "2.05", "200", " an old unit of length."]
