"""Normalises quantities: a table of operators, statistics, outliers asked about, slices with steps."""

import operator
import re
import statistics

import sgc

UNITS = {
    "g": (operator.truediv, 1000),
    "kg": (operator.mul, 1),
    "lb": (operator.mul, 0.4536),
    "t": (operator.mul, 1000),
}
QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(\w+)?")


def to_kg(text: str) -> float:
    m = QUANTITY.match(text)
    if not m:
        raise ValueError(f"no quantity in {text!r}")
    op, factor = UNITS[(m.group(2) or "kg").lower()]
    return round(op(float(m.group(1)), factor), 3)


@sgc.function
def program(s, lines: list[str]):
    values, errors = [], {}
    for n, line in enumerate(lines, start=1):
        try:
            values.append(to_kg(line))
        except KeyError as e:
            errors[n] = f"unit {e.args[0]}"
        except ValueError as e:
            errors[n] = str(e)
    if len(values) >= 2:
        m, sd = statistics.fmean(values), statistics.stdev(values)
        out = [v for v in values if sd and abs(v - m) / sd > 1]
    else:
        m, out = sum(values), []
    for v in sorted(out)[::-1]:
        s += (
            f"Is {v:,.3f} kg plausible (mean {m:.1f})? "
            + sgc.select("ok", choices=["yes", "no"])
            + "\n"
        )
        if s["ok"] == "no":
            values.remove(v)
    for n, e in errors.items():
        s += f"Line {n}: {e}\n"
    s += "Remark:" + sgc.gen("remark", max_tokens=10)
    return values[::-1], values[::2], errors


ARGUMENTS = [
    {"lines": ["500 g", "2 kg", "3", "2 t", "five", "3 stones"]},
    {"lines": []},
    {"lines": ["1 lb", "1 kg"]},
]
REPLIES = [" Fine."]
