"""A quiz: shuffled questions, the model plays, hints cost points, a streak gives a bonus."""

import random

import sgc

QUESTIONS = [
    ("Which planet has the most moons?", "Saturn", "It has rings."),
    ("What is H2O?", "water", "You drink it."),
    ("Who painted Guernica?", "Picasso", "He was born in Malaga."),
    ("How many strings has a violin?", "4", "An even number."),
]


def is_right(given, expected):
    given = given.strip().strip(".!").lower()
    return given == expected.lower() or expected.lower() in given.split()


@sgc.function
def program(s, rounds: int | None = None, seed: int = 7):
    rng = random.Random(seed)
    deck = QUESTIONS[:]
    rng.shuffle(deck)
    score = 0
    streak = 0
    report = []
    s += "QUIZ! Answer with one word.\n"
    if rounds is None:
        s += "How many rounds? " + sgc.gen("rounds", regex="[2-4]") + "\n"
        rounds = int(s["rounds"])
    for i in range(rounds):
        number = i + 1
        question, answer, hint = deck[i]
        s += f"Q{number}: {question}\nA{number}:"
        s += sgc.gen(f"a{number}", max_tokens=8, stop="\n") + "\n"
        points = 0
        if is_right(s[f"a{number}"], answer):
            streak += 1
            points = 2 + (1 if streak >= 2 else 0)
        else:
            streak = 0
            s += f"Hint: {hint}\nA{number}:"
            s += sgc.gen(f"second{number}", max_tokens=8, stop="\n") + "\n"
            if is_right(s[f"second{number}"], answer):
                points = 1
        score += points
        s += ("Right!" if points else f"Wrong, it is {answer}.") + f" Score: {score}\n"
        report.append(points)
    possible = sum(2 if i == 0 else 3 for i in range(len(report)))
    percent = round(100 * score / possible) if possible else 0
    s += f"You have {score} of {possible} points ({percent}%). "
    if percent >= 80:
        s += "Excellent!"
    elif percent >= 40:
        s += "Not bad!"
    else:
        s += "A joke to cheer you up:" + sgc.gen("joke", max_tokens=40)
    return report, percent


ARGUMENTS = [{}, {"rounds": 4, "seed": 1}, {"rounds": 0}, {"rounds": 1}]
REPLIES = [" Saturn", " water.", " It was Picasso", "4", "I pass", " Why did the chicken cross?"]
