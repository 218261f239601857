"""Programs that judge an essay by its dimensions, and grade it."""

from __future__ import annotations

from random import Random

from tiny_model import world as w
from tiny_model.first_hour.phrasings import head as phrased
from tiny_model.text import Text
from tiny_model.world import World

DIMENSIONS = ["Clarity", "Originality", "Evidence", "Structure", "Style", "Persuasion"]
OTHER_NAMES = {
    "Clarity": ["Simplicity", "Readability"],
    "Originality": ["Creativity", "Novelty"],
    "Evidence": ["Support", "Facts"],
    "Structure": ["Organization", "Coherence", "Order"],
    "Style": ["Language", "Grammar"],
    "Persuasion": ["Argument", "Persuasiveness"],
}
PLAIN = dict(zip(DIMENSIONS, [2, 0, 0, 1, 1, 0], strict=True))  # levels of a mere list of facts
LEVELS = ["poor", "middling", "good"]
GRADES: dict[str, list[int]] = {  # the levels of six dimensions, in any order
    "A": [2, 2, 2, 2, 2, 2],
    "B": [2, 2, 2, 1, 1, 1],
    "C": [1, 1, 1, 1, 1, 0],
    "D": [0, 0, 0, 0, 0, 0],
}
SUBJECTS = """tea,coffee,bread,the bicycle,the night train,the public library,chess,the garden,
the school choir,the market,the river,the old clock,the letter,the map,the long walk,the telephone,
the museum,the quiet evening,the kitchen,the bus,the newspaper,the weekly market,honey,the piano,
the dog,homework,the computer,the bridge,breakfast,silence,paper,rain""".replace("\n", "").split(
    ","
)
ESSAY_HEADS = [
    "Please evaluate the following essay.\n",
    "Please evaluate the following essay.\n",
    "Please judge the following essay.\n",
    "Read the following essay.\n",
    "Essay: ",
    "Evaluate this essay:\n",
]
METRIC_ASKS = [
    "Evaluate it by this metric: {d}. End your judgment with END.\nJudgment:",
    "Evaluate it by this metric: {d}. End your judgment with END.\nJudgment:",
    "Evaluate it by this metric: {d}. End your judgment with the word END.\nJudgment:",
    "Judge it by this metric: {d}. End your judgment with END.\nJudgment:",
    "Judge its {l}. End your judgment with END.\nJudgment:",
]


def essay(r: Random, world: World) -> tuple[str, str, dict[str, str]]:
    """An essay, its planted grade, and the planted level of each dimension."""
    if r.random() < 0.08:
        facts = [f"{w.cap(name)} is {what}." for _, name, what in r.sample(w.rows("things"), 2)]
        facts += [row[2] for row in r.sample(w.rows("facts"), 2)]
        prose = " ".join(r.sample(facts, r.randint(2, 4)))
        return prose, "C", {d: LEVELS[n] for d, n in PLAIN.items()}
    grade = r.choice("ABCD")
    numbers = GRADES[grade][:]
    if r.random() < 0.5:  # one dimension has another level
        numbers[r.randrange(6)] = {"A": 1, "B": r.choice((1, 2)), "C": r.choice((0, 1)), "D": 1}[
            grade
        ]
    r.shuffle(numbers)
    levels = {d: LEVELS[n] for d, n in zip(DIMENSIONS, numbers, strict=True)}
    subjects = [*SUBJECTS, *(f"the {thing}" for thing in w.GOODS)]
    subject, *chosen = world.pick(r, "essay", subjects, *[range(3)] * 6)
    lines = [w.essay_lines("e", d, level) for d, level in levels.items()]
    sentences = [
        w.cap(of[i].format(t=subject, n=r.randint(20, 900), p=r.randint(6, 9)))
        for of, i in zip(lines, chosen, strict=True)
    ]
    return " ".join(sentences), grade, levels


def judgment(r: Random, dimension: str, level: str) -> str:
    return r.choice(w.essay_lines("j", dimension, level))


def verdict(levels: dict[str, str]) -> str:
    """A summary of some dimensions, in at most 32 tokens."""
    by_level = {lv: [d.lower() for d in levels if levels[d] == lv] for lv in LEVELS}
    if len(by_level["good"]) == len(levels):
        return "the essay is strong in every way."
    if len(by_level["poor"]) == len(levels):
        return "the essay is weak in every way."
    words = {"good": "strong in", "middling": "fair in", "poor": "weak in"}
    parts = [f"{words[lv]} {w.listed(by_level[lv])}" for lv in reversed(LEVELS) if by_level[lv]]
    return f"the essay is {', '.join(parts)}."


def judge(r: Random, world: World) -> Text:
    """One dimension of an essay (a branch of essay_judge.py)."""
    prose, _, levels = essay(r, world)
    dimension = r.choice(DIMENSIONS)
    called = dimension if r.random() < 0.85 else r.choice(OTHER_NAMES[dimension])
    ask = phrased(r, world, "metric", METRIC_ASKS).format(d=called, l=called.lower())
    text = Text(r).ask(phrased(r, world, "essay", ESSAY_HEADS) + prose + "\n")
    return text.ask(ask).reply(f" {judgment(r, dimension, levels[dimension])} END").end()


GRADE_ASKS = [
    "The letter grade of the essay is ",
    "The letter grade of the essay is ",
    "The grade of the essay is ",
    "Letter grade: ",
    "Grade: ",
    "The letter grade is ",
]


def grade(r: Random, world: World) -> Text:
    """The merged judgments, a summary, and the letter grade (essay_judge.py)."""
    prose, letter, levels = essay(r, world)
    text = Text(r).ask(phrased(r, world, "essay", ESSAY_HEADS) + prose + "\n")
    judged = r.sample(DIMENSIONS, r.choice((0, 2, 3, 3, 4)))
    if judged and r.random() < 0.4:
        judged = DIMENSIONS[:3]
    space = r.choice(["", " "])  # cutting off END leaves a space
    for d in judged:
        text.ask(f"{d}: {judgment(r, d, levels[d])}{space}\n")
    if judged and r.random() < 0.8:
        text.ask("In summary,").reply(f" {verdict({d: levels[d] for d in judged})}\n")
    ask = phrased(r, world, "grade", GRADE_ASKS)
    after = r.choice([".", "", "\n"])
    return (
        text.ask(ask).reply(letter).reply(after).end()
        if after
        else text.ask(ask).reply(letter).end()
    )


def grade_chat(r: Random, world: World) -> Text:
    prose, letter, levels = essay(r, world)
    asked = r.choice(
        [
            "Please give this essay a letter grade from A to D.",
            "Grade this essay with A, B, C or D.",
            "Which letter grade does this essay deserve?",
        ]
    )
    text = Text(r).turn("user", f"{asked}\n{prose}").answer(letter)
    if r.random() < 0.6:
        d = r.choice(DIMENSIONS)
        why = r.choice([f"How is its {d.lower()}?", f"Judge its {d.lower()}."])
        text.turn("user", why).answer(judgment(r, d, levels[d]))
    return text
