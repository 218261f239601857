"""ReWOO: the whole plan with #E variables first, then all tools, then one solving call."""

import re

import sgc

PLANNER_EXAMPLE = """Plan: Find the height of the tower. #E1 = Search[height of the Eiffel tower]
Plan: Double it. #E2 = Calc[#E1 * 2]
"""
STEP = re.compile(r"Plan:\s*(.+?)\s*(#E\d+)\s*=\s*(\w+)\[([^\]]*)\]")


@sgc.tool(effect="pure")
def Search(query: str) -> str:
    facts = {"eiffel": "330", "everest": "8849"}
    for key, value in facts.items():
        if key in query.lower():
            return value
    return "unknown"


@sgc.tool(effect="pure", on_error="error")
def Calc(expression: str) -> str:
    left, op, right = expression.split()
    a, b = float(left), float(right)
    return str({"*": a * b, "+": a + b, "-": a - b, "/": a / b}[op])


def substitute(text, evidence):
    for name, value in evidence.items():
        text = text.replace(name, value)
    return text


@sgc.function
def program(s, task: str):
    s += "For the task, make plans that solve it step by step.\n" + PLANNER_EXAMPLE
    s += f"Task: {task}\n" + sgc.gen("plan", max_tokens=200, stop="Task:")
    steps = STEP.findall(s["plan"])
    if not steps:
        s += "\nNo plan was needed. Answer:" + sgc.gen("answer", max_tokens=24, stop="\n")
        return s["answer"].strip()

    evidence: dict[str, str] = {}
    worked = ""
    for plan, variable, tool, raw in steps:
        given = substitute(raw, evidence)
        if tool == "Search":
            evidence[variable] = Search(given)
        elif tool == "Calc":
            evidence[variable] = Calc(given)
        else:
            evidence[variable] = f"(no tool {tool})"
        worked += f"Plan: {plan}\nEvidence {variable}: {evidence[variable]}\n"

    solver = s.fork(1)[0]
    solver += f"\nSolve the task with this evidence.\n{worked}Answer:"
    solver += sgc.gen("answer", max_tokens=24, stop="\n")
    return solver["answer"].strip()


ARGUMENTS = [{"task": "How many Eiffel towers high is Mount Everest?"}, {"task": ""}]
REPLIES = [
    "Plan: Height of Everest. #E1 = Search[everest]\nPlan: Of the tower. #E2 = Search[eiffel]\n"
    "Plan: Divide. #E3 = Calc[#E1 / #E2]",
    "Plan: Ask a friend. #E1 = Phone[mum]\nPlan: Add. #E2 = Calc[#E1 + 1]",
    "I just know it.",
    " about 27",
]
