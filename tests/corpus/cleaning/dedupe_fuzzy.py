"""Groups near duplicates with union-find and difflib, the model names each group."""

from difflib import SequenceMatcher
from itertools import combinations

import sgc


class Groups:
    def __init__(self, n: int):
        self.parent = list(range(n))

    def find(self, i: int) -> int:
        while self.parent[i] != i:
            self.parent[i] = self.parent[self.parent[i]]
            i = self.parent[i]
        return i

    def union(self, a: int, b: int) -> None:
        self.parent[self.find(b)] = self.find(a)

    def lists(self) -> list[list[int]]:
        groups: dict[int, list[int]] = {}
        for i in range(len(self.parent)):
            groups.setdefault(self.find(i), []).append(i)
        return list(groups.values())


def similar(a: str, b: str, cutoff: float) -> bool:
    return SequenceMatcher(None, a.lower(), b.lower()).ratio() >= cutoff


@sgc.function
def program(s, names: list[str], cutoff: float = 0.75):
    groups = Groups(len(names))
    for (i, a), (j, b) in combinations(enumerate(names), 2):
        if similar(a, b, cutoff):
            groups.union(i, j)
    result = {}
    for group in groups.lists():
        members = [names[i] for i in group]
        if len(members) == 1:
            result[members[0]] = members
            continue
        s += (
            "Same: "
            + " / ".join(members)
            + "\nBest spelling:"
            + sgc.gen("best", max_tokens=8, stop="\n")
            + "\n"
        )
        best = s["best"].strip()
        result[best if best in members else min(members, key=len)] = members
    return result


ARGUMENTS = [
    {"names": ["Acme Ltd", "ACME ltd.", "Globex", "Globex Inc", "Umbrella"]},
    {"names": []},
]
REPLIES = [" Acme Ltd", " Globex", " ?"]
