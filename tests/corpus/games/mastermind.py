"""Mastermind: the model breaks a four-colour code with the feedback of black and white pegs."""

from collections import Counter

import sgc

COLORS = "RGBYOP"


def feedback(code: str, guess: str) -> tuple[int, int]:
    black = sum(c == g for c, g in zip(code, guess))
    both = sum((Counter(code) & Counter(guess)).values())
    return black, both - black


def parse(text: str, length: int) -> str | None:
    letters = [c for c in text.upper() if c in COLORS]
    if len(letters) != length:
        return None
    return "".join(letters)


@sgc.function
def program(s, code: str):
    s += f"Mastermind. Colours: {', '.join(COLORS)}. The code has {len(code)} pegs.\n"
    s += "How many tries do you need? " + sgc.gen("bid", regex="[1-6]") + "\n"
    board: list[tuple[str, int, int]] = []
    invalid = 0
    for t in range(1, int(s["bid"]) + 1):
        s += f"Try {t}: " + sgc.gen("guess", max_tokens=8, stop="\n")
        guess = parse(s["guess"], len(code))
        if guess is None:
            invalid += 1
            s += "\n(not a valid guess)\n"
            continue
        black, white = feedback(code, guess)
        board.append((guess, black, white))
        s += " -> " + "●" * black + "○" * white + "\n"
        if black == len(code):
            s += f"Cracked in {t}!"
            break
        if any(previous == guess for previous, *_ in board[:-1]):
            s += "Hint: you have tried this before.\n"
    else:
        closest = max(board, key=lambda row: (row[1], row[2]), default=("nothing", 0, 0))
        s += f"The code was {code}. Closest: {closest[0]}."
        return {"solved": False, "invalid": invalid, "closest": closest[1]}
    return {"solved": True, "invalid": invalid, "tries": t}


ARGUMENTS = [{"code": "RGBY"}, {"code": "OOPP"}, {"code": "R"}]
REPLIES = ["RGBY", "r g y b", "O O P P", "blue then red", "PPOO", "R"]
