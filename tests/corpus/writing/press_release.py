"""Drafts a press release in parts, filled into a string.Template, and trims it to a word limit."""

import textwrap
from string import Template

from pydantic import BaseModel

import sgc


class Company(BaseModel):
    name: str
    city: str
    ceo: str = "the management"
    boilerplate: str = ""


RELEASE = Template("""\
$headline

$city - $lead

$body

"$quote," says $ceo.

About $name: $about
""")


def trim(text: str, limit: int) -> str:
    words = text.split()
    if len(words) <= limit:
        return " ".join(words)
    cut = " ".join(words[:limit])
    end = max(cut.rfind("."), cut.rfind("!"))
    return cut[: end + 1] if end > 0 else cut + " …"


@sgc.function
def part(s, news: str, what: str, limit: int, previous: str = ""):
    s += f"News: {news}\n"
    if previous:
        s += f"Written so far: {textwrap.shorten(previous, 80, placeholder=' …')}\n"
    s += f"{what} ({limit} words at most):" + sgc.gen("text", max_tokens=2 * limit, stop="\n\n")
    return trim(s["text"], limit)


@sgc.function
def program(s, company: Company, news: str, embargo: bool = False):
    written = ""
    parts = {}
    plan = [("headline", 8), ("lead", 20), ("body", 30), ("quote", 12)]
    for key, limit in plan:
        parts[key] = part(news, key.title(), limit, previous=written).ret_value
        written += parts[key] + " "
    parts["headline"] = parts["headline"].rstrip(".").upper()
    parts["quote"] = parts["quote"].strip('"').rstrip(".")
    if not parts["quote"]:
        s += company.ceo + " is away. Another voice:"
        s += sgc.gen("voice", max_tokens=24, stop="\n")
        parts["quote"] = s["voice"].strip()
    about = company.boilerplate or f"{company.name} is based in {company.city}."
    text = RELEASE.safe_substitute(
        parts, about=about, **company.model_dump(exclude={"boilerplate"})
    )
    if embargo:
        text = "*** EMBARGOED ***\n" + text
    s += text


NORDLYS = Company(name="Nordlys", city="Bergen", ceo="Kari Moe")
TOYS = Company(name="X", city="Y", boilerplate="X makes $5 toys.")
ARGUMENTS = [
    {"company": NORDLYS, "news": "A lamp without a cable."},
    {"company": TOYS, "news": "", "embargo": True},
]
REPLIES = [
    " Nordlys shows a lamp without a cable.",
    " It is the first of its kind. It lasts for a week.",
    ' "We are proud."',
    "",
]
