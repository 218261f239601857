"""Routes questions to one of several indexes, with filters that are parsed from the question."""

from enum import Enum

import sgc


class Index(str, Enum):
    PAPERS = "papers"
    NEWS = "news"
    NONE = "none"


RECORDS = {
    Index.PAPERS: [
        {"title": "Attention is all you need", "year": 2017},
        {"title": "BERT", "year": 2018},
        {"title": "GPT-3", "year": 2020},
    ],
    Index.NEWS: [
        {"title": "Bridge closed", "year": 2020},
        {"title": "New mayor", "year": 2021},
    ],
}


def in_range(record, since=None, until=None):
    return (since is None or record["year"] >= since) and (until is None or record["year"] <= until)


@sgc.function
def program(s, question: str):
    s += f"Question: {question}\nIndex: "
    s += sgc.select("index", choices=[i.value for i in Index])
    index = Index(s["index"])
    if index is Index.NONE:
        s += "\nAnswer:" + sgc.gen("answer", max_tokens=24, stop="\n")
        return s["answer"].strip()

    s += "\nFilter, as since=YEAR or until=YEAR, or nothing:"
    s += sgc.gen("filter", max_tokens=12, stop="\n")
    filters = {}
    for part in s["filter"].replace(",", " ").split():
        match part.split("="):
            case [("since" | "until") as key, value] if value.isdigit():
                filters[key] = int(value)
            case [key, _]:
                s += f"\n(no filter {key})"
    found = [r for r in RECORDS[index] if in_range(r, **filters)]
    s += f"\n{len(found)} records"
    if filters:
        s += " (" + ", ".join(f"{k} {v}" for k, v in sorted(filters.items())) + ")"
    for r in sorted(found, key=lambda r: r["year"], reverse=True):
        s += f"\n  {r['year']}: {r['title']}"
    s += "\nAnswer:" + sgc.gen("answer", max_tokens=24, stop="\n")
    return {"index": index.value, "filters": filters, "answer": s["answer"].strip()}


ARGUMENTS = [
    {"question": "Which language models appeared after 2017?"},
    {"question": "What is 2 + 2?"},
]
REPLIES = [" since=2018", "until=2020, since=2019", "  ", " since=later", " BERT and GPT-3"]
