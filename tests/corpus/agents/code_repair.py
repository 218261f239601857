"""Repairs a snippet: parse it with ast, show the error with its line, ask for a fix, try again."""

import ast
import textwrap

import sgc

FENCE = "```"


@sgc.tool(effect="pure")
def check(source: str) -> list[str]:
    """Names that are used and never bound. Raises SyntaxError for what does not parse."""
    names = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    bound = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    used = {n.id for n in names if isinstance(n.ctx, ast.Load)}
    return sorted(used - bound - {"print", "len", "range", "sum"})


def strip_fences(text: str) -> str:
    if FENCE in text:
        inner = text.split(FENCE)[1]
        if inner.startswith("python"):
            inner = inner[len("python") :]
        return inner.strip("\n")
    return textwrap.dedent(text).strip("\n")


@sgc.function
def program(s, source: str, goal: str):
    s += sgc.system("You repair Python. Answer with a fenced code block and nothing else.")
    code = source
    log = []
    for attempt in range(1, 4):
        try:
            undefined = check(code)
        except SyntaxError as err:
            problem = f"it does not parse ({err})"
        else:
            if not undefined:
                break
            problem = "undefined names: " + ", ".join(undefined)
        log.append(f"{attempt}: {problem}")
        numbered = "\n".join(f"{i:>3} | {line}" for i, line in enumerate(code.splitlines(), 1))
        s += sgc.user(f"Goal: {goal}\n{numbered}\nThe problem: {problem}")
        s += sgc.assistant(sgc.gen("fix", max_tokens=256))
        code = strip_fences(s["fix"])
    else:
        log.append("gave up")
        return None, log
    return code, log


ARGUMENTS = [
    {"source": "total = 0\nfor x in xs\n    total += x\nprint(total)", "goal": "sum a list"},
    {"source": "", "goal": "do nothing"},
    {"source": "print(len('abc'))", "goal": "print a length"},
]
REPLIES = [
    "```python\nxs = [1, 2]\nprint(sum(xs))\n```",
    "```\nprint(total)\n```",
    "    y = 1\n    print(y",
    "Sorry, I cannot.",
]
