"""Tools behind a wrapper of the author's: retries, fallbacks and a count of calls for each tool."""

from collections import Counter
from functools import wraps

import sgc

CAPITALS = {"france": "Paris", "peru": "Lima"}


@sgc.tool(effect="pure")
def capital(country: str) -> str:
    return CAPITALS[country.strip().lower()]


@sgc.tool(effect="pure")
def population(city: str) -> int:
    return {"Paris": 2_100_000, "Lima": 10_000_000}[city]


def with_fallback(fallback, *errors):
    def decorate(tool):
        @wraps(tool)
        def call(*args):
            try:
                return tool(*args), None
            except errors as e:
                return fallback, f"{type(e).__name__}: {e}"

        return call

    return decorate


safe_capital = with_fallback("", LookupError)(capital)
safe_population = with_fallback(0, LookupError)(population)


@sgc.function
def program(s, countries: list[str]):
    calls = Counter()
    errors = []
    sizes = {}
    for country in countries:
        s += f"Country: {country}\n"
        city, error = safe_capital(country)
        calls["capital"] += 1
        if error:
            errors.append(error)
            s += "Capital:" + sgc.gen("city", max_tokens=6, stop="\n") + "\n"
            city = s["city"].strip()
        else:
            s += f"Capital: {city}\n"
        people, error = safe_population(city)
        calls["population"] += 1
        if error:
            errors.append(error)
        else:
            sizes[city] = people
    if sizes:
        ranked = sorted(sizes.items(), key=lambda kv: kv[1], reverse=True)
        s += "\n".join(f"{n}. {city} {people:,}" for n, (city, people) in enumerate(ranked, 1))
        s += f"\nWhy is {ranked[0][0]} so large?" + sgc.gen("why", max_tokens=32, stop="\n")
    else:
        s += "No figures."
    return dict(calls), errors, sizes


ARGUMENTS = [{"countries": ["France", "Atlantis", " PERU "]}, {"countries": []}]
REPLIES = [" Lima", " Poseidonis", "Paris", " Because of work."]
