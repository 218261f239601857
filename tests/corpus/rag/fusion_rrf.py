"""RAG-Fusion: the question is asked in several ways, the result lists are fused by their ranks."""

from collections import defaultdict
from functools import partial

import sgc

CORPUS = [
    ("apt", "Install packages with apt install NAME."),
    ("snap", "Snaps are installed with snap install NAME."),
    ("pip", "Python packages are installed with pip install NAME."),
    ("rm", "Files are removed with rm FILE."),
]


@sgc.tool(effect="pure")
def keyword_search(query: str, top_k: int = 3) -> list[str]:
    terms = query.lower().split()
    hits = [(sum(t in text.lower() for t in terms), key) for key, text in CORPUS]
    hits.sort(reverse=True)
    return [key for n, key in hits[:top_k] if n]


def reciprocal_rank_fusion(rankings: list[list[str]], k: int = 60) -> list[tuple[str, float]]:
    scores: defaultdict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, doc in enumerate(ranking):
            scores[doc] += 1 / (k + rank + 1)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


fuse = partial(reciprocal_rank_fusion, k=10)


@sgc.function
def program(s, question: str):
    s += sgc.system("You generate search queries, one at a time.")
    s += sgc.user(f"How many queries does it take for: {question}")
    s += sgc.assistant(sgc.gen("n", regex="[1-4]"))
    queries = [question]
    for i in range(int(s["n"])):
        s += sgc.user(f"Query number {i + 1}:")
        s += sgc.assistant(sgc.gen("query", max_tokens=16))
        if (query := s["query"].strip()) and query not in queries:
            queries.append(query)

    rankings = [keyword_search(q) for q in queries]
    fused = fuse(rankings)
    texts = dict(CORPUS)
    lines = [f"{score:.3f} {texts[doc]}" for doc, score in fused[:2]]
    s += sgc.user("Documents:\n" + ("\n".join(lines) if lines else "none") + "\n" + question)
    s += sgc.assistant(sgc.gen("answer", max_tokens=48))
    return [doc for doc, _ in fused], s["answer"]


ARGUMENTS = [
    {"question": "how do I install a python package"},
    {"question": ""},
]
REPLIES = [
    "python packages tutorial",
    "remove files",
    "Use pip install NAME.",
    "xyz",
]
