"""Tree of thoughts on the game of 24: propose steps, value them in forks, keep the best few."""

import sgc

VALUES = {"sure": 20.0, "likely": 1.0, "impossible": 0.001}
BEAM = 2

PROPOSE = "Input: {numbers}\nPossible next steps:\n"


@sgc.function
def evaluate(s, numbers: str, n_votes: int = 2):
    s += f"Can these numbers reach 24? {numbers}\n"
    votes = s.fork(n_votes)
    total = 0.0
    for v in votes:
        v += "Judge: " + sgc.select("verdict", choices=list(VALUES))
        if v["verdict"] == "likely":
            v += "\nThink again:" + sgc.gen("thought", max_tokens=16, stop="\n")
            v += "\nJudge: " + sgc.select("verdict", choices=list(VALUES))
    for v in votes:
        total += VALUES[v["verdict"]]
    return total


@sgc.function
def propose(s, numbers: str):
    s += PROPOSE.format(numbers=numbers)
    s += sgc.gen("steps", max_tokens=64, stop="Input:")
    return [line.strip() for line in s["steps"].splitlines() if line.strip()]


def left_over(step: str) -> str:
    """'4 + 8 = 12 (left: 3 12)' -> '3 12'"""
    if "left:" not in step:
        return ""
    return step.split("left:")[1].strip(" )")


@sgc.function
def program(s, numbers: str, depth: int = 2):
    frontier = [(0.0, numbers, [])]
    for _level in range(depth):
        candidates = []
        for _, rest, path in frontier:
            for step in propose(rest).ret_value[:3]:
                left = left_over(step)
                if not left:
                    continue
                score = evaluate(left).ret_value
                candidates.append((score, left, [*path, step]))
        if not candidates:
            break
        frontier = sorted(candidates, key=lambda c: c[0], reverse=True)[:BEAM]
    best = max(frontier, key=lambda c: c[0])
    s += "Steps:\n" + "\n".join(best[2])
    s += "\nAnswer:" + sgc.gen("answer", max_tokens=24, stop="\n")
    return s["answer"].strip(), best[0]


ARGUMENTS = [{"numbers": "4 9 10 13"}, {"numbers": "", "depth": 1}]
REPLIES = [
    "13 - 9 = 4 (left: 4 4 10)\n10 - 4 = 6 (left: 6 9 13)",
    "4 + 9 = 13 (left: 10 13 13)",
    "nothing works",
    "(13 - 9) * (10 - 4) = 24",
]
