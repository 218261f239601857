"""The tree of rows' prompts: how much keys have in common, and a depth-first order over them.

A key is a row's text as a tuple of pieces. Pieces that rows share are mostly the same objects, so
sorting keys costs far less than their characters; the tree is then read off the sorted keys and
what neighbours have in common, in linear time. If equal texts were cut differently, the tree
underestimates what is shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Key = tuple[str, ...]


def common_chars(a: Key, b: Key) -> int:
    """How many leading characters two keys have in common."""
    n_chars = 0
    for one, other in zip(a, b, strict=False):
        if one is not other and one != other:
            return n_chars + _common(one, other)
        n_chars += len(one)
    return n_chars


def _common(a: str, b: str) -> int:
    """The length of the common beginning of two different texts; compares each part once."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def n_chars(key: Key) -> int:
    return sum(map(len, key))


def saved_chars(keys: Sequence[Key]) -> int:
    """The characters that are not computed again: those of all keys less those of the tree."""
    return sum(common_chars(a, b) for a, b in pairwise(sorted(keys)))


@dataclass(slots=True)
class _Node:
    """An inner node of the tree. first: the arrival of its first row; children: rows or nodes."""

    depth: int
    first: int
    children: list[_Node | int] = field(default_factory=list)

    def add(self, child: _Node | int) -> None:
        self.children.append(child)
        self.first = min(self.first, _first(child))


def depth_first(keys: Sequence[Key]) -> list[int]:
    """Indices of keys, depth first through their tree; siblings in the order of arrival."""
    if not keys:
        return []
    by_text = sorted(range(len(keys)), key=keys.__getitem__)
    depths = [common_chars(keys[a], keys[b]) for a, b in pairwise(by_text)]
    return list(_rows(_tree(by_text, depths)))


def _tree(rows: Sequence[int], depths: Sequence[int]) -> _Node:
    """rows: sorted by key; depths: what each, from the second on, shares with the one before."""
    stack = [_Node(0, rows[0], [rows[0]])]
    for row, depth in zip(rows[1:], depths, strict=True):
        top = stack[-1]
        if depth > top.depth:  # the row before is the first of a new node
            last = top.children.pop()
            stack.append(_Node(depth, _first(last), [last]))
        while depth < stack[-1].depth:
            done = stack.pop()
            if stack[-1].depth < depth:
                stack.append(_Node(depth, done.first))
            stack[-1].add(done)
        stack[-1].add(row)
    while len(stack) > 1:
        done = stack.pop()
        stack[-1].add(done)
    return stack[0]


def _first(child: _Node | int) -> int:
    return child if isinstance(child, int) else child.first


def _rows(root: _Node) -> Iterator[int]:
    stack: list[_Node | int] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, int):
            yield node
        else:
            stack += sorted(node.children, key=_first, reverse=True)
