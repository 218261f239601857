"""An agent: it thinks, uses one of two tools, reads what they say, and answers (ReAct)."""

import sgc

FACTS = {
    "capital of Peru": "The capital of Peru is Lima.",
    "capital of Cuba": "The capital of Cuba is Havana.",
    "Ada Stone": "Ada Stone is a doctor and lives in Riga.",
}
SIGNS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}


@sgc.tool(effect="pure")
def search(query: str) -> str:
    return FACTS.get(query.strip(), "Nothing was found.")


@sgc.tool(effect="pure", on_error="That cannot be worked out.")
def calculator(expression: str) -> str:
    a, sign, b = expression.split()
    return str(SIGNS[sign](int(a), int(b)))


@sgc.function
def react(s, question):
    s += "Answer the question. You can use these tools:\n"
    s += "- search: looks up a fact\n- calculator: works out a sum\n"
    s += "Question: " + question + "\n"
    for turn in sgc.turns(4):
        s += "Thought:" + sgc.gen("thought", max_tokens=24, stop="\n") + "\n"
        if "answer" in s["thought"]:
            break
        s += "Action: " + sgc.select("tool", choices=["search", "calculator"])
        s += "\nInput:" + sgc.gen("given", max_tokens=24, stop="\n") + "\n"
        if s["tool"] == "search":
            seen = search(s["given"])
        else:
            seen = calculator(s["given"])
        s += "Observation: " + seen + "\n"
    s += "Final Answer:" + sgc.gen("answer", max_tokens=24, stop="\n")
    return s["answer"].strip()
