"""Multi-hop retrieval as in IRCoT: each sentence of reasoning is the next query."""

from collections import OrderedDict

import sgc

PARAGRAPHS = {
    "Lake Ohrid": "Lake Ohrid lies between North Macedonia and Albania.",
    "Ohrid trout": "The Ohrid trout lives only in Lake Ohrid.",
    "Albania": "The capital of Albania is Tirana.",
    "North Macedonia": "The capital of North Macedonia is Skopje.",
}


@sgc.tool(effect="pure")
def bm25(query: str, n: int) -> dict:
    terms = {t.strip(".,?").lower() for t in query.split()}
    scored = {
        title: sum(t in text.lower() for t in terms if len(t) > 3)
        for title, text in PARAGRAPHS.items()
    }
    best = sorted(scored, key=scored.get, reverse=True)[:n]
    return {title: PARAGRAPHS[title] for title in best if scored[title] > 0}


@sgc.function(max_turns=6)
def program(s, question: str, max_hops: int = 3):
    collected = OrderedDict()
    thoughts = []
    query = question
    hop = 0
    while hop < max_hops:
        hits = bm25(query, 2)
        new = {t: p for t, p in hits.items() if t not in collected}
        collected.update(new)
        if not new and hop > 0:
            break  # a fixed point
        reader = s.fork(1)[0]
        for title, paragraph in collected.items():
            reader += f"Wikipedia Title: {title}\n{paragraph}\n\n"
        reader += f"Q: {question}\nA: {' '.join(thoughts)}"
        reader += sgc.gen("sentence", max_tokens=40, stop="\n")
        sentence = reader["sentence"].strip()
        thoughts.append(sentence)
        if "answer is" in sentence.lower():
            break
        query = sentence or question
        hop += 1
    s += f"Q: {question}\nA: {' '.join(thoughts)}\n"
    answer = thoughts[-1].split("answer is")[-1].strip(" .:") if thoughts else ""
    return {"answer": answer, "titles": list(collected), "hops": hop}


ARGUMENTS = [
    {"question": "What are the capitals of the countries where the Ohrid trout lives?"},
    {"question": "", "max_hops": 1},
]
REPLIES = [
    "The Ohrid trout lives in Lake Ohrid.",
    "Lake Ohrid lies between North Macedonia and Albania.",
    "So the answer is: Skopje and Tirana.",
    "",
    "Fish is healthy.",
]
