"""Brings measurements of mixed units to metres; what cannot be read goes to the model."""

import re
import statistics

import sgc

FACTORS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "km": 1000.0, "ft": 0.3048, "in": 0.0254}
MEASURE = re.compile(r"^\s*([\d.,]+)\s*([a-z]+)\s*$", re.I)


@sgc.tool(effect="pure")
def convert(value: float, unit: str) -> float:
    if unit not in FACTORS:
        raise KeyError(unit)
    return round(value * FACTORS[unit], 6)


@sgc.function
def interpret(s, text: str):
    s += f"Measurement: {text}\nThe number: " + sgc.gen("number", regex=r"[0-9]+(\.[0-9]+)?")
    s += "\nThe unit: " + sgc.select("unit", choices=list(FACTORS))
    return float(s["number"]), s["unit"]


@sgc.function
def program(s, what: str, measurements: list[str]):
    metres = []
    for text in measurements:
        if m := MEASURE.match(text):
            number, unit = float(m[1].replace(",", ".")), m[2].lower()
        else:
            number, unit = interpret(text).ret_value
        try:
            metres.append(convert(number, unit))
        except KeyError:
            s += f"{text} has the unit {unit}, which is "
            s += sgc.select("known_as", choices=[*FACTORS, "no length"]) + ".\n"
            if s["known_as"] == "no length":
                continue
            metres.append(convert(number, s["known_as"]))
    if len(metres) < 3:
        return {"mean": None, "values": metres}

    median = statistics.median(metres)
    outliers = [x for x in metres if x > 10 * median or x < median / 10]
    for x in outliers:
        s += (
            f"Is {x:g} m possible for {what}? "
            + sgc.select("possible", choices=["yes", "no"])
            + "\n"
        )
        if s["possible"] == "no":
            metres.remove(x)
    mean = sum(metres) / len(metres)
    s += f"{what}: {mean:.3f} m (n={len(metres)})"
    return {"mean": round(mean, 3), "values": metres}


ARGUMENTS = [
    {
        "what": "the height of a door",
        "measurements": ["2.1 m", "6,9 ft", "1980mm", "two metres", "2 km"],
    },
    {"what": "a pencil", "measurements": ["7 in", "18 furlongs", "17,5 cm"]},
    {"what": "nothing", "measurements": []},
]
REPLIES = ["2", "2.05", "200", " m"]
