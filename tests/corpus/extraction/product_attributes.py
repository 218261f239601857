"""Attributes of a product by several votes; what most agree on is kept with its agreement."""

import json
from collections import Counter

import sgc

SCHEMA = {
    "type": "object",
    "properties": {
        "color": {"enum": ["red", "green", "blue", "black"]},
        "size": {"enum": ["S", "M", "L"]},
        "washable": {"type": "boolean"},
    },
    "required": ["color", "size"],
}


def safe_loads(text, default=None):
    try:
        return json.loads(text)
    except ValueError:
        return default


def majority(values):
    """The commonest value and its share."""
    values = list(values)
    if not values:
        return None, 0.0
    [(value, n)] = Counter(values).most_common(1)
    return value, n / len(values)


@sgc.function
def program(s, title: str, description: str, votes: int = 3, agreement: float = 0.6):
    s += f"Product: {title}\n{description}\n"
    forks = s.fork(votes)
    for i, f in enumerate(forks):
        f += ("As JSON: ", "The attributes: ", "JSON: ")[i % 3]
        f += sgc.gen("json", json_schema=SCHEMA, max_tokens=40, temperature=0.8)
    parsed = [d for d in (safe_loads(f["json"]) for f in forks) if isinstance(d, dict)]

    result = {}
    doubtful = []
    for name in SCHEMA["properties"]:
        value, share = majority(d[name] for d in parsed if name in d)
        if value is not None and share >= agreement:
            result[name] = value
            s += f"{name}: {value} ({share:.0%})\n"
        else:
            doubtful.append(name)
    for name in doubtful:
        if name == "washable":
            s += "washable: " + sgc.select("washable", choices=["true", "false"]) + "\n"
            result[name] = s["washable"] == "true"
        else:
            choices = SCHEMA["properties"][name]["enum"]
            s += f"{name}: " + sgc.select(name, choices=choices) + "\n"
            result[name] = s[name]
    s += "A line for the catalogue:" + sgc.gen("line", max_tokens=24, stop="\n")
    return result, doubtful, s["line"].strip()[:60]


ARGUMENTS = [
    {"title": "Sweater 'Nordkapp'", "description": "Deep red wool. Do not wash above 30."},
    {"title": "", "description": "", "votes": 1},
]
REPLIES = [" A warm red sweater.", "red", "M", " Simply blue"]
