"""The smallest RAG there is: split documents, score chunks by shared words, answer from the top."""

import sgc

docs = [
    "The office opens at 8 and closes at 18. On Fridays it closes at 15.",
    "Parking is free for visitors. Employees need a badge to park.",
    "The canteen serves lunch from 12 to 14. Vegetarian meals are on Tuesdays and Thursdays.",
]


def split_text(text, size=8):
    words = text.split()
    chunks = []
    for i in range(0, len(words), size):
        chunks.append(" ".join(words[i : i + size]))
    return chunks


@sgc.tool(effect="pure")
def retrieve(question: str, k: int) -> list[str]:
    chunks = []
    for d in docs:
        chunks += split_text(d)
    q = set(question.lower().split())
    chunks.sort(key=lambda c: len(q & set(c.lower().split())), reverse=True)
    return chunks[:k]


@sgc.function
def program(s, question: str, k: int = 2):
    s += "Use the context to answer. If it is not in the context, say 'I don't know'.\n"
    s += "Context:\n"
    context = retrieve(question, k)
    for c in context:
        s += "- " + c + "\n"
    s += "Question: " + question + "\n"
    s += "Answer:" + sgc.gen("answer", max_tokens=32, stop="\n")
    if "don't know" in s["answer"].lower():
        s += "\nWhat should the user ask instead?" + sgc.gen("hint", max_tokens=32, stop="\n")
        return s["hint"]
    return s["answer"]


ARGUMENTS = [
    {"question": "When does the office close on Fridays?"},
    {"question": "", "k": 0},
    {"question": "Is parking free for visitors and employees?", "k": 3},
]
REPLIES = [
    " At 15.",
    " I don't know",
    " I DON'T KNOW, sorry",
    " Try asking about opening hours.",
]
