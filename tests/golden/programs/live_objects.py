"""Data that change while others have them: live objects, on which a run performs code."""

import sgc


@sgc.function
def live_objects(s, topics: list[str]):
    rows = [{"topic": topic, "notes": []} for topic in topics]
    for row in rows:
        s += f"{row['topic']}:" + sgc.gen("note", max_tokens=8, stop="\n") + "\n"
        row["notes"].append(s["note"])
    best = max(rows, key=lambda row: len(row["notes"][0]))
    best["notes"].append("the longest")
    s += f"The best topic is {best['topic']}."
    return rows
