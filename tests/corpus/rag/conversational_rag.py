"""A chat over documents: the last turns and the new question become one standalone question."""

import sgc

FAQ = {
    "return": "Articles can be returned within 30 days.",
    "ship": "Shipping takes 3 to 5 days and costs 4.90.",
    "warranty": "The warranty is two years.",
}


@sgc.tool(effect="pure")
def faq_lookup(question: str) -> str:
    for key, text in FAQ.items():
        if key in question.lower():
            return text
    raise KeyError(question)


def format_history(history: list[dict], last: int = 4) -> str:
    buffer = ""
    for turn in history[-last:]:
        who = "Human" if turn["role"] == "user" else "Assistant"
        buffer += f"\n{who}: {turn['content']}"
    return buffer


@sgc.function
def condense(s, history: list[dict], question: str):
    s += "Given the conversation and a follow-up, write a standalone question.\n"
    s += "Chat history:" + format_history(history)
    s += f"\nFollow-up: {question}\nStandalone question:"
    s += sgc.gen("standalone", max_tokens=32, stop="\n")
    return s["standalone"].strip()


@sgc.function
def program(s, history: list[dict], question: str):
    # the first turn needs no rewriting
    standalone = condense(history, question).ret_value if history else question
    if not standalone:
        standalone = question
    try:
        context = faq_lookup(standalone)
    except KeyError:
        context = ""

    s += sgc.system("Answer from the context only.")
    for turn in history:
        if turn["role"] == "user":
            s += sgc.user(turn["content"])
        elif turn["role"] == "assistant":
            s += sgc.assistant(turn["content"])
    s += sgc.user(f"{question}\n(context: {context or 'none'})")
    if context:
        s += sgc.assistant(sgc.gen("answer", max_tokens=64))
    else:
        s += sgc.assistant("I am sorry, I cannot find that. " + sgc.gen("answer", max_tokens=32))
    new_history = [*history, {"role": "user", "content": question}]
    new_history.append({"role": "assistant", "content": s["answer"]})
    return new_history[-6:]


ARGUMENTS = [
    {"history": [{"role": "user", "content": "Do you ship to Malta?"}], "question": "How long?"},
    {"history": [], "question": "Is there a warranty?"},
    {"history": [{"role": "assistant", "content": "Hi!"}], "question": "?"},
]
REPLIES = [" How long does it take to ship to Malta?", " What is it?", "Five days.", ""]
