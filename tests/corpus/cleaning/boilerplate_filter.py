"""Cleans scraped pages line by line: heuristics, repeated lines, the model for the rest."""

import textwrap
from collections import Counter
from functools import partial

import sgc

MENU = ("cookie", "subscribe", "sign in", "all rights reserved", "read more")


def heuristics(line: str, seen: Counter) -> bool | None:
    """True keeps, False drops, None does not know."""
    words = line.split()
    if not words:
        return False
    if any(m in line.lower() for m in MENU):
        return False
    if seen[line] > 1:
        return False
    if len(words) >= 8 and line.rstrip()[-1] in ".!?\"'":
        return True
    return None


@sgc.function
def program(s, pages: list[str], max_asks: int = 4):
    seen = Counter(line for page in pages for line in set(page.splitlines()))
    check = partial(heuristics, seen=seen)
    asks = 0
    corpus = []

    def ask(context, line):
        nonlocal asks, s
        asks += 1
        s += f"Before: {context}\nLine: {line}\nIs the line part of the article? "
        s += sgc.select("keep", choices=["yes", "no"]) + "\n"
        return s["keep"] == "yes"

    for page in pages:
        kept = []
        for line in page.splitlines():
            keep = check(line)
            if keep is None and asks < max_asks:
                keep = ask(kept[-1] if kept else "(beginning of the page)", line)
            if keep:
                kept.append(line.strip())
        text = "\n".join(kept)
        if len(text.split()) < 5:
            continue
        s += textwrap.shorten(text, 200) + "\nQuality (low, medium, high): "
        s += sgc.select("quality", choices=["low", "medium", "high"]) + "\n"
        match s["quality"]:
            case "high":
                corpus.insert(0, text)
            case "medium":
                corpus.append(text)
            case _:
                s += "Why is it low?" + sgc.gen("why", max_tokens=16, stop="\n") + "\n"
    total = sum(len(p) for p in pages)
    ratio = sum(map(len, corpus)) / total if total else 0.0
    return {"corpus": corpus, "kept": round(ratio, 2), "asks": asks}


ARGUMENTS = [
    {
        "pages": [
            "Home | News\nThe old mill has been restored after ten years.\nA view\n© 2024",
            "Home | News\nAccept cookies\nRecipe of the day\nMix flour and milk",
        ]
    },
    {"pages": ["", "\n\n"]},
    {"pages": ["One two three four five six seven eight nine.\nshort line here"], "max_asks": 0},
]
REPLIES = [" Too short.", " It is an advertisement.", "", " no content\n"]
