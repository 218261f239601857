"""Writes a regular expression from examples; every failing example is shown until all pass."""

import re

import sgc


@sgc.tool(effect="pure")
def compile_check(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as e:
        return f"{e.msg} at {e.pos}"
    if len(pattern) > 60:
        return "too long"
    return ""


def failures(pattern: str, positive: list[str], negative: list[str]) -> list[str]:
    wrong = [f"should match {p!r}" for p in positive if not re.fullmatch(pattern, p)]
    wrong += [f"should not match {n!r}" for n in negative if re.fullmatch(pattern, n)]
    return wrong


@sgc.function
def program(s, what: str, positive: list[str], negative: list[str]):
    s += f"A Python regular expression for {what}.\n"
    s += "".join(f"+ {p}\n" for p in positive) + "".join(f"- {n}\n" for n in negative)
    best = None
    fewest = len(positive) + len(negative) + 1
    s += "Attempts that it takes (2-5): " + sgc.gen("n", regex="[2-5]") + "\n"
    for turn in range(int(s["n"])):
        s += "Pattern: " + sgc.gen("patterns", n=2, max_tokens=32, stop="\n") + "\n"
        tidy = [p.strip().strip("`/") for p in s["patterns"]]
        pattern = next((p for p in tidy if not compile_check(p)), tidy[0])
        if error := compile_check(pattern):
            s += f"It does not compile: {error}\n"
            continue
        wrong = failures(pattern, positive, negative)
        if len(wrong) < fewest:
            best, fewest = pattern, len(wrong)
        if not wrong:
            break
        shown = wrong[:2]
        s += "Wrong: " + ", ".join(shown)
        s += f" and {len(wrong) - len(shown)} more\n" if len(wrong) > 2 else "\n"
        if turn == 1:
            s += "Think about it:" + sgc.gen("thought", max_tokens=40, stop="\n") + "\n"
    if best is None:
        raise RuntimeError("no pattern compiled")
    if fewest:
        return best, f"{fewest} examples fail"
    s += "In words:" + sgc.gen("words", max_tokens=32, stop="\n")
    return best, s["words"].strip()


ARGUMENTS = [
    {"what": "times", "positive": ["08:15", "23:59"], "negative": ["8:15", "25:00", "0815"]},
    {"what": "nothing", "positive": [], "negative": []},
]
REPLIES = [
    r"([01]\d|2[0-3]):[0-5]\d",
    r"`\d\d:\d\d`",
    r"(\d+",
    r".*",
    "0" * 61,
    " Hours end at 23.",
]
