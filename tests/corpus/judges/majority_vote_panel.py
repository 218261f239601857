"""A panel of personas votes on whether a comment breaks the rules; the majority decides."""

from collections import Counter

import sgc

PERSONAS = {
    "lawyer": "You weigh every word for its legal meaning.",
    "teacher": "You care about how young readers would feel.",
    "comedian": "You know satire when you see it.",
    "moderator": "You have seen ten thousand comments like this.",
    "linguist": "You look at what is implied, not only at what is said.",
}
LABELS = ["allowed", "borderline", "removed"]


@sgc.function
def program(s, comment: str, rules: list[str], panel: list[str]):
    rulebook = ""
    for i, rule in enumerate(rules, 1):
        rulebook += f"  {i}. {rule}\n"
    if not rulebook:
        rulebook = "  (be kind)\n"

    votes = Counter()
    opinions = {}
    members = [p for p in panel if p in PERSONAS]
    for persona, f in zip(members, s.fork(len(members) or 1)):
        f += sgc.system(PERSONAS[persona])
        f += sgc.user(f"Community rules:\n{rulebook}\nComment: {comment!r}\n\nYour verdict?")
        f += sgc.assistant(
            sgc.select("label", choices=LABELS)
            + ", because "
            + sgc.gen("why", max_tokens=40, stop="\n")
        )
        votes[f["label"]] += 1
        opinions[persona] = f["why"]

    if not votes:
        return "no panel"
    label, count = votes.most_common(1)[0]
    tied = [name for name, n in votes.items() if n == count]
    if len(tied) > 1:
        # The mildest of the tied labels wins.
        label = min(tied, key=LABELS.index)
    elif count == len(members):
        s += "The panel was unanimous.\n"

    s += f"Verdict: {label} ({count} of {len(members)})\n"
    for persona, why in sorted(opinions.items()):
        s += f"- {persona.title()}: {why.strip().rstrip('.')}.\n"
    s += "Message to the user: " + sgc.gen("message", max_tokens=60, stop="\n\n")
    return label


ARGUMENTS = [
    {
        "comment": "Great, another genius who can't park.",
        "rules": ["No insults.", "Stay on topic."],
        "panel": ["lawyer", "comedian", "moderator"],
    },
    {"comment": "👍", "rules": [], "panel": []},
    {
        "comment": "Read the FAQ.",
        "rules": ["Be patient."],
        "panel": ["teacher", "robot", "linguist"],
    },
]
REPLIES = [
    "it is sarcasm aimed at a person.",
    "nobody is named",
    "the tone is rude, but within the rules.",
    "Please keep it friendly.\n\nThe moderators",
    "",
]
