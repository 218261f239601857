"""Least-to-most prompting: decompose, then answer each subquestion with those before it."""

import json

import sgc

SHOT = """Q: It takes Amy 4 minutes to climb a slide and 1 minute to slide down. The slide closes in
15 minutes. How many times can she slide?
Subquestions: ["How long does each trip take?"]

"""


@sgc.function
def decompose(s, question: str):
    s += SHOT + f"Q: {question}\nSubquestions:"
    s += sgc.gen("subquestions", max_tokens=96, stop="\n\n")
    try:
        subs = json.loads(s["subquestions"])
    except json.JSONDecodeError:
        # Many models write a list with bullets all the same.
        subs = [line.strip(" -") for line in s["subquestions"].split("\n")]
    if not isinstance(subs, list):
        subs = [str(subs)]
    return [x for x in subs if isinstance(x, str) and x.endswith("?")]


@sgc.function
def program(s, question: str, max_subquestions: int = 4):
    subquestions = decompose(question).ret_value[:max_subquestions]
    solved: list[tuple[str, str]] = []
    s += question + "\n\n"
    for sub in [*subquestions, question]:
        s += f"Q: {sub}\nA:" + sgc.gen("answer", max_tokens=64, stop=["\n", "Q:"]) + "\n"
        answer = s["answer"].strip()
        if not answer:
            s += "(skipped)\n"
            continue
        solved.append((sub, answer))
    if not solved:
        return None
    last_question, final = solved[-1]
    if last_question != question:
        # The main question itself was not answered: take a look at all parts once more.
        recap = " ".join(a if a.endswith(".") else a + "." for _, a in solved)
        s += f"All in all: {recap} Therefore,"
        s += sgc.gen("final", max_tokens=32, stop="\n")
        final = s["final"].strip() or "unknown"
    return {"answer": final, "steps": len(solved)}


ARGUMENTS = [
    {"question": "Elsa has 5 apples. Anna has 2 more than Elsa. How many do they have together?"},
    {"question": "What now?", "max_subquestions": 1},
    {"question": "", "max_subquestions": 0},
]
REPLIES = [
    '["How many apples does Anna have?", 7]',
    "How many apples does Anna have?\n- How many does Elsa have?",
    " Anna has 7 apples.",
    " 12",
    "",
    "Nothing else\n- what?",
]
