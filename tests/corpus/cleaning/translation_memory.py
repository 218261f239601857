"""Translates with a memory: exact hits, fuzzy hits as examples, and a glossary check."""

from difflib import get_close_matches
from functools import partial

import sgc


class TranslationMemory:
    def __init__(self, pairs: dict[str, str]):
        self._pairs = dict(pairs)
        self.hits = {"exact": 0, "fuzzy": 0, "none": 0}

    def look_up(self, source: str, cutoff: float = 0.6):
        if source in self._pairs:
            self.hits["exact"] += 1
            return "exact", [(source, self._pairs[source])]
        close = get_close_matches(source, self._pairs, n=2, cutoff=cutoff)
        kind = "fuzzy" if close else "none"
        self.hits[kind] += 1
        return kind, [(c, self._pairs[c]) for c in close]

    def add(self, source: str, target: str) -> None:
        self._pairs.setdefault(source, target)


def violations(source: str, target: str, glossary: dict[str, str]) -> list[str]:
    return [
        f"{a} = {b}" for a, b in glossary.items() if a in source.lower() and b not in target.lower()
    ]


@sgc.function
def translate(s, source: str, examples: list[tuple[str, str]], language: str):
    s += f"Translate from English to {language}.\n"
    for a, b in examples:
        s += f"English: {a}\n{language}: {b}\n"
    s += f"English: {source}\n{language}:" + sgc.gen("target", max_tokens=64, stop="\n")
    return s["target"].strip()


@sgc.function
def program(s, segments: list[str], memory: dict[str, str], glossary: dict[str, str]):
    tm = TranslationMemory(memory)
    to_german = partial(translate, language="German")
    out = []
    for segment in segments:
        kind, matches = tm.look_up(segment)
        if kind == "exact":
            out.append(matches[0][1])
            continue
        target = to_german(segment, matches).ret_value
        if broken := violations(segment, target, glossary):
            s += f"English: {segment}\nGerman: {target}\nUse {'; '.join(broken)}. Corrected:"
            s += sgc.gen("corrected", max_tokens=64, stop="\n") + "\n"
            target = s["corrected"].strip() or target
        tm.add(segment, target)
        out.append(target)
    return {"translation": out, **tm.hits}


ARGUMENTS = [
    {
        "segments": [
            "Press the red button.",
            "Press the green button.",
            "Close the valve.",
            "Close the valve.",
        ],
        "memory": {"Press the red button.": "Drücken Sie den roten Knopf."},
        "glossary": {"valve": "ventil", "button": "knopf"},
    },
    {"segments": [""], "memory": {}, "glossary": {}},
]
REPLIES = [
    " Drücken Sie den grünen Knopf.",
    " Schließen Sie das Ventil.",
    " Drücken Sie die grüne Taste.",
    " ",
]
