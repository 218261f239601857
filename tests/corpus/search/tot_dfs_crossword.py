"""Tree of Thoughts, depth first: fills a mini crossword, with backtracking."""

import re

import sgc

Grid = dict[str, str]

# which letter of which answer has to agree with which letter of which other one
CROSSINGS = {
    ("a1", 0, "d1", 0),
    ("a2", 0, "d1", 1),
    ("a3", 0, "d1", 2),
}
MAX_CALLS = 12


def consistent(grid: Grid) -> bool:
    for one, i, other, j in CROSSINGS:
        if one in grid and other in grid and grid[one][i] != grid[other][j]:
            return False
    return True


def words(text: str, length: int = 3) -> list[str]:
    found = re.findall(r"[a-z]+", text.lower())
    return list(dict.fromkeys(w for w in found if len(w) == length))


@sgc.function
def candidates(s, clue: str, grid: Grid):
    filled = ", ".join(f"{k}={v}" for k, v in sorted(grid.items())) or "nothing"
    s += f"Three-letter crossword.\nFilled: {filled}\nClue: {clue}\nCandidates, best first:"
    s += sgc.gen("words", max_tokens=24, stop="\n")
    return words(s["words"])


@sgc.function
def program(s, clues: dict[str, str]):
    calls = 0

    def solve(todo: list[str], grid: Grid) -> Grid | None:
        nonlocal calls
        if not todo:
            return grid
        if calls >= MAX_CALLS:
            return None
        key, *rest = todo
        calls += 1
        for word in candidates(clues[key], grid).ret_value[:2]:
            extended = {**grid, key: word}
            if not consistent(extended):
                continue
            if (solution := solve(rest, extended)) is not None:
                return solution
        return None

    solution = solve(sorted(clues), {})
    if solution is None:
        s += "The crossword is too hard. An easier clue for " + next(iter(clues), "it") + ":"
        s += sgc.gen("easier", max_tokens=16, stop="\n")
        return {"solved": False, "calls": calls}
    rows = [" ".join(solution[k].upper()) for k in sorted(solution) if k.startswith("a")]
    s += "\n".join(rows)
    return {"solved": True, "calls": calls, "grid": solution}


ARGUMENTS = [
    {
        "clues": {
            "a1": "A pet that purrs",
            "a2": "A large primate",
            "a3": "Used to write",
            "d1": "A hat",
        }
    },
    {"clues": {"a1": "Frozen water"}},
    {"clues": {}},
]
REPLIES = [" cat, cot, cup", " ape", " pen, pad", " cap", " a word", " ice or cap"]
