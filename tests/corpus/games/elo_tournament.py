"""A round robin of prompt variants with Elo ratings, judged by the model."""

import itertools
from collections import defaultdict

import sgc

K = 32
SCALE = 400
INIT = 1000


def expected(ra: float, rb: float) -> float:
    return 1 / (1 + 10 ** ((rb - ra) / SCALE))


def update(ratings, a, b, sa):
    ea = expected(ratings[a], ratings[b])
    ratings[a] += K * (sa - ea)
    ratings[b] += K * (1 - sa - (1 - ea))


@sgc.function
def battle(s, question: str, first: str, second: str):
    """1 if the first prompt's answer wins, 0 if the second's does, 0.5 for a tie."""
    s += sgc.user(question)
    a, b = s.fork(2)
    a += sgc.system(first) + sgc.assistant(sgc.gen("answer", max_tokens=64))
    b += sgc.system(second) + sgc.assistant(sgc.gen("answer", max_tokens=64))
    if a["answer"] == b["answer"]:
        return 0.5
    s += sgc.user(f"A: {a['answer']}\nB: {b['answer']}\nWhich is better?")
    s += sgc.assistant(sgc.select("winner", choices=["A", "B", "tie"]))
    return {"A": 1.0, "B": 0.0, "tie": 0.5}[s["winner"]]


@sgc.function
def program(s, questions: list[str], prompts: dict[str, str]):
    ratings = defaultdict(lambda: INIT)
    wins = defaultdict(int)
    for question in questions:
        for a, b in itertools.combinations(prompts, 2):
            result = battle(question, prompts[a], prompts[b]).ret_value
            if result == 1:
                wins[a] += 1
            elif result == 0:
                wins[b] += 1
            update(ratings, a, b, result)

    table = sorted(ratings.items(), key=lambda kv: kv[1], reverse=True)
    s += "| rank | prompt | Elo | wins |\n|---|---|---|---|\n"
    for rank, (name, elo) in enumerate(table, 1):
        s += f"| {rank} | {name} | {elo:.0f} | {wins[name]} |\n"
    if len(table) >= 2 and table[0][1] - table[-1][1] > 30:
        s += f"\nWhy is {table[0][0]} better than {table[-1][0]}?" + sgc.gen("why", max_tokens=48)


ARGUMENTS = [
    {
        "questions": ["What is rain?", "Why do we sleep?"],
        "prompts": {
            "plain": "Answer.",
            "kind": "Answer kindly.",
            "pirate": "Answer like a pirate.",
        },
    },
    {"questions": ["What is rain?"], "prompts": {"alone": "Answer."}},
]
REPLIES = [
    "Water that falls from clouds.",
    "Arr, 'tis the sky weeping!",
    "Good question, dear.",
    "Nobody knows.",
]
