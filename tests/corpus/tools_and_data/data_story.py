"""Sales figures to a story: statistics in Python, a claim for each finding, claims are verified."""

import re
from statistics import mean, median, pstdev

import sgc


def describe(values: list[float]) -> dict[str, float]:
    return {
        "mean": round(mean(values), 1),
        "median": median(values),
        "spread": round(pstdev(values), 1),
        "growth": round(100 * (values[-1] / values[0] - 1), 1) if values[0] else 0.0,
    }


def outliers(values, limit=1.5):
    m, d = mean(values), pstdev(values)
    return [(i, v) for i, v in enumerate(values) if d and abs(v - m) / d > limit]


def numbers_in(text: str) -> set[float]:
    return {float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", text)}


@sgc.function
def program(s, series: dict[str, list[float]], months: list[str]):
    s += sgc.system("You write about figures. Use only numbers that you are given.")
    story = []
    for name, values in series.items():
        if len(values) < 2:
            s += sgc.user(f"{name}: too few values.")
            continue
        stats = describe(values)
        table = " ".join(f"{m}:{v:g}" for m, v in zip(months, values))
        facts = ", ".join(f"{k} {v:g}" for k, v in stats.items())
        with s.user():
            s += f"{name}: {table}\n"
            if stats["spread"]:
                s += facts
        s += sgc.assistant(sgc.gen("claim", max_tokens=48))
        allowed = set(values) | set(stats.values())
        wrong = numbers_in(s["claim"]) - allowed
        if wrong:
            s += sgc.user(f"Where does {', '.join(f'{w:g}' for w in sorted(wrong))} come from?")
            s += sgc.assistant(sgc.gen("claim", max_tokens=48))
        if not numbers_in(s["claim"]) <= allowed:
            trend = "rose" if stats["growth"] > 0 else "fell"
            story.append(f"{name} {trend} by {abs(stats['growth']):g} percent.")
        else:
            story.append(s["claim"].strip())
        for i, value in outliers(values):
            s += sgc.user(f"Explain {value:g} in {months[i]}.")
            s += sgc.assistant(sgc.gen("reason", max_tokens=32))
            story.append(f"({months[i]}: {s['reason'].strip()})")
    if len(story) > 1:
        s += sgc.user("A headline, please.")
        s += sgc.assistant(sgc.gen("headline", max_tokens=12))
        story.insert(0, s["headline"].strip().upper())
    return "\n".join(story)


ARGUMENTS = [
    {"series": {"tea": [10.0, 11.0, 12.0, 40.0], "jam": [5.0, 4.0]}, "months": list("JFMA")},
    {"series": {"new": [3.0], "flat": [2.0, 2.0]}, "months": ["Jan", "Feb"]},
    {"series": {}, "months": []},
]
REPLIES = ["Sales went up to 40.", "They doubled, by 200 percent.", "A steady year.", "A fair."]
