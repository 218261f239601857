"""Reads a ranked list of pages until the context is sufficient, within a budget of words."""

import sgc


class ContextBuffer:
    """Keeps the newest notes within a number of words."""

    def __init__(self, budget):
        self.budget = budget
        self.notes = []

    def __len__(self):
        return sum(len(n.split()) for n in self.notes)

    def add(self, note):
        self.notes.append(note)
        dropped = 0
        while len(self) > self.budget and len(self.notes) > 1:
            self.notes.pop(0)
            dropped += 1
        return dropped

    def __str__(self):
        return "\n".join(f"* {n}" for n in reversed(self.notes))


@sgc.function
def program(s, question: str, pages: list[dict[str, str]], budget: int = 20):
    buffer = ContextBuffer(budget)
    n_dropped = 0
    for i, page in enumerate(pages):
        reader = s.fork(1)[0]
        reader += f"Page '{page['title']}': {page['body']}\n"
        reader += f"Note down what helps with '{question}', or NONE:"
        reader += sgc.gen("note", max_tokens=32, stop="\n")
        note = reader["note"].strip()
        if note.upper().startswith("NONE") or not note:
            continue
        n_dropped += buffer.add(note)
        check = s.fork(1)[0]
        check += f"Notes:\n{buffer}\nCan '{question}' be answered from them? "
        check += sgc.select("enough", choices=["yes", "no"])
        if check["enough"] == "yes":
            read = i + 1
            break
    else:
        read = len(pages)
        s += "The notes may be incomplete.\n"
    s += f"Notes:\n{buffer}\n{question}\n" + sgc.gen("answer", max_tokens=32)
    return {"read": read, "dropped": n_dropped, "answer": s["answer"]}


ARGUMENTS = [
    {
        "question": "Who designed the opera house?",
        "pages": [
            {"title": "Sydney", "body": "A city in Australia."},
            {"title": "Opera", "body": "Opera began in Italy around 1600."},
            {"title": "Utzon", "body": "Jørn Utzon won the contest in 1957."},
        ],
    },
    {"question": "Who?", "pages": []},
]
REPLIES = [
    " Jørn Utzon won the design contest for the opera house in 1957",
    " NONE",
    " It is in Sydney, a city in Australia, on a point of land in the harbour",
    "",
]
