"""Simulated annealing over instructions: the model mutates, dev examples give the energy."""

import logging
import math
import random

import sgc

logger = logging.getLogger("anneal")
MUTATIONS = ("Make it shorter.", "Add one more detail.", "Use other words.", "Make it friendlier.")


@sgc.function
def mutate(s, instruction: str, how: str):
    s += f"Instruction: {instruction}\n{how}\nNew instruction:"
    s += sgc.gen("new", max_tokens=48, stop="\n")
    return s["new"].strip() or instruction


@sgc.function
def accuracy(s, instruction: str, dev: list[tuple[str, str]]):
    right = 0
    for f, (text, label) in zip(s.fork(len(dev)), dev):
        f += f"{instruction}\nText: {text}\nLabel: "
        f += sgc.select("label", choices=sorted({label for _, label in dev}))
        right += f["label"] == label
    return right / len(dev)


@sgc.function
def program(s, seed_instruction: str, dev: list[tuple[str, str]], steps: int = 4, t0: float = 0.5):
    if not dev:
        raise ValueError("annealing needs dev examples")
    rng = random.Random(7)
    current, current_score = seed_instruction, accuracy(seed_instruction, dev).ret_value
    best, best_score = current, current_score
    trace = [current_score]
    for step in range(steps):
        temperature = t0 * (1 - step / steps)
        candidate = mutate(current, rng.choice(MUTATIONS)).ret_value
        score = accuracy(candidate, dev).ret_value
        delta = score - current_score
        if delta >= 0 or rng.random() < math.exp(delta / temperature):
            current, current_score = candidate, score
        else:
            logger.debug("step %d: rejected %r", step, candidate)
        if score > best_score:
            best, best_score = candidate, score
        trace.append(round(current_score, 2))
        if best_score == 1.0:
            break
    s += f"Best instruction ({best_score:.0%}): {best}\nWhy it works:" + sgc.gen(
        "why", max_tokens=32
    )
    return {"best": best, "score": best_score, "trace": trace}


DEV = [("Great film", "pos"), ("Awful", "neg"), ("I slept", "neg")]
ARGUMENTS = [
    {"seed_instruction": "Label the sentiment.", "dev": DEV},
    {"seed_instruction": "Label.", "dev": DEV[:1], "steps": 1},
    {"seed_instruction": "Label.", "dev": []},
]
REPLIES = [
    " Decide whether the writer liked it.",
    " Sentiment, please!",
    "",
    " It is clear and short.",
]
