"""Two debaters argue for some rounds, each sees the other's last point, a judge decides."""

import random
from typing import Literal

import sgc

Side = Literal["for", "against"]


class Debater:
    def __init__(self, name: str, side: Side):
        self.name = name
        self.side = side
        self.points: list[str] = []

    def prompt(self, motion: str, opponent_point: str | None) -> str:
        text = f"You are {self.name}. You argue {self.side} the motion '{motion}'.\n"
        if opponent_point:
            text += f"Your opponent just said: {opponent_point}\n"
        if self.points:
            text += f"Do not repeat yourself: {'; '.join(self.points)}\n"
        return text + "Your next point:"


@sgc.function
def speak(s, prompt: str):
    s += prompt
    s += sgc.gen("point", max_tokens=40, stop="\n", temperature=0.8)
    return s["point"].strip()


@sgc.function
def program(s, motion: str, rounds: int | None = None, seed: int = 7):
    """Returns the winner and how long each one spoke."""
    ada, bob = Debater("Ada", "for"), Debater("Bob", "against")
    last = None
    s += f"Motion: {motion}\n"
    if rounds is None:
        s += "Rounds that it deserves (1 to 3): " + sgc.gen("n", regex="[1-3]") + "\n"
        rounds = int(s["n"])
    heads = random.Random(seed).random() < 0.5
    order = [ada, bob] if heads else [bob, ada]
    for r in range(rounds):
        # the one who spoke last begins the next round
        for debater in order if r % 2 == 0 else reversed(order):
            point = speak(debater.prompt(motion, last)).ret_value
            debater.points.append(point)
            s += f"[{r + 1}] {debater.name}: {point}\n"
            last = point
    s += "As a judge, who was more convincing? "
    s += sgc.select("winner", choices=["Ada", "Bob", "draw"])
    words = {d.name: sum(len(p.split()) for p in d.points) for d in (ada, bob)}
    if s["winner"] == "draw":
        # the shorter speaker wins a draw
        return min(words, key=words.get), words
    return s["winner"], words


ARGUMENTS = [
    {"motion": "This house would ban homework"},
    {"motion": "Cats are better than dogs", "rounds": 1},
    {"motion": "Nothing", "rounds": 0},
]
REPLIES = [
    " Children need time to play.",
    " Practice makes perfect, and practice takes place at home.",
    "",
    " I disagree completely.",
]
