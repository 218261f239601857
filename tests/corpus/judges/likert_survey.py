"""Likert ratings of a product text by several respondents, with median and spread."""

import statistics
from dataclasses import dataclass, field

import sgc

SCALE = {
    "strongly disagree": 1,
    "disagree": 2,
    "neutral": 3,
    "agree": 4,
    "strongly agree": 5,
}


@dataclass
class Item:
    statement: str
    reverse: bool = False
    ratings: list[int] = field(default_factory=list)

    def add(self, word: str) -> None:
        value = SCALE[word]
        self.ratings.append(6 - value if self.reverse else value)

    @property
    def median(self) -> float:
        return statistics.median(self.ratings)

    @property
    def spread(self) -> int:
        return max(self.ratings) - min(self.ratings)


@sgc.function
def program(s, product: str, text: str, respondents: list[str]):
    items = [
        Item("I understand what the product does."),
        Item("The text promises too much.", reverse=True),
    ]
    for respondent in respondents:
        person = s.fork(1)[0]
        person += f"You are {respondent}. You have read this about {product}:\n{text}\n"
        for item in items:
            person += f'"{item.statement}" I '
            person += sgc.gen("rating", choices=list(SCALE)) + ".\n"
            item.add(person["rating"])

    if not respondents:
        return []
    s += f"Survey about {product}, {len(respondents)} respondents\n"
    table = []
    for item in items:
        note = "  (divided!)" if item.spread >= 3 else ""
        table.append((item.statement, item.median, item.spread))
        s += f"{item.statement:<40} {item.median:>4.1f}{note}\n"
    overall = statistics.mean(m for _, m, _ in table)
    if overall < 3:
        s += "The text failed. A better one:" + sgc.gen("better", max_tokens=100, stop="\n\n")
    return table


ARGUMENTS = [
    {
        "product": "a kettle",
        "text": "It boils water in no time. It will change your life!",
        "respondents": ["a retired teacher", "a student", "an engineer"],
    },
    {"product": "nothing", "text": "", "respondents": []},
]
REPLIES = [" A kettle that boils a litre in three minutes.", " Honest words.\n\nThe end", "", " 42"]
