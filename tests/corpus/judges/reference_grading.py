"""Grades short answers: exact match, then token F1, and a model for what is in between."""

import re
import string
from collections import Counter

import sgc


def normalize_answer(s):
    """Lower text and remove punctuation, articles and extra whitespace (from the SQuAD script)."""

    def remove_articles(text):
        return re.sub(r"\b(a|an|the)\b", " ", text)

    def white_space_fix(text):
        return " ".join(text.split())

    def remove_punc(text):
        exclude = set(string.punctuation)
        return "".join(ch for ch in text if ch not in exclude)

    return white_space_fix(remove_articles(remove_punc(s.lower())))


def f1_score(prediction, ground_truth):
    prediction_tokens = normalize_answer(prediction).split()
    ground_truth_tokens = normalize_answer(ground_truth).split()
    common = Counter(prediction_tokens) & Counter(ground_truth_tokens)
    num_same = sum(common.values())
    if num_same == 0:
        return 0.0
    precision = num_same / len(prediction_tokens)
    recall = num_same / len(ground_truth_tokens)
    return 2 * precision * recall / (precision + recall)


@sgc.function
def program(s, question: str, references: list[str]):
    s += "Question: " + question + "\nShort answer:"
    s += sgc.gen("prediction", max_tokens=16, stop="\n")
    prediction = s["prediction"]

    em = any(normalize_answer(prediction) == normalize_answer(r) for r in references)
    if em:
        return {"method": "exact", "score": 1.0}
    f1 = max((f1_score(prediction, r) for r in references), default=0.0)
    if f1 < 0.2:
        return {"method": "f1", "score": round(f1, 3)}

    s += "\n\nReference answers: " + " / ".join(references)
    s += "\nDoes the short answer mean the same as a reference answer? "
    s += sgc.select("same", choices=["yes", "partly", "no"])
    score = {"yes": 1.0, "partly": 0.5, "no": 0.0}[s["same"]]
    return {"method": "model", "score": score, "f1": round(f1, 3)}


ARGUMENTS = [
    {"question": "Who painted the Mona Lisa?", "references": ["Leonardo da Vinci", "da Vinci"]},
    {"question": "What is the tallest mountain?", "references": ["Mount Everest"]},
    {"question": "Unanswerable?", "references": []},
]
REPLIES = [
    " Leonardo da Vinci",
    " the painter Leonardo",
    " Everest, the mountain",
    " Mount Everest.",
    " no idea",
    "",
]
