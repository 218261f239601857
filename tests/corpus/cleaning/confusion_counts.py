"""Classifies labelled texts, counts confusions, prints the matrix, precision and recall."""

from collections import Counter

import sgc

CLASSES = ["sports", "politics", "science"]


def safe_div(a, b):
    return a / b if b else 0.0


def report(confusion):
    width = max(len(c) for c in CLASSES) + 2
    lines = ["".ljust(width) + "".join(c.rjust(width) for c in CLASSES)]
    for gold in CLASSES:
        cells = "".join(str(confusion[gold, predicted]).rjust(width) for predicted in CLASSES)
        lines.append(gold.ljust(width) + cells)
    return "\n".join(lines)


@sgc.function
def classify(s, text: str):
    s += f"Headline: {text}\nSection: "
    s += sgc.select("section", choices=CLASSES)


@sgc.function
def program(s, dataset: list[tuple[str, str]]):
    states = [(classify(text), gold) for text, gold in dataset]
    confusion = Counter()
    wrong = []
    for (state, gold), (text, _) in zip(states, dataset):
        predicted = state["section"]
        confusion[gold, predicted] += 1
        if predicted != gold:
            wrong.append((text, gold, predicted))

    s += report(confusion) + "\n"
    metrics = {}
    for c in CLASSES:
        tp = confusion[c, c]
        precision = safe_div(tp, sum(confusion[g, c] for g in CLASSES))
        recall = safe_div(tp, sum(confusion[c, p] for p in CLASSES))
        f1 = safe_div(2 * precision * recall, precision + recall)
        metrics[c] = f1
        s += "%-10s P=%.2f R=%.2f F1=%.2f\n" % (c, precision, recall, f1)

    accuracy = safe_div(sum(confusion[c, c] for c in CLASSES), len(dataset))
    s += f"accuracy {accuracy:.1%}, macro F1 {sum(metrics.values()) / len(metrics):.3f}\n"
    if wrong and accuracy < 0.9:
        s += "Errors:\n"
        for text, gold, predicted in wrong[:3]:
            s += f"- {text!r}: {predicted}, should be {gold}\n"
        s += "What do they have in common?" + sgc.gen("analysis", max_tokens=48, stop="\n")


ARGUMENTS = [
    {
        "dataset": [
            ("Late goal sinks United", "sports"),
            ("Parliament votes on budget", "politics"),
            ("Telescope finds new comet", "science"),
            ("Minister opens stadium", "politics"),
        ]
    },
    {"dataset": []},
]
REPLIES = [" They mix two topics.", " Nothing at all.", "", " Public money.\nAnd sport"]
