"""The tree of the prompts of many requests: what they share, and how much of it was computed.

The radix tree of the engine is the same tree in tokens. Here it is in characters, since only the
engine has tokens: a part is assigned its prompt's tokens in proportion to its characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sgc.viewer.asked import Asked


@dataclass(slots=True)
class Part:
    """A part of prompts that all requests through it share. depth: characters up to its end;
    sample: a request that goes through it.
    """

    parent: int
    depth: int
    sample: int
    requests: int = 0
    tokens: float = 0.0
    computed: float = 0.0


@dataclass(frozen=True, slots=True)
class PromptTree:
    """parts: parents first, the root is number 0; ends: where each request's prompt ends."""

    parts: tuple[Part, ...]
    ends: tuple[int, ...]


def prompt_tree(requests: Sequence[Asked]) -> PromptTree:
    """The radix tree of the prompts, with sums of the requests through each of its parts."""
    order = sorted(range(len(requests)), key=lambda number: requests[number].prompt)
    parts = [Part(0, 0, 0)]
    ends = [0] * len(requests)
    path = [0]
    before = ""
    for number in order:
        prompt = requests[number].prompt
        _branch(parts, path, common_length(before, prompt))
        if len(prompt) > parts[path[-1]].depth:
            parts.append(Part(path[-1], len(prompt), number))
            path.append(len(parts) - 1)
        ends[number] = path[-1]
        before = prompt
    _count(parts, ends, requests)
    return _parents_first(parts, ends)


def _branch(parts: list[Part], path: list[int], depth: int) -> None:
    """Leaves the path up to a depth, and splits the part in which the depth lies."""
    last = None
    while parts[path[-1]].depth > depth:
        last = path.pop()
    if last is not None and parts[path[-1]].depth < depth:
        parts.append(Part(path[-1], depth, parts[last].sample))
        parts[last].parent = len(parts) - 1
        path.append(len(parts) - 1)


def common_length(one: str, other: str) -> int:
    """How many characters two texts have in common at their start."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _count(parts: list[Part], ends: list[int], requests: Sequence[Asked]) -> None:
    for number, end in enumerate(ends):
        asked = requests[number]
        usage, length = asked.usage, len(asked.prompt)
        is_counted = asked.is_spent and usage.prompt_tokens and length
        each = usage.prompt_tokens / length if is_counted else 0.0
        cached = length * usage.cached_tokens / usage.prompt_tokens if is_counted else 0.0
        part = end
        while part:
            found = parts[part]
            start = parts[found.parent].depth
            found.requests += 1
            found.tokens += each * (found.depth - start)
            found.computed += each * (found.depth - min(found.depth, max(start, cached)))
            part = found.parent
        parts[0].requests += 1


def _parents_first(parts: list[Part], ends: list[int]) -> PromptTree:
    """The same tree, numbered so that a part comes after its parent."""
    children: list[list[int]] = [[] for _ in parts]
    for number, part in enumerate(parts[1:], 1):
        children[part.parent].append(number)
    order = [0]
    for number in order:
        order += children[number]
    numbers = {old: new for new, old in enumerate(order)}
    moved = [parts[old] for old in order]
    for part in moved:
        part.parent = numbers[part.parent]
    return PromptTree(tuple(moved), tuple(numbers[end] for end in ends))
