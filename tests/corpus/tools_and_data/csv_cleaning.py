"""Cleans a CSV: rules first, the model for what is left, with a cache so that it is asked once."""

import csv
import io
from functools import partial

import sgc

COUNTRIES = ["France", "Germany", "Spain", "unknown"]
SHORT = {"f": "France", "fr": "France", "d": "Germany", "de": "Germany", "es": "Spain"}


def read(text, delimiter=","):
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


read_semicolons = partial(read, delimiter=";")


@sgc.function
def ask_country(s, value: str):
    s += f"In which country is '{value}'? "
    s += sgc.select("country", choices=COUNTRIES)
    return s["country"]


@sgc.function
def program(s, table: str, fix_ages: bool = True):
    rows = read_semicolons(table) if ";" in table else read(table)
    cache: dict[str, str] = {}
    asked = 0
    clean = []
    for line, row in enumerate(rows, start=2):
        raw = (row.get("country") or "").strip()
        country = SHORT.get(raw.lower(), raw)
        if country not in COUNTRIES:
            if raw not in cache:
                cache[raw] = ask_country(raw).ret_value
                asked += 1
            country = cache[raw]
        try:
            age = int(row["age"])
        except (KeyError, TypeError, ValueError):
            age = None
        if age is not None and not 0 <= age < 120:
            age = None
        if age is None and fix_ages:
            s += f"Line {line}: {row}. Age, as a number: "
            s += sgc.gen("age", dtype=int) + "\n"
            age = min(abs(int(s["age"])), 119)
        clean.append({"name": row["name"].strip().title(), "country": country, "age": age})
    unknown = [r["name"] for r in clean if r["country"] == "unknown"]
    ages = [r["age"] for r in clean if r["age"] is not None]
    s += f"{len(clean)} rows, mean age {sum(ages) / len(ages):.1f}\n" if ages else "No ages\n"
    if unknown:
        s += "Not placed: " + ", ".join(unknown) + "\nA mail that asks them:"
        s += sgc.gen("mail", max_tokens=60)
    with io.StringIO() as out:
        writer = csv.DictWriter(out, ["name", "country", "age"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(clean)
        return out.getvalue(), asked


ARGUMENTS = [
    {"table": "name,country,age\nann,FR,31\nbob,Bavaria,four\ncid,Bavaria,200\n"},
    {"table": "name;country;age\n eve ;d;\n", "fix_ages": False},
    {"table": ""},
]
REPLIES = ["41", "-7", " Dear all, where do you live?", "12"]
