"""Masks personal data: patterns for the obvious, the model for names; placeholders are stable."""

import re

import sgc

PATTERNS = [
    ("EMAIL", re.compile(r"[\w.+-]+@[\w-]+\.\w+")),
    ("PHONE", re.compile(r"\+?\d[\d -]{7,}\d")),
    ("IBAN", re.compile(r"\b[A-Z]{2}\d{2}(?: ?\w{4}){3,}\b")),
]


class Masker:
    def __init__(self):
        self.table = {}
        self.counts = {}

    def placeholder(self, kind, value):
        key = (kind, value.lower())
        if key not in self.table:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.table[key] = f"<{kind}_{self.counts[kind]}>"
        return self.table[key]

    def mask_patterns(self, text):
        for kind, pattern in PATTERNS:
            text = pattern.sub(lambda m, kind=kind: self.placeholder(kind, m.group()), text)
        return text

    def mask_names(self, text, names):
        for name in sorted(names, key=len, reverse=True):
            if name and name in text:
                text = text.replace(name, self.placeholder("NAME", name))
        return text

    def unmask(self, text):
        for (_, value), tag in self.table.items():
            text = text.replace(tag, value)
        return text


@sgc.function
def program(s, documents: list[str]):
    masker = Masker()
    masked = []
    for doc in documents:
        text = masker.mask_patterns(doc)
        s += f"Text: {text}\nNames of people in it, with commas, or NONE:"
        s += sgc.gen("names", max_tokens=32, stop="\n") + "\n"
        answer = s["names"].strip()
        names = [] if answer.upper().startswith("NONE") else [n.strip() for n in answer.split(",")]
        masked.append(masker.mask_names(text, names))

    s += "Now an answer to the following, with the placeholders as they are.\n"
    s += "\n---\n".join(masked) + "\nAnswer:" + sgc.gen("answer", max_tokens=80)
    leaked = [
        tag for tag in re.findall(r"<[A-Z]+_\d+>", s["answer"]) if tag not in masker.table.values()
    ]
    if leaked:
        s += f"\n(There is no {leaked[0]}.)"
    return {"masked": masked, "answer": masker.unmask(s["answer"]), "counts": masker.counts}


ARGUMENTS = [
    {
        "documents": [
            "Call Ann Berg at +47 22 33 44 55.",
            "Ann Berg's mail is ann@berg.no, ANN@BERG.NO too.",
        ]
    },
    {"documents": [""]},
    {"documents": []},
]
REPLIES = [
    " Ann Berg",
    " NONE",
    " Ann, Berg, ",
    " I have called <NAME_1> at <PHONE_1>.",
    " Dear <NAME_9>",
]
