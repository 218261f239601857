"""Labels support tickets in numbered batches; what the model skipped or made up is asked again."""

import re

import sgc

LABELS = {"billing", "bug", "account", "other"}
LINE = re.compile(r"^\s*(\d+)\s*[:.)-]\s*(\w+)", re.MULTILINE)


def batched(xs, n):
    batch = []
    for x in xs:
        batch.append(x)
        if len(batch) == n:
            yield batch
            batch = []
    if batch:
        yield batch


def parse(text, n):
    """{index: label}, without lines that are out of range or have unknown labels."""
    labels = {}
    for number, label in LINE.findall(text):
        i = int(number) - 1
        if 0 <= i < n and label.lower() in LABELS:
            labels[i] = label.lower()
    return labels


@sgc.function
def label_batch(s, tickets: list[str]):
    listing = "\n".join(f"{i}. {t[:80]}" for i, t in enumerate(tickets, 1))
    s += sgc.user(f"Label each ticket with one of: {', '.join(sorted(LABELS))}.\n{listing}")
    s += sgc.assistant("1:" + sgc.gen("labels", max_tokens=16 * len(tickets)))
    found = parse("1:" + s["labels"], len(tickets))
    missing = [i for i in range(len(tickets)) if i not in found]
    for i in missing:
        s += sgc.user(f"You left out number {i + 1}: {tickets[i]}")
        s += sgc.assistant(sgc.select("label", choices=sorted(LABELS)))
        found[i] = s["label"]
    return [found[i] for i in range(len(tickets))], len(missing)


@sgc.function
def program(s, tickets: list[str], batch_size: int = 3):
    labels, repaired = [], 0
    for batch in batched(tickets, batch_size):
        got, n = label_batch(batch).ret_value
        labels.extend(got)
        repaired += n
    counts = {label: labels.count(label) for label in LABELS if label in labels}
    s += "\n".join(
        f"{k:<10}{v:>3}" for k, v in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
    )
    if repaired > len(tickets) / 2:
        s += "\nThe prompt seems unclear. Suggest a better one:" + sgc.gen("prompt", max_tokens=40)
    return list(zip(tickets, labels))


ARGUMENTS = [
    {"tickets": ["I was charged twice", "App crashes on start", "Change my e-mail", "Hi!"]},
    {"tickets": ["???"], "batch_size": 1},
    {"tickets": []},
]
REPLIES = [
    " billing\n2: bug\n3: account",
    " Bug",
    " none\n2. other\n9. bug",
    "",
    " refund 2) billing",
]
