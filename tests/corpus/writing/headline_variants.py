"""Writes headlines and tests them on simulated readers by Thompson sampling."""

import random
from dataclasses import dataclass

import sgc

READERS = ["a commuter", "a student", "a pensioner"]


@dataclass
class Arm:
    headline: str
    clicks: int = 0
    shown: int = 0

    def sample(self, rng: random.Random) -> float:
        return rng.betavariate(1 + self.clicks, 1 + self.shown - self.clicks)

    @property
    def ctr(self) -> float:
        return self.clicks / self.shown if self.shown else 0.0


def stripped(f):
    return lambda text, *args, **kwargs: f(text.strip().strip('"'), *args, **kwargs)


@stripped
def tidy(headline: str) -> str:
    headline = headline.rstrip(".")
    return headline[:1].upper() + headline[1:]


@sgc.function
def would_click(s, reader: str, headline: str):
    s += f"You are {reader}. You see the headline: {headline}\nDo you click? "
    s += sgc.select("click", choices=["yes", "no"])
    return s["click"] == "yes"


@sgc.function
def program(s, article: str, angles: list[str], impressions: int = 8, seed: int = 7):
    s += f"Article: {article}\n"
    forks = s.fork(len(angles))
    for fork, angle in zip(forks, angles):
        fork += f"A headline with this angle: {angle}\nHeadline:" + sgc.gen(
            "headline", max_tokens=16, stop="\n"
        )
    texts = [tidy(f["headline"]) for f in forks]
    arms = [Arm(t) for t in dict.fromkeys(texts) if 0 < len(t) <= 60]
    if not arms:
        s += "Fallback headline:" + sgc.gen("fallback", max_tokens=12, stop="\n")
        return tidy(s["fallback"]) or "Untitled", 0.0

    rng = random.Random(seed)
    for i in range(impressions):
        arm = max(arms, key=lambda a: a.sample(rng))
        arm.shown += 1
        arm.clicks += would_click(READERS[i % len(READERS)], arm.headline).ret_value
    best = max(arms, key=lambda a: (a.ctr, a.shown))
    for arm in arms:
        mark = "*" if arm is best else " "
        s += f"{mark} {arm.headline:<60} {arm.clicks}/{arm.shown}\n"
    return best.headline, round(best.ctr, 2)


ARGUMENTS = [
    {
        "article": "The library stays open at night.",
        "angles": ["a question", "a number", "surprise"],
    },
    {"article": "", "angles": ["none"], "impressions": 2, "seed": 1},
]
REPLIES = [' "who reads at 3 a.m.?"', " 300 night owls have a new home.", "", " library"]
