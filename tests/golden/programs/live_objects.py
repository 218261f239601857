"""Data that change while others have them: live objects, on which a run performs code; and calls
that they hold while these run."""

import sgc


@sgc.function
def mark(s, note: str):
    s += f"A mark for {note!r}:" + sgc.gen("mark", max_tokens=2, stop="\n")


@sgc.function
def live_objects(s, topics: list[str]):
    rows = [{"topic": topic, "notes": []} for topic in topics]
    for row in rows:
        s += f"{row['topic']}:" + sgc.gen("note", max_tokens=8, stop="\n") + "\n"
        row["notes"].append(s["note"])
        row["call"] = mark(s["note"])
    best = max(rows, key=lambda row: row["call"]["mark"])
    best["notes"].append("the best")
    s += f"The best topic is {best['topic']}."
    return [row["notes"] for row in rows]
