"""Questions about a person, and what users tell of themselves, in more phrasings."""

# ruff: noqa: E501 (a template is a line)
from __future__ import annotations

from functools import cache
from random import Random

from tiny_model.first_hour.spin import FIRST_HOUR, OLD_SHARE, every, is_kept_out
from tiny_model.world import Split, World

_WHO = "({first}|{name}|the person)"
ABOUT: dict[str, tuple[str, ...]] = {
    "job": (
        f"(What|Which) (job|profession|occupation|trade) does {_WHO} have?",
        f"(What is|Tell me|Name) the (job|profession|occupation) of {_WHO}(?|.)",
        f"What does {_WHO} (do|work as|do for work|do to earn money)?",
    ),
    "city": (
        f"(Which|What) (city|town|place) (does {_WHO} live in|is the home of {_WHO})?",
        f"Where (is {_WHO} at home|does {_WHO} have a home|is the home of {_WHO})?",
        f"(What is|Tell me|Name) the (city|town|home) of {_WHO}(?|.)",
    ),
    "born": (
        f"(What|Which) year was {_WHO} born( in|)?",
        f"(What is|Tell me|Name) the (birth year|year of birth) of {_WHO}(?|.)",
        f"(Since when|From which year) is {_WHO}?",
    ),
    "date": (
        f"(On which|On what) (date|day) was {_WHO} born?",
        f"(What is|Tell me) the (birthday|birth date|date of birth) of {_WHO}(?|.)",
    ),
    "age": (
        f"(What is|Tell me) the age of {_WHO}(?|.)",
        f"(How many years old|What age) is {_WHO}?",
    ),
    "pet": (
        f"(What|Which) (pet|animal) (does {_WHO} keep|belongs to {_WHO}|lives with {_WHO})?",
        f"(What is|Tell me|Name) the (pet|animal) of {_WHO}(?|.)",
    ),
    "food": (
        f"(What|Which) (food|dish) does {_WHO} (like|love|like best|prefer|enjoy)?",
        f"(What is|Tell me|Name) the (favourite food|best loved food) of {_WHO}(?|.)",
    ),
    "color": (
        f"(What|Which) (color|colour) does {_WHO} (like best|love|prefer|enjoy)?",
        f"(What is|Tell me|Name) the (favourite color|favourite colour) of {_WHO}(?|.)",
    ),
    "phone": (
        f"(What is|Tell me|Give me) the (phone number|number|telephone number) of {_WHO}(?|.)",
        f"(Under which|At what) number can I (call|reach) {_WHO}?",
    ),
    "email": (
        f"(What is|Tell me|Give me) the (email|email address|mail address) of {_WHO}(?|.)",
        f"(Where|How) can I write to {_WHO}?",
    ),
    "name": (
        "(Who is|What is the name of) (this|the person in the text|this person|the person here)?",
        "(Whom|Who) does the text (describe|speak of|tell about)?",
    ),
}
ASKED: dict[str, tuple[str, ...]] = {
    "first": ("(Do you know|Can you tell me|Tell me|Say) (who I am|my name|what my name is)(?|.)",
              "(How am I called|What am I called|Who am I)?"),
    "city": ("(Do you know|Can you tell me|Tell me|Do you remember) where I (live|am from|come from)(?|.)",
             "(What is|Which is) my (city|home|town)?"),
    "pet": ("(Do you know|Can you tell me|Tell me|Do you remember) (which|what) (pet|animal) I have(?|.)",
            "(What is|Which is) my (pet|animal)?"),
    "food": ("(Do you know|Can you tell me|Tell me|Do you remember) what I like( to eat|)(?|.)",
             "(What is|Which is) my favourite (food|dish|meal)?"),
    "color": ("(Do you know|Can you tell me|Tell me|Do you remember) (which|what) (color|colour) I like(?|.)",
              "(What|Which) (color|colour) do I (prefer|love|like best)?"),
    "job": ("(Do you know|Can you tell me|Tell me|Do you remember) what (I do|my job is|I work as)(?|.)",
            "(What|Which) (job|profession|work) do I have?"),
    "age": ("(Do you know|Can you tell me|Tell me|Do you remember) (how old I am|my age)(?|.)",),
    "phone": ("(Do you know|Can you tell me|Tell me|Do you remember) my (phone number|number)(?|.)",
              "(Under which|At which) number can you call me?"),
}  # fmt: skip
TOLD: dict[str, tuple[str, ...]] = {
    "first": ("(My name's|People call me|You can call me|The name is|I'm) {v}.",),
    "city": ("(I'm from|My home is|My home town is|I moved to|I am from) {v}.",),
    "pet": ("(I own a|I keep a|There is a|I've got a) {v}( at home|).",),
    "food": ("(My favourite food is|I really like|I enjoy|I eat a lot of) {v}.",),
    "color": ("(The color I like best is|I love the color|My color is) {v}.",),
    "job": ("(I'm a|I am working as a|I earn my money as a|My profession is) {v}.",),
    "age": ("(I'm|My age is) {v}.", "I turned {v} this year."),
    "phone": ("(My number is|You can call me at|Please note my number:) {v}.",),
}


def otherwise(
    r: Random,
    world: World,
    kind: str,
    templates: dict[str, tuple[str, ...]],
    field: str,
    old: list[str],
) -> str:
    """How something is asked or told: one of `old`, or from the last stage on perhaps another way."""
    if world.stage < FIRST_HOUR or (world.split == "train" and r.random() < OLD_SHARE):
        return r.choice(old)
    forms = phrasings(f"{kind} {field}", templates[field], world.split)
    return r.choice(forms) if forms else r.choice(old)


@cache
def phrasings(kind: str, templates: tuple[str, ...], split: Split) -> list[str]:
    """All phrasings of a split."""
    return [
        text for t in templates for text in every(t) if is_kept_out(kind, text) == (split == "test")
    ]
