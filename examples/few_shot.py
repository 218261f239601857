"""Few-shot question answering: solved examples first, then the question."""

import sgc

EXAMPLES = [
    ("What is the capital of France?", "Paris"),
    ("How many legs does a spider have?", "eight"),
    ("Which planet is closest to the sun?", "Mercury"),
    ("What do bees make?", "honey"),
]


@sgc.function
def few_shot(s, question):
    s += "Answer each question in a few words.\n\n"
    for asked, answered in EXAMPLES:
        s += f"Question: {asked}\nAnswer: {answered}\n\n"
    s += f"Question: {question}\nAnswer:"
    s += sgc.gen("answer", max_tokens=16, stop=["\n", "Question:"])
    return s["answer"]
