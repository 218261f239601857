"""Reflexion: attempts at a function, a grader's verdict, and a memory of the last reflections."""

import logging

import sgc

logger = logging.getLogger(__name__)
MEMORY_SIZE = 3


@sgc.tool(effect="pure")
def run_tests(code: str) -> dict:
    """A stand-in for a sandbox: looks at the source only."""
    failures = []
    if "return" not in code:
        failures.append("test_returns: got None")
    if "def " not in code:
        failures.append("test_is_function: no function was defined")
    if code.count("(") != code.count(")"):
        raise SyntaxError("'(' was never closed")
    return {"passed": 2 - len(failures), "total": 2, "failures": failures}


@sgc.function
def program(s, task: str, signature: str, max_trials: int = 3):
    s += sgc.system("You are a careful Python programmer.")
    reflections: list[str] = []
    best_code, best_score = "", -1.0
    for trial in range(max_trials):
        prompt = f"{task}\nSignature: {signature}\n"
        if reflections:
            prompt += "Your earlier reflections:\n"
            for n, r in enumerate(reversed(reflections[-MEMORY_SIZE:]), 1):
                prompt += f"  ({n}) {r}\n"
        s += sgc.user(prompt)
        s += sgc.assistant(sgc.gen("code", max_tokens=200))
        try:
            report = run_tests(s["code"])
        except SyntaxError as e:
            feedback = f"SyntaxError: {e}"
            score = 0.0
        else:
            score = report["passed"] / report["total"]
            feedback = "; ".join(report["failures"])
        logger.info("trial %d scored %.2f", trial, score)
        if score > best_score:
            best_code, best_score = s["code"], score
        if score == 1.0:
            break
        s += sgc.user(f"Feedback: {feedback}\nReflect in one sentence on what went wrong.")
        s += sgc.assistant(sgc.gen("reflection", max_tokens=60))
        reflections.append(s["reflection"].strip())
    return {"code": best_code, "score": best_score, "reflections": reflections}


ARGUMENTS = [
    {"task": "Return the sum of the even numbers.", "signature": "def f(xs: list[int]) -> int"},
    {"task": "", "signature": "def noop()", "max_trials": 1},
]
REPLIES = [
    "def f(xs):\n    return sum(x for x in xs if x % 2 == 0)",
    "def f(xs): pass",
    "return sum(xs",
    "x = 1",
    "I forgot to return the value.",
]
