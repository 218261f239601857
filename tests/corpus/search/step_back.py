"""Step-back prompting: a more general question first; its answer helps with the original one."""

import textwrap

import sgc

SYSTEM = """\
    You are an expert at world knowledge. Step back and paraphrase a question to a more
    generic step-back question, which is easier to answer."""
EXAMPLES = [
    {
        "input": "Could the members of The Police perform lawful arrests?",
        "output": "What can the members of The Police do?",
    },
    {"input": "Jan Sindel's was born in what country?", "output": "What is Jan Sindel's history?"},
]


def make_retriever(k):
    calls = 0
    knowledge = {
        "gas": "Ideal gas law: PV = nRT.",
        "temperature": "Temperatures in gas laws are in kelvin.",
        "history": "Look at dates and places first.",
    }

    def retrieve(query):
        nonlocal calls
        calls += 1
        hits = [v for key, v in knowledge.items() if key in query.lower()]
        return f"# search {calls}\n" + "\n".join(hits[:k] or ["(nothing)"])

    return retrieve


@sgc.function
def program(s, question: str):
    retrieve = make_retriever(k=2)
    s += sgc.system(textwrap.dedent(SYSTEM))
    for ex in EXAMPLES:
        s += sgc.user(ex["input"])
        s += sgc.assistant(ex["output"])
    s += sgc.user(question)
    s += sgc.assistant(sgc.gen("step_back", max_tokens=40, stop="\n"))
    context = retrieve(question) + "\n" + retrieve(s["step_back"])
    if context.count("(nothing)") == 2:
        context = "Answer from memory, or say that you do not know."
    s += sgc.user(f"{textwrap.indent(context, '> ')}\n\nOriginal question: {question}")
    s += sgc.assistant(sgc.gen("answer", max_tokens=96))
    return None if "not know" in s["answer"] else s["answer"]


ARGUMENTS = [
    {"question": "What happens to the pressure of a gas if the volume is halved?"},
    {"question": "Where did he live in 1911?"},
    {"question": ""},
]
REPLIES = [
    "What physics principles govern gas and temperature?",
    "What is the history of the person?",
    "It doubles.",
    "I do not know.",
]
