"""Best-of-n sampling with a verifier: n drafts, filtered by hard constraints, then ranked."""

import sgc

CONSTRAINTS = [
    ("has no digits", lambda t: not any(c.isdigit() for c in t)),
    ("is at most 12 words", lambda t: len(t.split()) <= 12),
    ("ends with a full stop", lambda t: t.endswith(".")),
]


def check(text):
    """The names of constraints that the text breaks."""
    return [name for name, ok in CONSTRAINTS if not ok(text)]


@sgc.function
def program(s, instruction: str, n: int = 5):
    s += sgc.user(
        instruction + " Rules: the text " + "; ".join(name for name, _ in CONSTRAINTS) + "."
    )
    s += sgc.assistant(sgc.gen("drafts", n=n, max_tokens=40, temperature=1.0))
    drafts = s["drafts"] if isinstance(s["drafts"], list) else [s["drafts"]]
    drafts = [d.strip() for d in drafts]

    broken = {d: check(d) for d in drafts}
    passing = [d for d in broken if not broken[d]]
    if not passing:
        # None is right: repair the one that is closest.
        closest = min(broken, key=lambda d: (len(broken[d]), len(d)))
        s += sgc.user(f"No draft passed. Repair this one ({', '.join(broken[closest])}): {closest}")
        s += sgc.assistant(sgc.gen("repaired", max_tokens=40))
        return s["repaired"].strip(), len(check(s["repaired"].strip())) == 0
    if len(passing) == 1:
        return passing[0], True

    scores = {}
    for f, draft in zip(s.fork(len(passing)), passing):
        f += sgc.user(f"Rate this from 0 to 9: {draft}")
        f += sgc.assistant(sgc.gen("score", regex="[0-9]"))
        scores[draft] = int(f["score"])
    winner = max(scores, key=scores.get)
    s += sgc.user(f"The winner ({scores[winner]} points): {winner}")
    return winner, True


ARGUMENTS = [
    {"instruction": "Describe the sea in one sentence."},
    {"instruction": "Say hello.", "n": 1},
]
REPLIES = [
    "The sea breathes.",
    "A blue that has no other side.",
    "71% of the earth",
    "The sea is wide and deep and cold and old and it never ever sleeps.",
    "Waves",
]
