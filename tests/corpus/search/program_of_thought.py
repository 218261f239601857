"""Program of Thoughts: the model writes assignments, a safe evaluator runs them."""

import ast
import operator

import sgc

OPS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
}


def evaluate(node, names):
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp(left, op, right):
            return OPS[type(op)](evaluate(left, names), evaluate(right, names))
        case ast.UnaryOp(op, operand):
            return OPS[type(op)](evaluate(operand, names))
    raise ValueError(f"{type(node).__name__} is not allowed")


@sgc.tool(effect="pure")
def execute(code: str) -> dict:
    """Runs `name = expression` lines; gives all names."""
    names: dict = {}
    for statement in ast.parse(code).body:
        if not isinstance(statement, ast.Assign):
            raise ValueError("only assignments are allowed")
        names[statement.targets[0].id] = evaluate(statement.value, names)
    return names


@sgc.function
def program(s, question: str, retries: int = 2):
    s += f"# Question: {question}\n# Python, assignments only. The result is in `ans`.\n"
    for attempt in range(1 + retries):
        s += sgc.gen("code", max_tokens=128, stop=["# Question", "\n\n"]) + "\n"
        try:
            names = execute(s["code"].strip())
        except ZeroDivisionError:
            s += "# Error: division by zero. Corrected:\n"
        except (SyntaxError, ValueError, KeyError) as e:
            s += f"# Error in attempt {attempt + 1}: {e}. Corrected:\n"
        else:
            if "ans" in names:
                ans = names["ans"]
                pretty = f"{ans:,.2f}" if isinstance(ans, float) else str(ans)
                s += f"# ans = {pretty}\n# In words:" + sgc.gen("words", max_tokens=32, stop="\n")
                return {"ans": ans, "attempts": attempt + 1}
            s += "# There is no `ans`. Again:\n"
    return {"ans": None, "attempts": retries + 1}


ARGUMENTS = [
    {"question": "A shirt costs 40 and is reduced by 15%. What does it cost?"},
    {"question": "What is one by none?", "retries": 0},
]
REPLIES = [
    "price = 40\nans = price * (100 - 15) / 100",
    "ans = 1 / 0",
    "import os",
    "ans = [40, 15]",
    "ans = (40 -",
    "total = 40 * -2",
    "ans = 34",
    "ans = nobody + 1",
]
