"""Graph of Thoughts: sorts a list by splitting, sorting the parts, merging, counting errors."""

import re
from collections import Counter
from functools import reduce

import sgc


def numbers(text: str) -> list[int]:
    return [int(x) for x in re.findall(r"\d+", text)]


def errors(result: list[int], original: list[int]) -> int:
    """Inversions between neighbours, and the numbers that are missing or too many."""
    inversions = sum(a > b for a, b in zip(result, result[1:]))
    a, b = Counter(result), Counter(original)
    return inversions + (a - b).total() + (b - a).total()


def chunks(xs, size):
    for i in range(0, len(xs), size):
        yield xs[i : i + size]


@sgc.function
def sort_part(s, part: list[int]):
    s += f"Sort in ascending order. Output only the list.\nInput: {part}\nOutput: ["
    s += sgc.gen("sorted", n=3, max_tokens=48, stop="]")
    return min((numbers(t) for t in s["sorted"]), key=lambda r: errors(r, part))


@sgc.function
def merge(s, left: list[int], right: list[int]):
    s += f"Merge the sorted lists into one.\n1: {left}\n2: {right}\nMerged: ["
    s += sgc.gen("merged", max_tokens=96, stop="]")
    merged = numbers(s["merged"])
    if errors(merged, left + right) > 2:
        s += "]\nThat has errors. Try again: [" + sgc.gen("again", max_tokens=96, stop="]")
        merged = min(merged, numbers(s["again"]), key=lambda r: errors(r, left + right))
    return merged


@sgc.function
def program(s, values: list[int], chunk: int = 3):
    parts = [sort_part(c).ret_value for c in chunks(values, chunk)]
    result = reduce(lambda a, b: merge(a, b).ret_value, parts) if parts else []
    n = errors(result, values)
    s += f"Input: {values}\nResult: {result}\n"
    if n:
        s += f"There are {n} errors. Corrected: [" + sgc.gen("fixed", max_tokens=96, stop="]")
        fixed = numbers(s["fixed"])
        if errors(fixed, values) < n:
            return fixed, errors(fixed, values)
    return result, n


ARGUMENTS = [
    {"values": [3, 1, 2, 9, 7, 8], "chunk": 3},
    {"values": [5, 4], "chunk": 2},
    {"values": []},
]
REPLIES = ["1, 2, 3]", "7, 8, 9]", "1, 2, 3, 7, 8, 9]", "3 1 2", "4, 5", "none"]
