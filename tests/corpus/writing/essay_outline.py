"""Writes an essay from an outline: points, sections, and a conclusion that refers back."""

import sgc

LENGTHS = {"short": 2, "medium": 3, "long": 5}


@sgc.function
def program(s, topic: str, stance: str, length: str = "medium"):
    n = LENGTHS.get(length, 3)
    s += sgc.system("You write clear essays.")
    s += sgc.user(f"Outline an essay on {topic}, {stance}. {n} points, one a line.")
    s += sgc.assistant(sgc.gen("outline", max_tokens=80))

    points = []
    for line in s["outline"].splitlines():
        line = line.strip().lstrip("-*0123456789. ")
        if line:
            points.append(line)
    points = points[:n]
    while len(points) < min(2, n):
        s += sgc.user("That is not enough. One more point:")
        s += sgc.assistant(sgc.gen("extra", max_tokens=24, stop="\n"))
        points.append(s["extra"].strip() or f"The other side of {topic}")

    sections = []
    for i, point in enumerate(points, 1):
        previous = sections[-1][-80:] if sections else "(this is the first section)"
        s += sgc.user(f"Section {i} of {len(points)}: {point}\nIt follows on: {previous}")
        s += sgc.assistant(sgc.gen("section", max_tokens=160))
        sections.append(s["section"].strip())

    s += sgc.user("A conclusion that refers to " + " and ".join(p.lower() for p in points) + ".")
    s += sgc.assistant(sgc.gen("conclusion", max_tokens=80))
    essay = "\n\n".join([topic.title(), *sections, s["conclusion"].strip()])
    words = len(essay.split())
    return {"essay": essay, "words": words, "reading_minutes": max(1, round(words / 200))}


ARGUMENTS = [
    {"topic": "free buses", "stance": "in favour", "length": "short"},
    {"topic": "zoos", "stance": "against"},
    {"topic": "", "stance": "", "length": "endless"},
]
REPLIES = [
    "1. They save money\n2. They save the air\n3. They are fair",
    "- Animals need space\n\n* Children learn elsewhere",
    "It is simple: who pays nothing, rides more.",
    "",
    "One point only",
]
