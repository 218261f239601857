"""A memory of facts by topic: nested defaultdicts, counters of mentions, recall by topic."""

from collections import Counter, defaultdict

import sgc


@sgc.function
def program(s, notes: list[str], question: str):
    memory = defaultdict(lambda: defaultdict(list))
    mentions = Counter()
    for note in notes:
        f = s.fork(1)[0]
        f += f"Note: {note}\nTopic: " + sgc.select("topic", choices=["work", "home", "health"])
        f += "\nPerson:" + sgc.gen("person", max_tokens=6, stop="\n")
        person = f["person"].strip().title() or "Nobody"
        memory[f["topic"]][person].append(note)
        mentions[person] += 1
        mentions.update(w for w in note.split() if w.istitle() and w != person)
    s += f"Question: {question}\nTopic: " + sgc.select("topic", choices=["work", "home", "health"])
    people = memory[s["topic"]]
    if not people:
        s += "\nI know nothing of that. " + sgc.gen("answer", max_tokens=24)
        return s["answer"], 0
    lines = []
    for person, facts in sorted(people.items(), key=lambda kv: (-len(kv[1]), kv[0])):
        lines.append(f"{person} ({mentions[person]}): " + " / ".join(facts))
    s += "\n" + "\n".join(lines) + "\nAnswer:" + sgc.gen("answer", max_tokens=24)
    return s["answer"], sum(len(facts) for facts in people.values())


ARGUMENTS = [
    {"notes": ["Ann likes tea", "Bob fixes the roof", "Meet Ann on Monday"], "question": "Who?"},
    {"notes": [], "question": "What?"},
]
REPLIES = ["Ann", " bob", "", "It is Ann."]
