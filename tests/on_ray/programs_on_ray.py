"""Programs and tools that workers import."""

from __future__ import annotations

import sgc


@sgc.function
def answer(s, document: str, question: str):
    s += "Read this and answer.\n" + document + "\nQuestion: " + question + "\nAnswer:"
    s += sgc.gen("answer", max_tokens=6) + "\nSure?" + sgc.gen("sure", max_tokens=4)
    return question


@sgc.tool(effect="pure")
def price(item: str) -> int:
    if item == "free":
        raise ValueError("nothing is free")
    return len(item)


@sgc.tool(effect="effect")
def order(item: str) -> str:
    return item


@sgc.function
def priced(s, item: str):
    s += f"{item} costs {price(item)}." + sgc.gen("why", max_tokens=4)


@sgc.function
def ordered(s, item: str):
    s += order(item) + sgc.gen("why", max_tokens=4)


def rows(n: int, n_documents: int = 8) -> list[dict]:
    """Rows whose documents take turns: as they come, neighbours share little."""
    return [
        {"custom_id": f"row-{i}", "document": f"document {i % n_documents}, " * 30,
         "question": f"what is {i}?", "label": i}
        for i in range(n)
    ]  # fmt: skip
