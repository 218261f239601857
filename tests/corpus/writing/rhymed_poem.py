"""Writes a poem with a rhyme scheme; a line that does not rhyme is written again."""

import re
from collections import defaultdict

import sgc

VOWELS = "aeiouy"
RHYMES = {
    "ight": ["night", "light", "bright"],
    "ay": ["day", "way", "stay"],
    "ee": ["tree", "sea", "free"],
}


def rhyme_part(word):
    """From the last group of vowels on: 'light' -> 'ight'."""
    word = re.sub(r"[^a-z]", "", word.lower())
    i = len(word)
    while i > 0 and word[i - 1] not in VOWELS:
        i = i - 1
    while i > 0 and word[i - 1] in VOWELS:
        i = i - 1
    return word[i:]


def rhymes(a, b):
    return a != b and rhyme_part(a) == rhyme_part(b)


@sgc.function
def program(s, theme: str, scheme: str = "ABAB", tries: int = 2):
    s += "A poem about " + theme + "\n\n"
    ends = defaultdict(list)
    poem = []
    flaws = 0
    for letter in scheme:
        if letter == " ":
            poem.append("")
            s += "\n"
            continue
        for t in range(tries):
            s += sgc.gen("line", max_tokens=16, stop="\n") + "\n"
            words = s["line"].split()
            if not words:
                s += "(an empty line is no verse)\n"
                continue
            last = words[-1]
            partners = ends[letter]
            if not partners or any(rhymes(last, p) for p in partners):
                break
            part = rhyme_part(partners[0])
            ideas = RHYMES.get(part, [])
            s += (
                f"(must rhyme with {partners[0]}"
                + (f": {', '.join(ideas)}" if ideas else "")
                + ")\n"
            )
        else:
            flaws += 1
            if not words:
                continue
        ends[letter].append(words[-1])
        poem.append(" ".join(words))
    title = "Untitled"
    if poem:
        s += "\nTitle:" + sgc.gen("title", max_tokens=6, stop="\n")
        title = s["title"].strip().title() or title
    return {"title": title, "poem": poem, "flaws": flaws, "perfect": flaws == 0}


ARGUMENTS = [
    {"theme": "the sea"},
    {"theme": "autumn", "scheme": "AA BB"},
    {"theme": "nothing", "scheme": ""},
]
REPLIES = [
    "The moon came up that night",
    "and gave the waves its light",
    "I walked along the bay",
    "and wished that I could stay,",
    "",
    "Orange is a word",
]
