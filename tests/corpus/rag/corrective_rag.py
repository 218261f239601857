"""Corrective RAG: retrieved passages are graded; bad ones are dropped, the query is rewritten."""

from pydantic import BaseModel

import sgc


class Passage(BaseModel):
    id: int
    text: str
    source: str = "wiki"


STORE = [
    Passage(id=1, text="Lithium is the lightest metal.", source="chem"),
    Passage(id=2, text="Osmium is the densest naturally occurring element.", source="chem"),
    Passage(id=3, text="Heavy metal is a genre of rock music."),
    Passage(id=4, text="The densest planet is Earth.", source="astro"),
]


@sgc.tool(effect="pure")
def vector_search(query: str, k: int = 3) -> list[int]:
    def score(p: Passage) -> int:
        return sum(w in p.text.lower() for w in query.lower().split())

    ranked = sorted(STORE, key=lambda p: (-score(p), p.id))
    return [p.id for p in ranked[:k] if score(p)]


@sgc.tool(effect="pure")
def web_search(query: str) -> str:
    if len(query.split()) < 2:
        raise ValueError("the query is too short")
    return f"Top hit for '{query.strip()}': Osmium, 22.59 g/cm3."


@sgc.function
def grade(s, passage: str, question: str):
    s += f"Passage: {passage}\nQuestion: {question}\nIs the passage relevant? "
    s += sgc.select("grade", choices=["yes", "no"])
    return s["grade"] == "yes"


@sgc.function
def program(s, question: str):
    by_id = {p.id: p for p in STORE}
    passages = [by_id[i] for i in vector_search(question)]
    grades = sgc.map(grade, [p.text for p in passages], question=question)
    relevant = [p for p, good in zip(passages, grades.returns) if good]
    context = [f"[{p.source}] {p.text}" for p in relevant]
    if len(relevant) < len(passages) or not passages:
        s += f"Rewrite this question as a web query: {question}\nQuery:"
        s += sgc.gen("query", max_tokens=16, stop="\n") + "\n"
        try:
            context.append(web_search(s["query"]))
        except ValueError as e:
            context.append(f"(no web results: {e})")
    s += "\n".join(context) + f"\nQuestion: {question}\nAnswer:"
    s += sgc.gen("answer", max_tokens=32, stop="\n")
    return {"answer": s["answer"].strip(), "sources": sorted({p.source for p in relevant})}


ARGUMENTS = [
    {"question": "What is the densest metal?"},
    {"question": "zzz"},
]
REPLIES = [" densest chemical element", " osmium", " Osmium.", ""]
