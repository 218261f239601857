"""Map-rerank: every chunk answers with a score of its own, the best-scored answer wins."""

import re
from operator import itemgetter

import sgc

TEMPLATE = """Use the context to answer the question, and give a score from 0 to 100.
Context: {context}
Question: {question}
Answer: """


@sgc.function
def answer_chunk(s, context: str, question: str):
    s += TEMPLATE.format(context=context, question=question)
    s += sgc.gen("answer", max_tokens=24, stop=["\n", "Score:"]) + "\nScore: "
    s += sgc.gen("score", max_tokens=4, stop="\n")
    number = re.search(r"\d+", s["score"])
    return {"answer": s["answer"].strip(), "score": int(number[0]) if number else 0}


@sgc.function
def program(s, document: str, question: str, min_score: int = 50):
    chunks = [c.strip() for c in document.split("\n\n") if c.strip()]
    answers = sgc.map(answer_chunk, chunks, question=question)
    results = [r for r in answers.returns if r["answer"]]
    if not results:
        return "The document is silent."
    results.sort(key=itemgetter("score"), reverse=True)
    best = results[0]
    ties = [r for r in results[1:] if r["score"] == best["score"]]
    if ties:
        numbered = "\n".join(f"{i}) {r['answer']}" for i, r in enumerate([best, *ties]))
        s += f"Question: {question}\n{numbered}\nThe best answer is number "
        s += sgc.gen("pick", dtype=int)
        index = int(s["pick"])
        best = [best, *ties][index] if 0 <= index <= len(ties) else best
    if best["score"] < min_score:
        return f"Perhaps: {best['answer']}"
    return best["answer"]


ARGUMENTS = [
    {
        "document": "The bridge was opened in 1932.\n\nIt is 503 m long.\n\n\n\nTolls: $4.",
        "question": "When was the bridge opened?",
    },
    {"document": "", "question": "Hm?"},
]
REPLIES = ["In 1932.", "95", "I would say 20 or so", "no idea", "100/100", ""]
