"""A sheet of cells: the model writes formulas, a tiny evaluator works them out."""

import re

import sgc

CELL = re.compile(r"\b([A-C])([1-9])\b")
FUNCTIONS = {"SUM": sum, "MAX": max, "MIN": min, "AVG": lambda xs: sum(xs) / len(xs)}


class SheetError(ValueError):
    pass


def cells_between(first: str, last: str) -> list[str]:
    low, high = sorted((int(first[1]), int(last[1])))
    return [f"{column}{row}" for column in {first[0], last[0]} for row in range(low, high + 1)]


def evaluate(formula: str, sheet: dict[str, float]) -> float:
    formula = formula.strip().lstrip("=").upper()
    if m := re.fullmatch(r"(\w+)\(([A-C][1-9]):([A-C][1-9])\)", formula):
        name, first, last = m.groups()
        if name not in FUNCTIONS:
            raise SheetError(f"#NAME? {name}")
        return FUNCTIONS[name]([sheet.get(c, 0.0) for c in cells_between(first, last)])
    if m := re.fullmatch(r"([A-C][1-9])\s*([-+*/])\s*([A-C][1-9])", formula):
        a, op, b = sheet.get(m[1], 0.0), m[2], sheet.get(m[3], 0.0)
        if op == "/" and b == 0:
            raise SheetError("#DIV/0!")
        return {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else 0.0}[op]
    raise SheetError("#SYNTAX!")


@sgc.function
def program(s, sheet: dict[str, float], wishes: list[str], target: str = "C"):
    s += "Cells:\n" + "\n".join(f"{k}={v:g}" for k, v in sorted(sheet.items())) + "\n"
    values = dict(sheet)
    errors = 0
    for row, wish in enumerate(wishes, start=1):
        name = f"{target}{row}"
        s += f"{name}: {wish}\n{name}: =" + sgc.gen("formula", max_tokens=16, stop="\n") + "\n"
        try:
            values[name] = round(evaluate(s["formula"], values), 2)
        except SheetError as e:
            errors += 1
            s += f"{e} Again: =" + sgc.gen("formula", max_tokens=16, stop="\n") + "\n"
            try:
                values[name] = round(evaluate(s["formula"], values), 2)
            except SheetError:
                values[name] = 0.0
        s += f"{name} is {values[name]:,.2f}".replace(".00", "") + "\n"
    new = {k: v for k, v in values.items() if k not in sheet}
    return new, errors


ARGUMENTS = [
    {"sheet": {"A1": 10.0, "A2": 32.5, "B1": 0.0}, "wishes": ["the sum of A", "A1 per B1"]},
    {"sheet": {}, "wishes": ["the mean of A1 to A3"]},
    {"sheet": {"A1": 1.0}, "wishes": []},
]
REPLIES = ["SUM(A1:A2)", "a1 / b1", "AVG(A1:A3)", "MEDIAN(A1:A2)", "one plus one", "A2-A1"]
