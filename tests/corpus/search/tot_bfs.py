"""Tree of Thoughts, breadth first: propose, evaluate, keep the best b states at each level."""

import sgc

PROPOSE = "Problem: {problem}\nSteps so far:\n{steps}\nPossible next step:"
VALUE = "Problem: {problem}\nSteps:\n{steps}\nCan the problem be solved from here? "
SCORES = {"sure": 20, "likely": 1, "impossible": 0.001}


@sgc.function
def propose(s, problem: str, state: tuple, k: int):
    s += PROPOSE.format(problem=problem, steps="\n".join(state) or "(none)")
    s += sgc.gen("step", n=k, max_tokens=48, temperature=0.8, stop="\n")
    return s["step"]


@sgc.function
def evaluate(s, problem: str, state: tuple):
    s += VALUE.format(problem=problem, steps="\n".join(state))
    s += sgc.select("value", choices=list(SCORES))
    return SCORES[s["value"]]


@sgc.function
def program(s, problem: str, depth: int = 2, k: int = 3, breadth: int = 2):
    frontier = [()]
    visited = 0
    cache = {}
    for level in range(depth):
        candidates = []
        for state in frontier:
            for step in propose(problem, state, k).ret_value:
                if step.strip():
                    candidates.append((*state, step.strip()))
        if not candidates:
            break
        values = []
        for state in candidates:
            value = cache.get(f"{level}:{state[-1].lower()}")
            if value is None:
                value = evaluate(problem, state).ret_value
                cache[f"{level}:{state[-1].lower()}"] = value
                visited += 1
            values.append(value)
        order = sorted(range(len(candidates)), key=lambda i: values[i], reverse=True)
        frontier = [candidates[i] for i in order[:breadth] if values[i] >= 0.5]
        if not frontier:
            s += f"Pruned everything at level {level}.\n"
            return None

    best = frontier[0]
    s += f"Problem: {problem}\n"
    for n, step in enumerate(best, 1):
        s += f"Step {n}: {step}\n"
    s += "Solution:" + sgc.gen("solution", max_tokens=64, stop="\n")
    return {"solution": s["solution"].strip(), "visited": visited}


ARGUMENTS = [
    {"problem": "Seat 5 guests so that no enemies sit together."},
    {"problem": "Sort 3 1 2.", "depth": 1, "k": 2, "breadth": 1},
    {"problem": "Cross the river.", "depth": 3, "k": 1},
    {"problem": "", "depth": 0},
]
REPLIES = [
    " Start with Ann.",
    " Put Bob at the door.",
    " ",
    " Swap two neighbours.\nThen",
    " Done!",
]
