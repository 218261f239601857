"""Server logs: error lines are grouped by their pattern, each group gets a cause and a severity."""

import re
from collections import Counter, defaultdict

import sgc

LINE = re.compile(r"^(?P<time>\d\d:\d\d:\d\d) (?P<level>[A-Z]+) (?P<unit>[\w-]+): (?P<text>.*)$")
WEIGHTS = {"low": 1, "medium": 3, "high": 10}


def template(text: str) -> str:
    """Numbers and addresses do not matter."""
    text = re.sub(r"0x[0-9a-f]+", "<addr>", text)
    return re.sub(r"\d+", "<n>", text)


def parse(raw: str):
    for line in raw.splitlines():
        m = LINE.match(line)
        if m and m["level"] in ("ERROR", "FATAL"):
            yield m.groupdict()


@sgc.function
def program(s, raw: str, limit: int = 3):
    groups = defaultdict(list)
    for record in parse(raw):
        groups[template(record["text"])].append(record)
    if not groups:
        s += "No errors in the log."
        return []
    counts = Counter({pattern: len(records) for pattern, records in groups.items()})

    incidents = []
    for pattern, count in counts.most_common(limit):
        records = groups[pattern]
        units = sorted({r["unit"] for r in records})
        first, last = records[0], records[-1]
        s += "\n" + f"{count} x {pattern} in {', '.join(units)}"[:60].ljust(40, ".")
        s += f" ({first['time']} to {last['time']})\n" if count > 1 else f" at {first['time']}\n"
        s += "Severity: " + sgc.select("severity", choices=list(WEIGHTS)) + "\n"
        s += "Likely cause:" + sgc.gen("cause", max_tokens=24, stop="\n") + "\n"
        score = WEIGHTS[s["severity"]] * count
        incidents.append((score, pattern, s["cause"].strip()))
    incidents.sort(reverse=True)
    worst = incidents[0]
    if worst[0] >= 10:
        s += f"\nPage the engineer on duty ({worst[0]} points):"
        s += sgc.gen("page", max_tokens=32, stop="\n")
    return [{"score": a, "pattern": b, "cause": c} for a, b, c in incidents]


ARGUMENTS = [
    {
        "raw": "10:00:01 INFO web: started\n10:00:07 ERROR web: timeout after 30 s\n"
        "10:00:09 ERROR api: timeout after 31 s\nTraceback (most recent call last):\n"
        "10:02:00 FATAL db: cannot allocate at 0x7f3a"
    },
    {"raw": "no log at all"},
]
REPLIES = [" The network is slow.", " out of memory", "", " Restart the database."]
