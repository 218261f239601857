"""Labels support tickets in one numbered list; what the model left out is asked again."""

import re

import sgc

LABELS = {"billing", "bug", "account", "other"}


@sgc.function
def program(s, tickets: list[str]):
    s += "Label each ticket with one of: " + ", ".join(sorted(LABELS)) + ".\n"
    for i, ticket in enumerate(tickets):
        s += f"{i + 1}. {ticket[:80]}\n"
    s += "\nLabels:\n1:" + sgc.gen("labels", max_tokens=100, stop="\n\n") + "\n"

    result = [None] * len(tickets)
    for number, label in re.findall(r"(\d+)\s*[:.)-]\s*(\w+)", "1:" + s["labels"]):
        index = int(number) - 1
        if index < len(tickets) and label.lower() in LABELS:
            result[index] = label.lower()

    asked_again = 0
    for i in range(len(tickets)):
        if result[i] is None:
            asked_again += 1
            s += f"You left out number {i + 1} ({tickets[i]}): "
            s += sgc.select("label", choices=sorted(LABELS)) + "\n"
            result[i] = s["label"]

    counts = {label: result.count(label) for label in sorted(LABELS)}
    busiest = max(counts, key=counts.get)
    print("busiest:", busiest, "asked again:", asked_again)
    if counts[busiest] > len(tickets) / 2:
        s += f"Most tickets are about {busiest}. Why could that be?" + sgc.gen("why", max_tokens=40)
    return result


ARGUMENTS = [
    {"tickets": ["I was charged twice", "App crashes on start", "Change my e-mail", "Hi!"]},
    {"tickets": ["???"]},
    {"tickets": []},
]
REPLIES = [
    " billing\n2: bug\n3: account",
    " Bug",
    " none\n2. other\n9. bug",
    "",
    " refund 2) billing",
]
