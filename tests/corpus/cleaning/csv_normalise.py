"""Reads CSV with DictReader, normalises columns with a table of functions, writes it back sorted."""

import csv
import io
from functools import partial, reduce

import sgc


def squeeze(text):
    return " ".join(text.split())


def compose(*functions):
    return lambda x: reduce(lambda value, f: f(value), functions, x)


def cut(text, n):
    return text[:n]


CLEANERS = {
    "name": compose(squeeze, str.title),
    "city": compose(str.strip, str.lower, partial(cut, n=12)),
    "age": compose(str.strip, lambda t: t if t.isdigit() else ""),
}


@sgc.function
def program(s, table: str):
    rows = list(csv.DictReader(io.StringIO(table)))
    asked = 0
    for row in rows:
        for column, clean in CLEANERS.items():
            row[column] = clean(row.get(column) or "")
        if not row["age"]:
            s += (
                f"How old is {row['name'] or 'somebody'}? "
                + sgc.gen("age", regex="[1-9][0-9]", max_tokens=2)
                + "\n"
            )
            row["age"] = s["age"]
            asked += 1
    out = io.StringIO()
    writer = csv.DictWriter(
        out, fieldnames=list(CLEANERS), extrasaction="ignore", lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(sorted(rows, key=lambda r: (r["city"], r["name"])))
    s += out.getvalue()
    return asked, out.getvalue().count("\n") - 1


ARGUMENTS = [
    {"table": "name,city,age\n ann  lee ,BERLIN,31\nbob,Oslo,x\n"},
    {"table": "name,city\ncid,rome\n"},
    {"table": ""},
]
REPLIES = ["42", "17"]
