"""Self-ask: the model asks itself follow-up questions until it can say the final answer."""

from collections import Counter
from functools import partial

import sgc

FOLLOW_UP = "Follow up:"
FINAL = "So the final answer is:"

EXEMPLAR = """Question: Who lived longer, Muhammad Ali or Alan Turing?
Are follow up questions needed here: Yes.
Follow up: How old was Muhammad Ali when he died?
Intermediate answer: 74
So the final answer is: Muhammad Ali

"""

line = partial(sgc.gen, max_tokens=16, stop="\n")
KNOWN = {"founder": "Ole Kirk Christiansen", "born": "1891", "capital": "Copenhagen"}


@sgc.tool(effect="pure")
def google(query: str) -> str:
    words = query.lower().replace("?", " ").split()
    found = [KNOWN[w] for w in words if w in KNOWN]
    return found[0] if found else ""


def last_line(text: str) -> str:
    return text.strip().split("\n")[-1]


@sgc.function(max_turns=6)
def program(s, question: str):
    s += EXEMPLAR
    s += f"Question: {question}\nAre follow up questions needed here:"
    s += sgc.gen("ret", max_tokens=48, stop="Intermediate answer:")
    hops = 0
    while FOLLOW_UP in last_line(s["ret"]):
        follow_up = last_line(s["ret"]).split(FOLLOW_UP)[1].strip()
        answer = google(follow_up)
        if answer:
            s += f"Intermediate answer: {answer}\n"
        else:
            s += "Intermediate answer:" + line("own") + "\n"
        s += sgc.gen("ret", max_tokens=48, stop="Intermediate answer:")
        hops += 1
        if hops >= 4:
            break
    if FINAL not in s["ret"]:
        s += "\n" + FINAL + line("final", n=3, temperature=0.7)
        clean, _ = Counter(text.strip() for text in s["final"]).most_common(1)[0]
    else:
        clean = s["ret"].split(FINAL)[-1]
    return clean.strip().rstrip("."), hops


ARGUMENTS = [
    {"question": "In what year was the founder of LEGO born?"},
    {"question": "?"},
]
REPLIES = [
    " Yes.\nFollow up: Who is the founder of LEGO?",
    " No.\nSo the final answer is: 1891.",
    "Follow up: When was he born?",
    "Follow up: What is his favourite colour?",
    " red",
    "I do not know",
]
