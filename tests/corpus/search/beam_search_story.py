"""Beam search over sentences: beams are extended by some candidates, a critic scores them."""

import functools
import heapq
import math
from dataclasses import dataclass

import sgc


@dataclass(frozen=True)
class Beam:
    sentences: tuple[str, ...] = ()
    log_score: float = 0.0

    def extend(self, sentence: str, points: int) -> "Beam":
        return Beam((*self.sentences, sentence), self.log_score + math.log(points / 5))

    @property
    def text(self) -> str:
        return " ".join(self.sentences)

    def normalised(self, alpha: float = 0.6) -> float:
        return self.log_score / max(1, len(self.sentences)) ** alpha


@sgc.function
def critic(s, opening: str, text: str):
    s += f"{opening}\n{text}\n\nHow captivating is this story? Points (1-5): "
    s += sgc.select("points", choices=["1", "2", "3", "4", "5"])
    return int(s["points"])


@sgc.function
def program(
    s, opening: str, beam_size: int = 2, expansions: int = 3, steps: int = 2, alpha: float = 0.6
):
    s += opening
    rank = functools.partial(Beam.normalised, alpha=alpha)
    beams = [Beam()]
    finished = []
    for _ in range(steps):
        pool = []
        for beam in beams:
            forks = s.fork(expansions)
            for i, f in enumerate(forks):
                f += " " + beam.text
                f += sgc.gen("next", max_tokens=32, stop=".", temperature=0.4 + i * 0.3)
            for sentence in sorted({f["next"].strip() + "." for f in forks}):
                if "the end" in sentence.lower():
                    finished.append(beam)
                elif sentence != ".":
                    points = critic(opening, beam.text + " " + sentence).ret_value
                    pool.append(beam.extend(sentence, points))
        if not pool:
            break
        beams = heapq.nlargest(beam_size, pool, key=rank)

    best = max(finished + beams, key=rank)
    s += " " + best.text + "\nTitle:" + sgc.gen("title", max_tokens=8, stop="\n")
    return {"title": s["title"].strip(), "story": best.text, "score": round(best.normalised(), 3)}


ARGUMENTS = [
    {"opening": "The lighthouse had been dark for years."},
    {"opening": "", "beam_size": 1, "expansions": 1, "steps": 3},
]
REPLIES = [
    " Then a light went on. Nobody",
    " She climbed the stairs",
    "",
    " The end.",
    " A gull cried. It was late.",
]
