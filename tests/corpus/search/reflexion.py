"""Reflexion: try, run the tests, reflect in words, and try again with the last lessons."""

import sgc

MEMORY = 2


class Task:
    def __init__(self, name: str, cases: list[tuple[str, str]]):
        self.name = name
        self.cases = cases


OPERATIONS = {}


def operation(name):
    def register(f):
        OPERATIONS[name] = f
        return f

    return register


@operation("upper")
def _upper(text, _):
    return text.upper()


@operation("reverse")
def _reverse(text, _):
    return "".join(reversed(text))


@operation("first")
def _first(text, n):
    return text[: int(n)]


@sgc.tool(effect="pure")
def run_tests(rule: str, cases: list) -> dict:
    failures = []
    for given, wanted in cases:
        got = given
        for step in rule.strip().split(" then "):
            op, _, arg = step.strip().partition(" ")
            got = OPERATIONS[op](got, arg)
        if got != wanted:
            failures.append(f"{given!r} -> {got!r}, not {wanted!r}")
    return {"passed": len(cases) - len(failures), "failures": failures}


@sgc.function
def program(s, task: Task, max_trials: int = 3):
    reflections = []
    best = ("", -1)
    for trial in range(max_trials):
        f = s.fork(1)[0]
        f += f"Write a rule for: {task.name}.\nOperations: upper, reverse, first N; with `then`.\n"
        if reflections:
            f += "Lessons:\n" + "".join(f"- {r}\n" for r in reflections[-MEMORY:])
        f += "Rule: " + sgc.gen("rule", max_tokens=16, stop="\n")
        rule = f["rule"]
        try:
            report = run_tests(rule, task.cases)
            passed, failures = report["passed"], report["failures"]
        except (KeyError, ValueError) as e:
            passed, failures = 0, [f"{type(e).__name__}: {e}"]
        if passed > best[1]:
            best = rule, passed
        if passed == len(task.cases):
            s += f"Solved in trial {trial + 1}: {rule}"
            return {"rule": rule, "trials": trial + 1}
        f += f"\nThe tests failed: {'; '.join(failures[:2])}\nReflection:"
        f += sgc.gen("reflection", max_tokens=48, stop="\n")
        reflections.append(f["reflection"].strip() or "(no idea)")
    s += f"Not solved; the best rule {best[0]!r} passed {best[1]} of {len(task.cases)}."
    return {"rule": best[0], "trials": max_trials, "reflections": reflections}


ARGUMENTS = [
    {"task": Task("shout the first two letters", [("hello", "HE"), ("ab", "AB")])},
    {"task": Task("mirror", [("abc", "cba")]), "max_trials": 2},
    {"task": Task("nothing", [])},
]
REPLIES = [
    "first 2 then upper",
    "upper",
    "reverse",
    "first two",
    "sort",
    " I forgot to cut the word.",
    "",
]
