"""Standardises product titles and groups the offers of the same product."""

import itertools
import json
import re

import sgc

KEYS = ("brand", "item", "size", "color")
SCHEMA = {
    "type": "object",
    "properties": {k: {"type": "string", "maxLength": 20} for k in KEYS},
    "required": ["brand", "item"],
}
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s?(ml|l|g|kg|cm)\b", re.IGNORECASE)


def clean_size(text: str) -> str:
    if not (m := SIZE.search(text)):
        return ""
    amount, unit = float(m.group(1)), m.group(2).lower()
    if unit in ("l", "kg"):
        amount, unit = amount * 1000, {"l": "ml", "kg": "g"}[unit]
    return f"{amount:g} {unit}"


@sgc.function
def parse_title(s, title: str):
    s += f"Title: {title}\nJSON: " + sgc.gen("json", json_schema=SCHEMA, max_tokens=64)
    try:
        fields = json.loads(s["json"])
    except json.JSONDecodeError:
        fields = {}
    out = {k: str(fields.get(k, "")).strip().lower() for k in KEYS}
    out["size"] = clean_size(out["size"]) or clean_size(title)
    return out


@sgc.function
def program(s, offers: list[tuple[str, float]]):
    rows = []
    for title, price in offers:
        fields = parse_title(title).ret_value
        key = tuple(fields[k] for k in ("brand", "item", "size"))
        rows.append((key, price, title))

    rows.sort(key=lambda row: row[:2])
    lines = []
    for key, group in itertools.groupby(rows, key=lambda row: row[0]):
        group = list(group)
        cheapest, *others = group
        name = " ".join(part for part in key if part) or "(unknown)"
        saving = others[-1][1] - cheapest[1] if others else 0
        lines.append(f"{name}: {cheapest[1]:.2f}" + (f" (save {saving:.2f})" if saving else ""))
        if name == "(unknown)":
            s += (
                f"What is sold here? {cheapest[2]}\nAnswer:"
                + sgc.gen("guess", max_tokens=16, stop="\n")
                + "\n"
            )
    s += "\n".join(lines)
    return lines


ARGUMENTS = [
    {"offers": [("ACME Shampoo 0.5L", 3.5), ("acme shampoo, 500 ml", 2.99), ("Soap!!", 1)]},
    {"offers": [("", 0.0)]},
    {"offers": []},
]
REPLIES = [
    '{"brand":"Acme","item":"shampoo","size":"0.5 l"}',
    '{"brand":"Acme","item":"shampoo"}',
    '{"brand":"","item":""}',
    " Something to wash with.",
]
