"""Iterated prisoner's dilemma: the model against classic strategies written as generators."""

import random

import sgc

PAYOFF = {
    "cooperate/cooperate": (3, 3),
    "cooperate/defect": (0, 5),
    "defect/cooperate": (5, 0),
    "defect/defect": (1, 1),
}


def tit_for_tat():
    last = "cooperate"
    while True:
        last = yield last


def grudger():
    angry = False
    while True:
        theirs = yield "defect" if angry else "cooperate"
        angry = angry or theirs == "defect"


def make_random(seed):
    rng = random.Random(seed)

    def strategy():
        while True:
            yield rng.choice(["cooperate", "defect"])

    return strategy


STRATEGIES = {"tit_for_tat": tit_for_tat, "grudger": grudger, "random": make_random(7)}


@sgc.function
def program(s, opponent: str, rounds: int = 5):
    strategy = STRATEGIES[opponent]()
    theirs = next(strategy)
    mine_total, theirs_total = 0, 0
    history = []
    s += sgc.system("You play the iterated prisoner's dilemma for points.")
    for r in range(rounds):
        past = "\n".join(
            f"round {i}: you {a}, they {b}" for i, (a, b) in enumerate(history[-3:], max(1, r - 2))
        )
        s += sgc.user((past or "First round.") + "\nYour move?")
        s += sgc.assistant(sgc.select("move", choices=["cooperate", "defect"]))
        mine = s["move"]
        a, b = PAYOFF.get(f"{mine}/{theirs}", (0, 0))
        mine_total += a
        theirs_total += b
        history.append((mine, theirs))
        theirs = strategy.send(mine)
    coop = sum(m == "cooperate" for m, _ in history) / rounds if rounds else 0.0
    s += sgc.user(
        f"You {mine_total}, they {theirs_total}. You cooperated in {coop:.0%}. Who were they?"
    )
    s += sgc.assistant(sgc.gen("opponent", max_tokens=24))
    return {
        "score": (mine_total, theirs_total),
        "recognised": opponent.replace("_", " ") in s["opponent"].lower(),
    }


ARGUMENTS = [
    {"opponent": "tit_for_tat"},
    {"opponent": "grudger", "rounds": 4},
    {"opponent": "random", "rounds": 3},
    {"opponent": "grudger", "rounds": 0},
]
REPLIES = ["They played tit for tat.", "A grudger!", "It looked random to me.", "?"]
