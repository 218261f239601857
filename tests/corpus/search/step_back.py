"""Step-back prompting: a more general question first; its principles help with the original one."""

import textwrap

import sgc

SYSTEM = textwrap.dedent(
    """\
    You are an expert at world knowledge. Your task is to step back and paraphrase a question
    to a more generic step-back question, which is easier to answer."""
)
EXAMPLES = [
    {
        "input": "Could the members of The Police perform lawful arrests?",
        "output": "What can the members of The Police do?",
    },
    {"input": "Jan Sindel's was born in what country?", "output": "What is Jan Sindel's history?"},
]
KNOWLEDGE = {
    "gas": "Ideal gas law: PV = nRT.",
    "temperature": "Temperatures in gas laws are in kelvin.",
    "history": "Look at dates and places first.",
}


@sgc.tool(effect="pure")
def retrieve(query: str, k: int = 2) -> list[str]:
    hits = [v for key, v in KNOWLEDGE.items() if key in query.lower()]
    if not hits:
        raise LookupError("nothing found")
    return hits[:k]


@sgc.function
def program(s, question: str):
    s += sgc.system(SYSTEM)
    for ex in EXAMPLES:
        s += sgc.user(ex["input"])
        s += sgc.assistant(ex["output"])
    s += sgc.user(question)
    s += sgc.assistant(sgc.gen("step_back", max_tokens=40, stop="\n"))

    contexts = {}
    for kind, query in (("normal", question), ("step-back", s["step_back"])):
        try:
            contexts[kind] = retrieve(query)
        except LookupError:
            contexts[kind] = []
    facts = sorted(set(contexts["normal"]) | set(contexts["step-back"]))
    gained = len(facts) - len(contexts["normal"])

    if not facts:
        s += sgc.user(
            "Nothing was found. Answer from memory, or say that you do not know.\n" + question
        )
    else:
        context = textwrap.indent("\n".join(facts), "  * ")
        s += sgc.user(
            f"Use what helps, ignore what does not.\n{context}\n\nOriginal question: {question}"
        )
    s += sgc.assistant(sgc.gen("answer", max_tokens=96))
    if "know" in s["answer"] and gained == 0:
        return None
    return {"answer": s["answer"], "facts": len(facts), "gained": gained}


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
    "What is the question about?",
]
