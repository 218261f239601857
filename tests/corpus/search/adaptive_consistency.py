"""Adaptive self-consistency: samples until the leading answer can no longer be overtaken."""

from collections import Counter
from dataclasses import dataclass, field

import sgc


@dataclass
class Poll:
    budget: int
    counts: Counter = field(default_factory=Counter)

    def vote(self, answer: str) -> None:
        self.counts[answer] += 1

    @property
    def cast(self) -> int:
        return sum(self.counts.values())

    def decided(self) -> bool:
        top = self.counts.most_common(2)
        if not top:
            return False
        runner_up = top[1][1] if len(top) == 2 else 0
        return top[0][1] - runner_up > self.budget - self.cast

    def leader(self) -> tuple[str, float]:
        answer, votes = self.counts.most_common(1)[0]
        return answer, votes / self.cast


@sgc.function
def sample(s, question: str, options: list[str], i: int):
    s += f"Question: {question}\n"
    for letter, option in zip("ABCDEFGH", options):
        s += f"({letter}) {option}\n"
    s += "Reasoning:" + sgc.gen("reasoning", max_tokens=64, stop="\n", temperature=0.7, seed=i)
    s += "\nAnswer: (" + sgc.select("letter", choices=list("ABCDEFGH"[: len(options)])) + ")"
    return s["letter"]


@sgc.function(max_turns=12)
def program(s, question: str, options: list[str], budget: int = 7):
    if len(options) < 2:
        return options[0] if options else None
    poll = Poll(budget)
    while poll.cast < budget and not poll.decided():
        letter = sample(question, options, poll.cast).ret_value
        poll.vote(letter)
    letter, share = poll.leader()
    chosen = options["ABCDEFGH".index(letter)]
    saved = budget - poll.cast
    s += f"Q: {question}\nA: {chosen}"
    s += f" ({share:.0%} of {poll.cast} samples" + (f", {saved} saved)" if saved else ")")
    if share < 0.5:
        s += "\nThe samples disagree. What makes the question hard?"
        s += sgc.gen("hard", max_tokens=48, stop="\n")
    return chosen


ARGUMENTS = [
    {"question": "Which is heavier?", "options": ["1 kg of iron", "1 kg of feathers", "neither"]},
    {"question": "Yes or no?", "options": ["yes", "no"], "budget": 3},
    {"question": "?", "options": ["only this"]},
]
REPLIES = [" Both are one kilogram.", " Iron is dense.", " It is a trick question.", ""]
