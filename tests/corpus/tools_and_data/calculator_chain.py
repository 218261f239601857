"""Word problems: the model writes sums inside << >>, a calculator fills them in (as in GSM8K)."""

import operator
import re

import sgc

OPERATORS = dict(zip("+-*/", (operator.add, operator.sub, operator.mul, operator.truediv)))
TOKEN = re.compile(r"\s*(\d+\.?\d*|[-+*/()])")


def tokenize(expression):
    position = 0
    while position < len(expression.rstrip()):
        m = TOKEN.match(expression, position)
        if not m:
            raise ValueError(f"unexpected {expression[position]!r}")
        position = m.end()
        yield m[1]


def parse(tokens, level=0):
    """Precedence climbing over a list of tokens that is eaten from the front."""
    token = tokens.pop(0)
    if token == "(":
        value = parse(tokens)
        if tokens.pop(0) != ")":
            raise ValueError("')' is missing")
    else:
        value = float(token)
    while tokens and tokens[0] in OPERATORS and (level < 1 or tokens[0] in "*/"):
        op = tokens.pop(0)
        right = parse(tokens, 1 if op in "+-" else 2)
        value = OPERATORS[op](value, right)
    return value


@sgc.tool(effect="pure")
def calculate(expression: str) -> float:
    return parse(list(tokenize(expression)))


@sgc.function
def program(s, problem: str, max_sums: int = 4):
    s += f"Problem: {problem}\nWork it out. Write sums as <<3*4>>.\n"
    results = []
    for _ in range(max_sums):
        s += sgc.gen("text", max_tokens=60, stop=">>")
        _, marker, expression = s["text"].rpartition("<<")
        if not marker:
            break
        try:
            value = calculate(expression)
        except (ValueError, ArithmeticError, IndexError) as e:
            s += f">> (error: {e}) "
            continue
        shown = f"{value:.2f}".rstrip("0").rstrip(".")
        results.append(value)
        s += f"={shown}>>{shown} "
    s += "\nThe answer is" + sgc.gen("answer", max_tokens=8, stop=["\n", "."])
    numbers = re.findall(r"-?\d+", s["answer"])
    trusted = bool(results) and bool(numbers) and int(numbers[-1]) == round(results[-1])
    return {"answer": numbers[-1] if numbers else None, "trusted": trusted, "sums": results}


ARGUMENTS = [{"problem": "3 boxes of 12 eggs, 5 are broken."}, {"problem": "", "max_sums": 1}]
REPLIES = ["There are <<3*12", "<<36-(2+3)", "<<4/0", "<<four + 1", "<<(1+", "<<(1 2", "31 eggs"]
