"""Builds a few-shot prompt from the examples that overlap most with the text."""

import re

import sgc

STOPWORDS = frozenset(
    ["a", "an", "and", "is", "it", "of", "the", "this", "to", "was", "with", "i", "my"]
)


def tokens(text):
    return set(re.findall(r"[a-z']+", text.lower())) - STOPWORDS


def jaccard(a, b):
    union = a | b
    return len(a & b) / len(union) if union else 0.0


class FewShotSelector:
    """Most similar last, as close to the question as possible; one of each label."""

    def __init__(self, examples, k=3, max_chars=200):
        self.examples = examples
        self.k = k
        self.max_chars = max_chars

    def select(self, text):
        query = tokens(text)
        ranked = sorted(
            self.examples, key=lambda e: jaccard(tokens(e["text"]), query), reverse=True
        )
        chosen, used = [], 0
        seen_labels = set()
        for e in ranked:
            needed = e["label"] not in seen_labels
            if (len(chosen) < self.k or needed) and used + len(e["text"]) <= self.max_chars:
                chosen.append(e)
                used += len(e["text"])
                seen_labels.add(e["label"])
        return list(reversed(chosen))


@sgc.function
def program(s, text: str, examples: list[dict[str, str]], labels: list[str], k: int = 2):
    shots = FewShotSelector(examples, k).select(text)
    s += f"Classify the text as {', '.join(labels[:-1])} or {labels[-1]}.\n\n"
    for shot in shots:
        s += "Text: {text}\nLabel: {label}\n\n".format(**shot)
    s += f"Text: {text}\nLabel: " + sgc.select("label", choices=labels)
    neighbours = [shot["label"] for shot in shots]
    if neighbours and s["label"] not in neighbours:
        s += "\nNo example has this label. Reason:" + sgc.gen("reason", max_tokens=32, stop="\n")
        s += "\nFinal label: " + sgc.select("final", choices=sorted({s["label"], *neighbours}))
        return s["final"], len(shots)
    return s["label"], len(shots)


EXAMPLES = [
    {"text": "The battery died after a week", "label": "hardware"},
    {"text": "The screen of my phone is cracked", "label": "hardware"},
    {"text": "The app asks for my password again and again", "label": "software"},
    {"text": "How do I cancel?", "label": "contract"},
]
ARGUMENTS = [
    {
        "text": "My phone's battery is hot",
        "examples": EXAMPLES,
        "labels": ["hardware", "software", "contract"],
    },
    {"text": "", "examples": [], "labels": ["yes", "no"]},
    {
        "text": "cancel",
        "examples": EXAMPLES[2:],
        "labels": ["hardware", "software", "contract"],
        "k": 0,
    },
]
REPLIES = [" It is about heat.", " The owner wants to leave.", "", " see above\n"]
