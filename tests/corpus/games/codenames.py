"""Codenames: words on a board in sets, clue parsing by named groups, guesses removed with del."""

import re

import sgc

TEAM = {"apple": "red", "river": "blue", "stone": "red", "cloud": "blue", "knife": "black"}
CLUE = re.compile(r"^\s*(?P<word>[a-z]+)\s*[:,]?\s*(?P<count>\d)", re.IGNORECASE)


@sgc.function
def program(s, turns: int = 2):
    board = dict(TEAM)
    log = []
    for turn in range(turns):
        s += f"Board: {', '.join(board)}\nClue:" + sgc.gen("clue", max_tokens=8, stop="\n") + "\n"
        if not (m := CLUE.search(s["clue"])):
            log.append("bad clue")
            continue
        clue = m.groupdict()
        n = min(int(clue["count"]), 2)
        if clue["word"].lower() in board:
            log.append("clue is on the board")
            continue
        for _ in range(n):
            s += f"Guess for {clue['word']}: " + sgc.gen("guess", max_tokens=6, stop="\n") + "\n"
            guess = s["guess"].strip().lower()
            if guess not in board:
                log.append(f"no card {guess}")
                break
            colour = board[guess]
            del board[guess]
            log.append(f"{guess} is {colour}")
            if colour != "red":
                break
        if "knife" not in board:
            return "lost", log
        if "red" not in board.values():
            return "won", log
    return "open", log


ARGUMENTS = [{}, {"turns": 1}]
REPLIES = ["fruit 1", " Hard: 2", "apple", "stone", "knife", "cloud", "?", "river 2"]
