"""Plan and execute: a numbered plan is made, each step is carried out, the plan may be revised."""

from dataclasses import dataclass, field

import sgc


@dataclass
class PlanState:
    objective: str
    steps: list[str] = field(default_factory=list)
    past_steps: list[tuple[str, str]] = field(default_factory=list)

    def transcript(self) -> str:
        return "\n".join(f"- {step} => {result}"[:80] for step, result in self.past_steps)


def parse_plan(text: str) -> list[str]:
    steps = []
    for line in text.splitlines():
        head, _, rest = line.strip().partition(". ")
        if head:
            steps.append(rest if head.isdigit() else line.strip())
    return steps


@sgc.function
def execute_step(s, objective: str, step: str, context: str):
    s += sgc.system("You execute one step of a plan. Be brief.")
    s += sgc.user(f"Objective: {objective}\nDone so far:\n{context or '(nothing)'}\nStep: {step}")
    s += sgc.assistant(sgc.gen("result", max_tokens=64))
    return s["result"].strip()


@sgc.function(max_turns=8)
def program(s, objective: str, max_steps: int = 4):
    state = PlanState(objective)
    s += sgc.system("You are a planner. Write a numbered list of steps, one per line.")
    s += sgc.user(objective)
    s += sgc.assistant(sgc.gen("plan", max_tokens=128))
    state.steps = parse_plan(s["plan"])[:max_steps]
    while state.steps and len(state.past_steps) < max_steps:
        step, *rest = state.steps
        result = execute_step(objective, step, state.transcript()).ret_value
        state.past_steps.append((step, result))
        s += sgc.user(f"Step '{step}' gave: {result}\nWhat now?")
        s += sgc.assistant(sgc.select("decision", choices=["continue", "replan", "finish"]))
        if s["decision"] == "finish":
            break
        if s["decision"] == "replan":
            s += sgc.user("Write the remaining steps.")
            s += sgc.assistant(sgc.gen("new_plan", max_tokens=128))
            rest = parse_plan(s["new_plan"])
        state.steps = rest
    s += sgc.user("Summarise the outcome in one sentence.")
    s += sgc.assistant(sgc.gen("summary", max_tokens=48))
    return state.past_steps, s["summary"]


ARGUMENTS = [
    {"objective": "Find the cheapest way to send a piano from Porto to Lyon."},
    {"objective": "Do nothing at all.", "max_steps": 2},
]
REPLIES = [
    "1. Measure the piano\n2. Ask three movers\n3. Compare the quotes",
    "Ask a friend with a van\n\nBorrow straps",
    "   ",
    "It weighs 240 kg.",
    "1. Only this",
]
