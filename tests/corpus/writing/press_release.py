"""Writes a press release in parts and wraps it to 60 columns."""

import textwrap

from pydantic import BaseModel

import sgc


class Company(BaseModel):
    name: str
    city: str
    ceo: str = "the management"


LIMITS = {"headline": 8, "lead": 20, "quote": 12}


def trim(text: str, limit: int) -> str:
    words = text.split()
    if len(words) <= limit:
        return " ".join(words)
    return " ".join(words[:limit]) + " …"


@sgc.function
def program(s, company: Company, news: str, embargo: bool = False):
    s += f"{company.name} ({company.city}) has news: {news}\n"
    parts = {}
    for key, limit in LIMITS.items():
        s += (
            f"{key.title()} ({limit} words):" + sgc.gen(key, max_tokens=2 * limit, stop="\n") + "\n"
        )
        parts[key] = trim(s[key], limit)
    if not parts["quote"]:
        parts["quote"] = "No comment"

    headline = ("EMBARGOED: " if embargo else "") + parts["headline"].rstrip(".").upper()
    body = f'{company.city} - {parts["lead"]} "{parts["quote"]}", says {company.ceo}.'
    s += "\n" + headline + "\n\n" + textwrap.fill(body, width=60)


ARGUMENTS = [
    {
        "company": Company(name="Nordlys", city="Bergen", ceo="Kari Moe"),
        "news": "A lamp without a cable.",
    },
    {"company": Company(name="X", city="Y"), "news": "", "embargo": True},
]
REPLIES = [
    " Nordlys shows a lamp without a cable.",
    " It is the first of its kind, and nobody has to look for a plug at night any more.",
    " We are proud",
    "",
]
