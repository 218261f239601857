"""Audits a labelled data set: labels that the model contradicts twice are flagged."""

import functools
import logging

import sgc

logger = logging.getLogger("audit")


def logged(f):
    """Logs what a helper decided."""

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        result = f(*args, **kwargs)
        logger.info("%s -> %s", f.__name__, result)
        return result

    return wrapper


@logged
def decide(given, first, second):
    if first == second == given:
        return "keep"
    if first == second:
        return "flip"
    if given in (first, second):
        return "keep"
    return "review"


@sgc.function
def program(s, rows: list[dict], labels: list[str]):
    s += "Labels: " + ", ".join(labels) + "\n"
    report = {"keep": [], "flip": [], "review": []}
    for row in rows:
        text, given, *_ = row.values()
        cold, warm = s.fork(2)
        cold += f"Text: {text}\nLabel: " + sgc.select("label", choices=labels)
        warm += f"Text: {text}\nFirst a thought:" + sgc.gen("thought", max_tokens=40, stop="\n")
        warm += "\nLabel: " + sgc.select("label", choices=labels)
        verdict = decide(given, cold["label"], warm["label"])
        if verdict == "flip":
            entry = (text, given, cold["label"])
        elif verdict == "review":
            entry = (text, given, warm["thought"].strip())
        else:
            entry = text
        report[verdict].append(entry)

    n = len(rows)
    noise = len(report["flip"]) / n if n else 0
    s += f"{n} rows, estimated label noise {noise:.1%}\n"
    if noise > 0.2:
        s += "Advice for the annotators:" + sgc.gen("advice", max_tokens=48, stop="\n")
    return {k: v for k, v in report.items() if v}


ARGUMENTS = [
    {
        "rows": [
            {"text": "I want my money back", "label": "praise"},
            {"text": "Superb", "label": "praise", "id": 7},
            {"text": "Where is the exit?", "label": "question"},
        ],
        "labels": ["praise", "complaint", "question"],
    },
    {"rows": [], "labels": ["a", "b"]},
]
REPLIES = [" The writer is unhappy.", " It is short.", "", " Read to the end before you label."]
