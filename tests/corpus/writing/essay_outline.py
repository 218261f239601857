"""Writes an essay from an outline: points, sections, and a conclusion that refers back."""

import sgc

LENGTHS = {"short": "[12]", "medium": "[23]", "long": "[45]"}


@sgc.function
def program(s, topic: str, stance: str, length: str = "medium"):
    s += sgc.system("You write clear essays.")
    s += sgc.user(f"An outline of a {length} essay on {topic}, {stance}. How many points?")
    s += sgc.assistant(sgc.gen("n", regex=LENGTHS.get(length, "[1-3]")))
    points = []
    for i in range(int(s["n"])):
        s += sgc.user(f"Point {i + 1}?")
        s += sgc.assistant(sgc.gen("point", max_tokens=24, stop="\n"))
        points.append(s["point"].strip().lstrip("-*0123456789. ") or f"The other side of {topic}")

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
    minutes, seconds = divmod(round(words * 0.3), 60)
    return {"essay": essay, "words": words, "reading_time": f"{minutes}:{seconds:02d}"}


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
