"""Self-consistency (Wang et al.): five sampled chains of thought, one majority answer."""

import re
from collections import Counter

import sgc

SHOTS = [
    (
        "There are 15 trees. Workers plant more. Now there are 21. How many did they plant?",
        "We start with 15 trees. Later we have 21 trees. The difference is 21 - 15 = 6.",
        "6",
    ),
    (
        "Leah had 32 chocolates and her sister had 42. They ate 35. How many are left?",
        "Together they had 32 + 42 = 74. They ate 35, so 74 - 35 = 39.",
        "39",
    ),
]
ANSWER = re.compile(r"answer is\s*\$?(-?[\d,]+(?:\.\d+)?)")
N_PATHS = 5


def extract_answer(completion: str) -> str | None:
    found = ANSWER.findall(completion)
    if found:
        return found[-1].replace(",", "")
    numbers = re.findall(r"-?\d+", completion)
    return numbers[-1] if numbers else None


@sgc.function
def program(s, question: str, gold: str = "", paths: int = N_PATHS):
    for q, chain, a in SHOTS:
        s += f"Q: {q}\nA: {chain} The answer is {a}.\n\n"
    s += f"Q: {question}\nA:"
    s += sgc.gen("chains", n=paths, max_tokens=128, temperature=0.7, stop=["Q:", "\n\n"])

    answers = [extract_answer(c) for c in s["chains"]]
    valid = [a for a in answers if a is not None]
    if not valid:
        return {"answer": None, "confidence": 0.0, "correct": False}

    (best, votes), *rest = Counter(valid).most_common()
    confidence = votes / paths
    if rest and rest[0][1] == votes:
        # Tied: decode once more, greedily, and let that path break the tie.
        s += f"\nSo it is either {best} or {rest[0][0]}. Let me check again:"
        s += sgc.gen("check", max_tokens=96, temperature=0, stop="Q:")
        checked = extract_answer(s["check"])
        if checked in (best, rest[0][0]):
            best = checked
    return {"answer": best, "confidence": confidence, "correct": best == gold}


ARGUMENTS = [
    {
        "question": "Olivia has $23. She buys five bagels for $3 each. How much is left?",
        "gold": "8",
    },
    {"question": "How many?", "gold": "", "paths": 2},
]
REPLIES = [
    " Five bagels cost 5 * 3 = 15. 23 - 15 = 8. The answer is 8.",
    " She has 23 - 3 = 20. The answer is 20.",
    " I am not sure how to do this.",
    " The answer is $1,008.",
    " 15 and then 8",
    " Nobody can know that.",
    " It depends on the bagels.",
]
