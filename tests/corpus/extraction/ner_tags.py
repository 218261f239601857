"""Named entities as tags word by word (B-PER, I-PER, O), merged into spans, with a second look."""

import sgc

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]

FEW_SHOT = """Tag every word with O, B-PER, I-PER, B-LOC or I-LOC.
Words: Anna flew to New York
Tags: B-PER O O B-LOC I-LOC

"""


def fix(tags, n):
    tags = [t if t in TAGS else "O" for t in tags[:n]]
    tags += ["O"] * (n - len(tags))
    for i, tag in enumerate(tags):
        before = tags[i - 1] if i else "O"
        if tag.startswith("I-") and before[2:] != tag[2:]:
            tags[i] = "B-" + tag[2:]
    return tags


def spans(words, tags):
    current = []
    kind = None
    for word, tag in zip(words + [""], tags + ["O"]):
        if tag.startswith("I-"):
            current.append(word)
            continue
        if current:
            yield kind, " ".join(current)
        current, kind = ([word], tag[2:]) if tag != "O" else ([], None)


@sgc.function
def program(s, sentences: list[str]):
    s += FEW_SHOT
    people, places = set(), set()
    repaired = 0
    for sentence in sentences:
        words = sentence.split()
        s += "Words: " + sentence + "\nTags:"
        s += sgc.gen("tags", max_tokens=4 * len(words) + 1, stop="\n") + "\n\n"
        given = s["tags"].split()
        tags = fix(given, len(words))
        if tags != given:
            repaired += 1
        for kind, text in spans(words, tags):
            (people if kind == "PER" else places).add(text)
    both = people & places
    for name in sorted(both):
        s += f"Is {name} a person or a place? " + sgc.select("which", ["person", "place"]) + "\n"
        (places if s["which"] == "person" else people).discard(name)
    return {"people": sorted(people), "places": sorted(places), "repaired": repaired}


ARGUMENTS = [
    {"sentences": ["Paris met Jack in Paris", "Sydney is far from London"]},
    {"sentences": []},
    {"sentences": ["", "Go"]},
]
REPLIES = [
    " B-PER O B-PER O B-LOC",
    " B-LOC O O O B-LOC",
    "B-PER I-PER O",
    "I-LOC O O X",
    "",
    "B-PER O B-LOC I-LOC I-PER",
]
