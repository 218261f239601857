"""ReAct over a small encyclopedia: thoughts, search[...] and lookup[...], then an answer."""

import re

import sgc

PAGES = {
    "marie curie": "Marie Curie was born in Warsaw. She won two Nobel Prizes. She died in 1934.",
    "warsaw": "Warsaw is the capital of Poland. The Vistula flows through it.",
    "vistula": "The Vistula is 1,047 km long. It ends in the Baltic Sea.",
}
ACTION_RE = re.compile(r"^(\w+)\[(.*)\]$")

PROMPT = "Answer in steps. Actions: search[entity], lookup[keyword] or finish[answer].\n"


@sgc.tool(effect="pure")
def search(entity: str) -> str:
    page = PAGES.get(entity.strip().lower())
    if page is None:
        return f"Could not find [{entity}]. Try one of {sorted(PAGES)}."
    return page


@sgc.tool(effect="pure")
def lookup(page: str, keyword: str) -> str:
    hits = [line for line in page.split(". ") if keyword.lower() in line.lower()]
    if not hits:
        raise LookupError(f"no line with {keyword}")
    return f"(Result 1 / {len(hits)}) {hits[0]}"


@sgc.function
def program(s, question: str, max_steps: int = 5):
    s += PROMPT + "Question: " + question + "\n"
    page = ""
    n_bad = 0
    for i in range(1, max_steps + 1):
        s += f"Thought {i}:" + sgc.gen("thought", max_tokens=64, stop="\n") + "\n"
        s += f"Action {i}: " + sgc.gen("action", max_tokens=32, stop="\n") + "\n"
        match = ACTION_RE.match(s["action"].strip())
        if not match:
            n_bad += 1
            s += f"Observation {i}: Invalid action.\n"
            continue
        name, argument = match.groups()
        if name == "finish":
            return {"answer": argument, "steps": i, "n_bad": n_bad}
        elif name == "search":
            page = search(argument)
            observation = page
        elif name == "lookup":
            try:
                observation = lookup(page, argument)
            except LookupError as e:
                observation = f"No more results ({e})."
        else:
            observation = f"Unknown action: {name}"
        s += f"Observation {i}: {observation}\n"
    return {"answer": "", "steps": max_steps, "n_bad": n_bad}


ARGUMENTS = [
    {"question": "Which sea does the river of Marie Curie's birthplace flow into?"},
    {"question": "", "max_steps": 2},
]
REPLIES = ["search[Marie Curie]", "lookup[Nobel]", "finish[sea]", "Hm.", "dance[now]", "search[?]"]
