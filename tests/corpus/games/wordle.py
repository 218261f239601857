"""Wordle: five-letter guesses with coloured feedback and a count of the words that are left."""

import sgc

WORDS = ["crane", "slate", "stare", "trace", "react", "caret", "crate", "grape", "llama", "allay"]
GREEN, YELLOW, GREY = "G", "Y", "-"


def color(secret, guess):
    marks = [GREY] * len(secret)
    left = []
    for i, (x, y) in enumerate(zip(secret, guess)):
        if x == y:
            marks[i] = GREEN
        else:
            left.append(x)
    for i, y in enumerate(guess):
        if marks[i] == GREY and y in left:
            marks[i] = YELLOW
            left.remove(y)
    return "".join(marks)


def candidates(clues):
    return [w for w in WORDS if all(color(w, g) == c for g, c in clues)]


@sgc.function(max_turns=6)
def program(s, secret: str, hints: bool = True):
    s += sgc.user("Let us play Wordle. Reply with a five-letter word only.")
    clues = []
    refused = 0
    while len(clues) < 6 and refused < 3:
        s += sgc.assistant(sgc.gen("guess", max_tokens=4))
        guess = s["guess"].strip().lower()
        if len(guess) != 5 or not guess.isalpha():
            refused += 1
            s += sgc.user(f"{guess!r} is not a five-letter word.")
            continue
        marks = color(secret, guess)
        clues.append((guess, marks))
        if marks == GREEN * 5:
            share = "\n".join(m for _, m in clues)
            s += sgc.user("Yes!\n" + share)
            return len(clues)
        message = f"{guess.upper()}\n{marks}"
        if hints:
            left = candidates(clues)
            message += f"\n{len(left)} words are left"
            if len(left) <= 3:
                message += f" ({', '.join(left) or 'none that I know'})"
        s += sgc.user(message)
    return -1


ARGUMENTS = [{"secret": "crate"}, {"secret": "llama", "hints": False}, {"secret": "zesty"}]
REPLIES = ["crane", " Slate", "trace", "crate", "allay", "I give up", "llama"]
