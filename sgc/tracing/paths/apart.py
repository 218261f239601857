"""Says, in the user's terms, why the paths of a program did not merge before a budget was spent."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from types import CodeType
from typing import Any

from sgc.errors import counted
from sgc.tracing.paths.exploration import Exploration
from sgc.tracing.paths.segments import Branch, Segment, reached_from
from sgc.tracing.snapshots.snapshot import Shape, Snapshot, Variable

OFTEN = 20  # states of one line
MANY, DEPTHS = 40, 5  # states of one line in calls of so many depths
MAX_CHARS = 40  # of a value
MAX_TOLD = 2  # variables
_GROWING = "a tuple of "
_MADE = "__sgc_"  # the prefix of names in converted code


def why_apart(exploration: Exploration) -> str:
    """Why the paths stayed apart; empty if that is not known."""
    line, group = _most(exploration)
    hidden, n_hidden = max(exploration.hidden.items(), key=lambda each: each[1], default=("", 0))
    if max(len(group), n_hidden) < OFTEN:
        return ""
    if n_hidden > len(group):
        return (
            f": paths at {hidden} do not merge, since what calls it, or an expression around it, "
            "holds values that tracing does not see"
        )
    one, other = _last_two(group)
    told = _told(one, other, exploration.kept)
    return f": paths at {line} do not merge, since {told}" if told else ""


def is_endless(exploration: Exploration) -> bool:
    """Whether calls nest ever deeper, so that more exploring would find more of the same."""
    _, group = _most(exploration)
    depths = {_depth(each.snapshot) for each in group if each.snapshot is not None}
    return len(group) >= MANY and len(depths) >= DEPTHS


def nests(exploration: Exploration) -> bool:
    """Whether the paths stayed apart because calls nest ever deeper."""
    _, group = _most(exploration)
    return len(group) >= OFTEN and len({*map(_depth, _last_two(group))}) > 1


def tests_of(exploration: Exploration) -> set[str]:
    """The values that the program has tested."""
    ends = [each.end for each in exploration.segments]
    return {end.test.name for end in ends if isinstance(end, Branch)}


def _most(exploration: Exploration) -> tuple[str, list[Segment]]:
    """The line with the most states, and its states."""
    groups: defaultdict[str, list[Segment]] = defaultdict(list)
    for segment in reached_from(exploration.entry).values():
        if segment.snapshot is not None and segment.snapshot.loc is not None:
            groups[str(segment.snapshot.loc)].append(segment)
    return max(groups.items(), key=lambda each: len(each[1]), default=("", []))


def _last_two(group: list[Segment]) -> list[Snapshot]:
    last = sorted(group, key=lambda each: each.number)[-2:]
    return [each.snapshot for each in last if each.snapshot is not None]


def _depth(snapshot: Snapshot) -> int:
    return sum(not each.name for each in snapshot.variables)


def _told(one: Snapshot, other: Snapshot, kept: set[str]) -> str:
    if _depth(one) != _depth(other):
        inner = other.variables[-1].function
        return f"calls nest ever deeper: {inner} is called by what it calls"
    mine, theirs = _parts(one), _parts(other)
    differing = [key for key in mine if key in theirs and mine[key] != theirs[key]]
    only = [key for key in {**mine, **theirs} if (key in mine) != (key in theirs)]
    found = [_differing(key, mine[key], theirs[key], one, other, kept) for key in differing]
    found.sort(key=lambda text: "not the same" in text)
    found += [f"only some have {_named(key)}" for key in only]
    return " and ".join(found[: min(MAX_TOLD, max(1, len(differing)))])


def _differing(
    key: Key, mine: Shape, theirs: Shape, one: Snapshot, other: Snapshot, kept: set[str]
) -> str:
    name, left, right = _named(key), _shown(mine, one), _shown(theirs, other)
    if left == right:
        return f"{name}, {left}, is not the same on all{_why_kept(other, key, kept)}"
    grows = left.startswith(_GROWING) and right.startswith(_GROWING)
    why = "; a list may grow, a tuple not" if grows else _why_kept(other, key, kept)
    return f"{name} is {left} on one and {right} on another{why}"


Key = tuple[int, str, str]  # a variable's depth in frames, its function and its name


def _parts(snapshot: Snapshot) -> dict[Key, Shape]:
    """The tokens of each variable in a snapshot."""
    return {key: snapshot.whole.shape[start + 1 : end] for key, start, end in _ranges(snapshot)}


def _ranges(snapshot: Snapshot) -> Iterator[tuple[Key, int, int]]:
    variables, depth = snapshot.variables, 0
    last = Variable(len(snapshot.whole.shape), "", "")
    for each, following in zip(variables, (*variables[1:], last), strict=True):
        depth += not each.name
        if each.name:
            yield (depth, each.function, each.name), each.start, following.start


def _named(key: Key) -> str:
    _, function, name = key
    return f"what a comprehension of {function} makes" if name.startswith(_MADE) else name


def _why_kept(snapshot: Snapshot, key: Key, kept: set[str]) -> str:
    """Why a variable was not widened, if its value is a list that shows the reason."""
    start, end = next((start, end) for each, start, end in _ranges(snapshot) if each == key)
    lists = [leaf for leaf in snapshot.leaves if leaf.is_list and start <= leaf.tokens[0] < end]
    if not lists:
        return ""
    (leaf, *_) = lists
    if leaf.label in kept:
        return ", and its own value is needed"
    if leaf.data is None and leaf.symbol is None:
        tokens = snapshot.whole.shape[leaf.tokens[0] + 1 : leaf.tokens[1]]
        return f", and a graph's list cannot hold {_shown(_inside(tokens), snapshot)}"
    return ""


def _inside(tokens: Shape) -> Shape:
    """The tokens after those of nested tuples and lists at the beginning."""
    for n, token in enumerate(tokens):
        if not (isinstance(token, tuple) and token and token[0] in (tuple, list)):
            return tokens[n:]
    return tokens


_OF_TRACE = "a value known only at run time"


def _shown(tokens: Shape, snapshot: Snapshot) -> str:
    """A value in words, by its tokens in a snapshot."""
    first: Any = tokens[0] if tokens else ""
    if isinstance(first, type):
        return _OF_TRACE
    if first == "object" and len(tokens) > 1:
        return f"a {_kind_of(tokens[1], snapshot)}"
    if not isinstance(first, tuple) or not first:
        return "a value"
    kind = first[0]
    if kind == "again":
        return "an object that another variable has too"
    if kind == "stream":
        return f"a stream of {first[1]}"
    if isinstance(kind, CodeType) or not isinstance(kind, type):
        return "a function" if kind == "function" else "a value"
    return _of_kind(kind, first)


def _of_kind(kind: type, first: tuple[Any, ...]) -> str:
    if kind in (list, tuple, set, frozenset, deque) or issubclass(kind, dict):
        n = first[1]
        return f"a {kind.__name__} of {counted(n, 'item')}"
    if first[1:] == ("pieces",):
        return _OF_TRACE
    text = repr(first[1])
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"


def _kind_of(token: Any, snapshot: Snapshot) -> str:
    """The name of the class that an object's tokens name."""
    found = (each for each in snapshot.kept if token == ("is", id(each)))
    return getattr(next(found, object), "__name__", "object")
