"""Self-ask with search: follow-up questions are looked up until the final answer comes."""

import sgc

PREFIX = """Question: Who lived longer, Ada Lovelace or Charles Babbage?
Are follow up questions needed here: Yes.
Follow up: How old was Ada Lovelace when she died?
Intermediate answer: Ada Lovelace was 36 years old when she died.
Follow up: How old was Charles Babbage when he died?
Intermediate answer: Charles Babbage was 79 years old when he died.
So the final answer is: Charles Babbage

"""
FOLLOW_UP, FINAL = "Follow up:", "So the final answer is:"
FACTS = {
    "founder of craigslist": "Craigslist was founded by Craig Newmark.",
    "craig newmark born": "Craig Newmark was born on December 6, 1952.",
}


@sgc.tool(effect="idempotent")
def google(query: str) -> str:
    query = query.lower()
    for key, fact in FACTS.items():
        if all(word in query for word in key.split()):
            return fact
    raise LookupError(f"no results for {query.strip()}")


def get_last_line(text):
    return text.rstrip().split("\n")[-1]


@sgc.function(max_turns=5)
def program(s, question: str):
    s += PREFIX + "Question: " + question + "\nAre follow up questions needed here:"
    s += sgc.gen("first", max_tokens=48, stop="Intermediate answer:")
    ret_text = s["first"]
    hops = 0
    while FOLLOW_UP in get_last_line(ret_text):
        query = get_last_line(ret_text).split(FOLLOW_UP)[1]
        hops += 1
        if hops > 4:
            break
        try:
            external_answer = google(query)
        except LookupError:
            # We don't get an answer: let the model fill it in.
            s += "\nIntermediate answer:" + sgc.gen("own", max_tokens=24, stop="\n") + "\n"
        else:
            s += f"\nIntermediate answer: {external_answer}\n"
        s += sgc.gen("next", max_tokens=48, stop="Intermediate answer:")
        ret_text = s["next"]

    if FINAL not in ret_text:
        s += "\n" + FINAL + sgc.gen("final", max_tokens=12, stop="\n")
        return s["final"].strip(), hops
    return ret_text.rsplit(FINAL, 1)[1].strip().rstrip("."), hops


ARGUMENTS = [
    {"question": "When was the founder of craigslist born?"},
    {"question": "Is it raining?"},
]
REPLIES = [
    " Yes.\nFollow up: Who was the founder of craigslist?\n",
    "Follow up: When was Craig Newmark born?",
    "Follow up: What is the meaning of life?",
    " No.\nSo the final answer is: December 6, 1952.",
    " I am not sure",
]
