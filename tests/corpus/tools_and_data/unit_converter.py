"""Unit conversion: number and units are read from the question, a tool converts."""

import functools
import math

import sgc

UNITS = {
    "m": ("length", 1.0),
    "km": ("length", 1000.0),
    "mile": ("length", 1609.344),
    "ft": ("length", 0.3048),
    "kg": ("mass", 1.0),
    "lb": ("mass", 0.45359237),
}


@sgc.tool(effect="pure")
def convert(value: float, source: str, target: str) -> float:
    (dim_a, a), (dim_b, b) = UNITS[source], UNITS[target]
    if dim_a != dim_b:
        raise ValueError(f"cannot convert {dim_a} to {dim_b}")
    return value * a / b


def zero_is_zero(function):
    @functools.wraps(function)
    def wrapped(value, *rest):
        return function(value, *rest) if value else 0.0

    return wrapped


@zero_is_zero
def significant(value: float, digits: int) -> float:
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


@sgc.function
def program(s, question: str, digits: int = 3):
    s += f"Question: {question}\nNumber: "
    s += sgc.gen("number", max_tokens=8, stop="\n")
    try:
        value = float(s["number"].replace(",", ""))
    except ValueError:
        s += "\n(That is no number, I take 1.)"
        value = 1.0
    s += "\nFrom: " + sgc.select("source", choices=list(UNITS))
    s += "\nTo: " + sgc.select("target", choices=list(UNITS))
    source, target = s["source"], s["target"]
    if source == target:
        return f"{value:g} {source} is {value:g} {target}, of course."
    try:
        result = convert(value, source, target)
    except ValueError as e:
        s += f"\nThat does not work: {e}." + sgc.gen("clarify", max_tokens=32, stop="\n")
        return s["clarify"].strip()
    short = significant(result, digits)
    about = "" if math.isclose(short, result) else "about "
    s += f"\n{value:g} {source} = {about}{short:g} {target}"
    if target == "ft" and short > 1:
        feet, inches = divmod(round(result * 12), 12)
        s += f" ({feet} ft {inches} in)"
    if short > 1e6 or 0 < abs(short) < 1e-3:
        s += f" ({result:.2e})"
    return short


ARGUMENTS = [{"question": "A marathon in miles?"}, {"question": "In feet?"}, {"question": ""}]
REPLIES = ["42.195", "1,000,000", "0", "forty-two", " They want a length."]
