"""RAPTOR-like: pairs of summaries are summarised up to one root, which then answers."""

import textwrap

import sgc

MAX_CHARS = 40


@sgc.function
def merge(s, left: str, right: str, level: int):
    s += f"(level {level})\nA: {left}\nB: {right}\nA and B in one sentence:"
    s += sgc.gen("summary", max_tokens=40, stop="\n")
    return s["summary"].strip() or left


def pairs(items):
    """The items two by two; an odd last one is alone."""
    for i in range(0, len(items), 2):
        yield items[i : i + 2]


def build(items, level=0):
    """Recursive: gives the root and the number of levels."""
    if len(items) <= 1 or level >= 4:
        return (items[0] if items else ""), level
    above = []
    for pair in pairs(items):
        if len(pair) == 2:
            left, right = pair
            above.append(merge(left, right, level=level + 1).ret_value)
        else:
            above.append(pair[0])
    return build(above, level + 1)


@sgc.function
def program(s, leaves: list[str], question: str):
    leaves = [textwrap.shorten(leaf, MAX_CHARS, placeholder="...") for leaf in leaves]
    root, levels = build(leaves)
    if not root:
        s += "There is nothing to read."
        return None
    s += f"Summary of {len(leaves)} texts ({levels} levels): {root}\n"
    s += f"{question}\n" + sgc.gen("answer", max_tokens=32, stop="\n")
    return {"levels": levels, "root": root, "answer": s["answer"]}


ARGUMENTS = [
    {
        "leaves": [
            "In March sales rose by 4 percent.",
            "In April sales fell by 1 percent.",
            "In May a strike stopped the plant for nine days.",
        ],
        "question": "How was the spring?",
    },
    {"leaves": [], "question": "How was the spring?"},
    {"leaves": ["Only one."], "question": "How many?"},
]
REPLIES = [" Sales moved little.", " A strike hurt an otherwise flat spring.", " ", "Mixed."]
