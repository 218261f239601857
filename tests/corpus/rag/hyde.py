"""HyDE: several made-up passages are written, their words are the query, then an answer."""

from collections import Counter

import sgc

STOPWORDS = {"the", "a", "an", "of", "in", "on", "is", "are", "and", "to", "it", "as"}
INDEX = {
    "d1": "mitochondria produce most of the cell's supply of energy as atp",
    "d2": "chloroplasts capture light and store it as sugar",
    "d3": "the nucleus holds the cell's dna",
}


def bag(text: str) -> Counter:
    return Counter(w for w in text.lower().replace(".", " ").split() if w not in STOPWORDS)


def overlap(a: Counter, b: Counter) -> int:
    return sum((a & b).values())


@sgc.function
def program(s, question: str):
    s += f"Question: {question}\nHow many views of it are there? " + sgc.gen("n", regex="[1-3]")
    forks = s.fork(int(s["n"]))
    for i, f in enumerate(forks):
        style = ("an encyclopedia", "a textbook", "a teacher")[i % 3]
        f += f"\nA passage from {style} that answers it:"
        f += sgc.gen("passage", max_tokens=64, temperature=0.9)
        if len(f["passage"].split()) < 6:
            f += " In more words:" + sgc.gen("passage", max_tokens=64)
    hypothetical = Counter()
    for f in forks:
        hypothetical += bag(f["passage"])

    scores = {key: overlap(hypothetical, bag(text)) for key, text in INDEX.items()}
    best = max(scores, key=lambda key: scores[key])
    if scores[best] == 0:
        s += "No document was found. From memory:"
    else:
        s += f"Document {best}: {INDEX[best]}\nAnswer:"
    s += sgc.gen("answer", max_tokens=32, stop="\n")
    words = [word for word, _ in hypothetical.most_common(3)]
    return {"doc": best if scores[best] else None, "words": words, "answer": s["answer"]}


ARGUMENTS = [
    {"question": "Which part of a cell makes energy?"},
    {"question": "42?"},
]
REPLIES = [
    " The mitochondria produce energy in the form of ATP.",
    " Cells have a nucleus. The nucleus holds DNA.",
    " It is a mystery",
    " Nobody knows what to say about that.",
    " Plants store sugar and capture light.",
]
