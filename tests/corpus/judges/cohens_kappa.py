"""Two judge prompts label the same texts: Cohen's kappa, and a discussion of disagreements."""

from collections import Counter

import sgc

PROMPT_A = "Label the sentiment of the review.\nReview: {text}\nSentiment: "
PROMPT_B = 'A customer wrote: "{text}"\nThe customer\'s mood is '
LABELS = ["positive", "negative", "neutral"]


@sgc.function
def annotate(s, template: str, text: str):
    s += template.format(text=text)
    s += sgc.select("label", choices=LABELS)
    return s["label"]


def cohens_kappa(y1, y2):
    n = len(y1)
    if n == 0:
        return float("nan")
    p_o = sum(a == b for a, b in zip(y1, y2)) / n
    c1, c2 = Counter(y1), Counter(y2)
    p_e = sum(c1[label] * c2[label] for label in LABELS) / n**2
    return 1.0 if p_e == 1 else (p_o - p_e) / (1 - p_e)


class Discussion:
    """Counts the turns that a discussion took."""

    def __init__(self, s, topic):
        self.s, self.topic, self.turns = s, topic, 0

    def __enter__(self):
        self.s += f"[{self.topic}]\n"
        return self

    def __exit__(self, *exc):
        self.s += f"[{self.turns} turns]\n\n"
        return False


def interpret(kappa):
    if kappa != kappa:
        return "n/a"
    # Landis & Koch, 1977
    for bound, word in (
        (0.0, "poor"),
        (0.2, "slight"),
        (0.4, "fair"),
        (0.6, "moderate"),
        (0.8, "substantial"),
    ):
        if kappa <= bound:
            return word
    return "almost perfect"


@sgc.function
def program(s, reviews: list[str]):
    y1 = [annotate(PROMPT_A, r).ret_value for r in reviews]
    y2 = [annotate(PROMPT_B, r).ret_value for r in reviews]
    kappa = cohens_kappa(y1, y2)
    final = []
    for review, a, b in zip(reviews, y1, y2):
        if a == b:
            final.append(a)
            continue
        with Discussion(s, review[:30]) as discussion:
            for annotator, label in (("A", a), ("B", b)):
                s += f"Annotator {annotator} says {label}, because"
                s += sgc.gen("because", max_tokens=32, stop="\n") + "\n"
                discussion.turns += 1
            s += "Final label: " + sgc.select("final", choices=sorted({a, b})) + "\n"
        final.append(s["final"])
    s += f"kappa = {kappa:.3f} ({interpret(kappa)})"
    return final, kappa if kappa == kappa else None


ARGUMENTS = [
    {"reviews": ["Broke after a day.", "Does what it should.", "Love it!!!", "It is blue."]},
    {"reviews": []},
    {"reviews": ["Great."]},
]
REPLIES = [
    " It could be meant ironically.",
    " The colour says nothing.",
    "",
    " Both are right.\nOr not.",
]
