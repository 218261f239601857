"""The radix tree of the prefix cache: it maps token ids to pages, one page per token.

It knows nothing of the page pool (`pool.py`) or of requests; `cache.py` joins the three. A key is a
namespace (tenant salt, adapter) and a run of tokens. A node holds a run of tokens and their pages.
A node in use is locked, and so are all its ancestors.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sgc.runtime.engine.ints import ITEM_BYTES, NO_INTS, Ints, common_prefix

EVICT_FIRST = 0  # a stamp before all others
NO_STATE = -1
_MIN_ROOTS = 64


class Node:
    """A run of tokens below its parent; `locks` counts the users of the node and of its subtree.

    data: the memory of `tokens` as bytes, so that a whole run is compared in one call. state: the
    slot of a snapshot of recurrent layers after its last token (`states.py`).
    """

    __slots__ = (
        "children", "data", "locks", "pages", "parent", "queued", "stamp", "state", "tokens",
    )  # fmt: skip

    def __init__(self, tokens: Ints, pages: Ints, parent: Node | None) -> None:
        self.set_tokens(tokens)
        self.pages = pages
        self.parent = parent
        self.children: dict[int, Node] = {}
        self.locks = 0
        self.stamp = 0
        self.queued: int | None = None  # the stamp of its entry in the eviction heap
        self.state = NO_STATE

    def set_tokens(self, tokens: Ints) -> None:
        """Stores a copy of the tokens."""
        self.data = tokens.tobytes()
        self.tokens: Ints = np.frombuffer(self.data, np.int64)

    def __len__(self) -> int:
        return len(self.tokens)


class _Root(Node):
    """The beginning of all sequences of a namespace."""

    __slots__ = ("namespace",)

    def __init__(self, namespace: bytes) -> None:
        super().__init__(NO_INTS, NO_INTS, None)
        self.namespace = namespace


@dataclass(frozen=True, slots=True)
class Path:
    """What lies between a root and a node's end."""

    namespace: bytes
    tokens: Ints
    pages: Ints


@dataclass(frozen=True, slots=True)
class Match:
    """The longest cached prefix: `length` tokens; it ends `used` tokens into `node`. n_found: the
    number of cached tokens, if a request cannot continue from all of them (`states.py`)."""

    node: Node
    used: int
    length: int
    n_found: int = 0

    @property
    def at_end(self) -> bool:
        """Whether the match ends where the node ends."""
        return self.used == len(self.node.tokens)


@dataclass(frozen=True, slots=True)
class Inserted:
    """node: where the inserted run ends. pages: the tree's pages for the run: the given ones,
    except where the tree already had the tokens."""

    node: Node
    pages: Ints


class RadixTree:
    """Longest-prefix match, insertion, locks, and eviction of the least recently used leaves.

    before_evicting: called with a node and the number of its last tokens that are about to be
    evicted. on_cut: called with a node that loses its last tokens.
    """

    def __init__(self) -> None:
        self.before_evicting: Callable[[RadixTree, Node, int], None] | None = None
        self.on_cut: Callable[[Node], None] | None = None
        self._roots: dict[bytes, _Root] = {}
        self._heap: list[tuple[int, int, Node]] = []  # stamp, tie break, leaf
        self._pushes = self._n_stale = 0
        self._max_roots = _MIN_ROOTS  # at this number, empty unlocked roots are dropped
        self._clock = 0
        self.n_tokens = 0
        self.n_evictable = 0

    def root(self, namespace: bytes = b"") -> Node:
        root = self._roots.get(namespace)
        if root is None:
            if len(self._roots) >= self._max_roots:
                self._roots = {n: r for n, r in self._roots.items() if r.locks or r.children}
                self._max_roots = 2 * len(self._roots) + _MIN_ROOTS
            root = self._roots[namespace] = _Root(namespace)
        return root

    def match(self, tokens: Ints, under: Node) -> Match:
        """The longest prefix of `tokens` below `under`. Changes nothing."""
        node, length, n_tokens = under, 0, len(tokens)
        data = tokens.tobytes()
        while length < n_tokens:
            child = node.children.get(tokens.item(length))
            if child is None:
                break
            n_run = len(child.tokens)
            if not data.startswith(child.data, length * ITEM_BYTES):
                n = common_prefix(child.tokens, tokens[length : length + n_run])
                return Match(child, n, length + n)
            length += n_run
            node = child
        return Match(node, len(node.tokens), length)

    def following(self, tokens: Ints, under: Node, n: int) -> Ints:
        """Up to `n` tokens that follow `tokens` on a path below `under`; where paths part, those of
        the newest. Changes nothing."""
        match = self.match(tokens, under)
        if match.length < len(tokens):
            return NO_INTS
        node, found = match.node, match.node.tokens[match.used : match.used + n]
        while len(found) < n and node.children:
            node = next(reversed(node.children.values()))
            found = np.concatenate([found, node.tokens[: n - len(found)]])
        return found

    def lock(self, match: Match) -> Node:
        """Protects a match from eviction; splits its last node where the match ends inside."""
        node = match.node if match.at_end else self._split(match.node, match.used)
        self._lock_until(node, None)
        return node

    def move_lock(self, node: Node, below: Node) -> None:
        """Moves one lock from `node` down to its descendant `below`."""
        self._lock_until(below, node)

    def unlock(self, node: Node) -> None:
        """Takes one lock back from the node and its ancestors."""
        self._clock += 1
        step: Node | None = node
        while step is not None:
            assert step.locks > 0, "unlocked more often than locked"
            step.locks -= 1
            step.stamp = self._clock
            if step.locks == 0:
                self.n_evictable += len(step.tokens)
                self._queue_if_evictable(step)
            step = step.parent

    def insert(self, tokens: Ints, pages: Ints, under: Node) -> Inserted:
        """Adds a run below `under`, which must be in the tree: a root, or locked by the caller, or
        found since the last eviction.

        A node is split where the run ends or departs from it. The caller keeps the pages of tokens
        that the tree already has; `Inserted.pages` shows which.
        """
        assert len(tokens) == len(pages)
        self._clock += 1
        node, at, held = under, 0, [NO_INTS]
        while at < len(tokens):
            child = node.children.get(tokens.item(at))
            if child is None:
                child = self._add_leaf(node, tokens[at:], pages[at:].copy())
                if at == 0:  # the whole run is new, which is the usual case
                    self._touch(child)
                    return Inserted(child, pages)
            else:
                n = common_prefix(child.tokens, tokens[at : at + len(child)])
                child = child if n == len(child) else self._split(child, n)
            held.append(child.pages)
            at += len(child)
            node = child
        self._touch(node)
        return Inserted(node, np.concatenate(held))

    def demote(self, node: Node, n_kept: int) -> None:
        """Marks the path to the node's end, after its first `n_kept` tokens, to be evicted first.
        It stops at a node that is locked or has a child not so marked."""
        end = self.length(node)
        step = node
        while step.parent is not None and end > n_kept and self._is_done_with(step):
            start = end - len(step)
            if start < n_kept:
                self._split(step, n_kept - start)
            step.stamp = EVICT_FIRST
            self._queue_if_evictable(step)
            step, end = step.parent, start

    def length(self, node: Node) -> int:
        """The number of tokens from the root to the node's end."""
        n, step = 0, node
        while step.parent is not None:
            n += len(step.tokens)
            step = step.parent
        return n

    def path_pages(self, node: Node) -> Ints:
        """The pages from the root to the node's end."""
        return np.concatenate([step.pages for step in _from_root(node)])

    def path(self, node: Node) -> Path:
        """The path from the root to the node's end."""
        steps = _from_root(node)
        root = steps[0]
        assert isinstance(root, _Root)
        tokens, pages = ([getattr(step, name) for step in steps] for name in ("tokens", "pages"))
        return Path(root.namespace, np.concatenate(tokens), np.concatenate(pages))

    @property
    def clock(self) -> int:
        """Grows with every use; a node's stamp is the clock at its last use."""
        return self._clock

    def evict(self, n: int, until: int | None = None, tells: bool = True) -> Ints:
        """Removes up to `n` unlocked tokens from the ends of leaves, least recently used first.

        Returns their pages. A leaf is shortened when not all of its tokens are needed. until:
        nothing used after this clock value is removed. tells: whether `before_evicting` is called.
        """
        taken = [NO_INTS]
        while n > 0 and self._heap:
            if until is not None and self._heap[0][0] > until:
                break
            stamp, _, node = heapq.heappop(self._heap)
            if stamp != node.queued:  # it was queued again with an earlier stamp
                self._n_stale -= 1
                continue
            node.queued = None
            if stamp != node.stamp or not self._is_evictable(node):
                self._queue_if_evictable(node)
                continue
            k = min(n, len(node))
            if tells and self.before_evicting is not None:
                self.before_evicting(self, node, k)
            taken.append(node.pages[len(node) - k :])
            self._shorten(node, k)
            n -= k
        return np.concatenate(taken)

    def nodes(self) -> Iterator[Node]:
        stack: list[Node] = list(self._roots.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def all_pages(self) -> Ints:
        return np.concatenate([NO_INTS, *(node.pages for node in self.nodes())])

    def check(self) -> None:
        """Verifies every invariant; for tests and the worker's `check` option."""
        n_tokens = n_evictable = 0
        in_order = [id(node) for stamp, _, node in self._heap if stamp == node.queued]
        queued = set(in_order)
        assert len(queued) == len(in_order), "a node is queued twice"
        for node in self.nodes():
            n_tokens += len(node)
            n_evictable += len(node) if node.locks == 0 else 0
            assert len(node.tokens) == len(node.pages)
            assert node.parent is None or len(node) > 0, "an empty node"
            assert node.locks >= sum(c.locks for c in node.children.values()) >= 0
            assert (node.queued is not None) == (id(node) in queued)
            if self._is_evictable(node):
                assert node.queued is not None, "an evictable leaf is not queued"
                assert node.queued <= node.stamp, "a leaf is queued too late"
            for key, child in node.children.items():
                assert child.parent is node
                assert key == child.tokens[0]
                assert node.parent is None or node.stamp >= child.stamp, (
                    "a child outlives its parent"
                )
        assert len(queued) == len(self._heap) - self._n_stale
        assert n_tokens == self.n_tokens
        assert n_evictable == self.n_evictable
        pages = self.all_pages()
        assert np.bincount(pages, minlength=1).max() <= 1, "a page is in the tree twice"

    def _lock_until(self, node: Node, stop: Node | None) -> None:
        self._clock += 1
        step: Node | None = node
        while step is not stop:
            assert step is not None, "not a descendant of the locked node"
            if step.locks == 0:
                self.n_evictable -= len(step.tokens)
            step.locks += 1
            step.stamp = self._clock
            step = step.parent
        if step is not None:  # already locked: only its stamp changes
            self._touch(step)

    def _add_leaf(self, parent: Node, tokens: Ints, pages: Ints) -> Node:
        leaf = Node(tokens, pages, parent)
        leaf.stamp = self._clock
        parent.children[tokens.item(0)] = leaf
        self.n_tokens += len(leaf)
        self.n_evictable += len(leaf)
        self._queue_if_evictable(leaf)
        return leaf

    def _touch(self, node: Node) -> None:
        step: Node | None = node
        while step is not None:
            step.stamp = self._clock
            step = step.parent

    def _split(self, node: Node, at: int) -> Node:
        """Cuts a node in two and returns the new upper part. The old object becomes the lower part,
        so that locks on the node's end stay valid."""
        assert node.parent is not None
        assert 0 < at < len(node)
        upper = Node(node.tokens[:at], node.pages[:at], node.parent)
        upper.locks, upper.stamp = node.locks, node.stamp
        upper.children[int(node.tokens[at])] = node
        node.parent.children[int(node.tokens[0])] = upper
        node.set_tokens(node.tokens[at:])
        node.pages, node.parent = node.pages[at:], upper
        return upper

    def _shorten(self, node: Node, k: int) -> None:
        self.n_tokens -= k
        self.n_evictable -= k
        parent = node.parent
        assert parent is not None
        if self.on_cut is not None:
            self.on_cut(node)
        if k < len(node):
            node.set_tokens(node.tokens[: len(node) - k])
            node.pages = node.pages[: len(node.tokens)]
            self._queue_if_evictable(node)
            return
        del parent.children[int(node.tokens[0])]
        node.parent = None
        self._queue_if_evictable(parent)

    def _is_evictable(self, node: Node) -> bool:
        return node.locks == 0 and not node.children and node.parent is not None

    def _is_done_with(self, node: Node) -> bool:
        return node.locks == 0 and all(c.stamp == EVICT_FIRST for c in node.children.values())

    def _queue_if_evictable(self, node: Node) -> None:
        """Queues a node for eviction. If its stamp grows later, `evict` queues it again."""
        if not self._is_evictable(node) or (node.queued is not None and node.queued <= node.stamp):
            return
        self._n_stale += node.queued is not None
        self._pushes += 1
        heapq.heappush(self._heap, (node.stamp, self._pushes, node))
        node.queued = node.stamp
        if 2 * self._n_stale > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[0] == entry[2].queued]
            heapq.heapify(self._heap)
            self._n_stale = 0


def _from_root(node: Node) -> list[Node]:
    steps: list[Node] = []
    step: Node | None = node
    while step is not None:
        steps.append(step)
        step = step.parent
    return steps[::-1]
