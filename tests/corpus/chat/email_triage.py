"""Email triage: senders and subjects by rules, priority by the model, grouped into a digest."""

import re
from dataclasses import dataclass
from itertools import groupby

import sgc


@dataclass
class Email:
    sender: str
    subject: str
    body: str


ORDER = {"urgent": 0, "today": 1, "later": 2, "spam": 3}


def is_spam(email: Email) -> bool:
    return bool(re.search(r"(?i)winner|lottery|viagra", email.subject)) or email.sender.endswith(
        ".biz"
    )


@sgc.function
def program(s, emails: list[Email], me: str = "Sam"):
    sorted_mail = []
    for email in emails:
        if is_spam(email):
            sorted_mail.append(("spam", email.sender, ""))
            continue
        f = s.fork(1)[0]
        f += f"From: {email.sender}\nSubject: {email.subject}\n\n{email.body[:200]}\n\nPriority: "
        f += sgc.select("priority", choices=["urgent", "today", "later"])
        reply = ""
        if f["priority"] == "urgent":
            name = email.sender.split("@")[0].replace(".", " ").title()
            f += f"\nReply:\nDear {name},\n" + sgc.gen("reply", max_tokens=32, stop="Regards")
            reply = f"Dear {name},\n{f['reply'].strip()}\nRegards, {me}"
        sorted_mail.append((f["priority"], email.sender, reply))
    sorted_mail.sort(key=lambda m: (ORDER[m[0]], m[1]))
    lines = []
    for priority, group in groupby(sorted_mail, key=lambda m: m[0]):
        senders = [sender for _, sender, _ in group]
        lines.append(f"{priority.upper()} ({len(senders)}): {', '.join(senders)}")
    s += (
        "Digest:\n"
        + "\n".join(lines)
        + "\nOne line for "
        + me
        + ":"
        + sgc.gen("line", max_tokens=24)
    )
    return s["line"], lines, [m[2] for m in sorted_mail if m[2]]


ARGUMENTS = [
    {
        "emails": [
            Email("ann.lee@x.org", "Server down", "Please help."),
            Email("win@y.biz", "Hello", "..."),
            Email("bob@z.org", "Lunch?", "Friday?"),
        ]
    },
    {"emails": []},
]
REPLIES = ["I am on it. Regards", "A quiet day."]
