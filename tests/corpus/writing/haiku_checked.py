"""Writes a haiku; the syllables are counted, and each line has three tries to get 5, 7, 5."""

import sgc


def count_syllables(text):
    count = 0
    for word in text.lower().split():
        word = word.strip(".,;:!?")
        previous = False
        n = 0
        for ch in word:
            vowel = ch in "aeiouy"
            if vowel and not previous:
                n += 1
            previous = vowel
        if word.endswith("e") and n > 1:
            n -= 1
        count += max(n, 1)
    return count


@sgc.function(max_turns=4)
def program(s, season: str):
    s += "Write a haiku about " + season + ".\n"
    haiku = []
    for i, wanted in enumerate([5, 7, 5]):
        best = None
        best_off = 100
        tries = 0
        done = False
        while not done and tries < 3:
            tries += 1
            s += "Line " + str(i + 1) + " (" + str(wanted) + " syllables): "
            s += sgc.gen("line", max_tokens=20, stop="\n") + "\n"
            line = s["line"].strip()
            n = count_syllables(line)
            off = abs(n - wanted)
            if off == 0:
                done = True
            elif n > wanted:
                s += "Too long, " + str(n) + " syllables.\n"
            else:
                s += "Too short, " + str(n) + " syllables.\n"
            if off < best_off:
                best = line
                best_off = off
        haiku.append(best)
        if best_off > 0:
            print("could not get line", i + 1, "right, off by", best_off)
    text = " / ".join(haiku)
    s += text


ARGUMENTS = [{"season": "winter"}, {"season": ""}]
REPLIES = [
    "Snow on the old bridge",
    "the river goes on below without a word to us",
    "a crow waits on the cold branch",
    "silence",
    "nobody comes home",
]
