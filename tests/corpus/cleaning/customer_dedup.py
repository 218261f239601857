"""Finds duplicate customers: blocking, similarity, the model for doubtful pairs, union-find."""

import itertools
from collections import defaultdict
from difflib import SequenceMatcher

import sgc


class UnionFind:
    def __init__(self, items):
        self.parent = {x: x for x in items}

    def find(self, x):
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def union(self, a, b):
        self.parent[self.find(a)] = self.find(b)

    def groups(self):
        out = defaultdict(list)
        for x in self.parent:
            out[self.find(x)].append(x)
        return list(out.values())


def similarity(a: dict, b: dict) -> float:
    return SequenceMatcher(None, a["name"].lower(), b["name"].lower()).ratio()


@sgc.function
def same_person(s, a: dict, b: dict):
    s += "Do these records describe the same person?\n"
    for key in ("name", "email"):
        s += f"{key}: {a.get(key) or '?'} | {b.get(key) or '?'}\n"
    s += "Answer: "
    s += sgc.select("same", choices=["yes", "no"])
    return s["same"] == "yes"


@sgc.function
def program(s, records: list[dict[str, str]], low: float = 0.5, high: float = 0.95):
    blocks = defaultdict(list)
    for i, r in enumerate(records):
        blocks[r["name"][:1].lower()].append(i)

    uf = UnionFind(range(len(records)))
    asked = 0
    for block in blocks.values():
        for i, j in itertools.combinations(block, 2):
            if uf.find(i) == uf.find(j):
                continue
            a, b = records[i], records[j]
            ratio = similarity(a, b)
            if ratio >= high:
                uf.union(i, j)
            elif ratio >= low:
                asked += 1
                if same_person(a, b).ret_value:
                    uf.union(i, j)

    for group in (g for g in uf.groups() if len(g) > 1):
        names = [records[i]["name"] for i in group]
        s += "Spellings: " + " / ".join(names) + "\nCanonical name:"
        s += sgc.gen("canonical", max_tokens=12, stop="\n") + "\n"
        records[group[0]]["canonical"] = s["canonical"].strip() or max(names, key=len)
    return {"groups": uf.groups(), "asked": asked}


ARGUMENTS = [
    {
        "records": [
            {"name": "Jon Smith", "email": "jon@x.org"},
            {"name": "John Smith", "email": "jon@x.org"},
            {"name": "Jane Smit", "email": ""},
            {"name": "Maria Lopez"},
            {"name": "maria lopez", "email": "m@l.es"},
        ]
    },
    {"records": [{"name": "Bo Li"}, {"name": "bo li"}, {"name": "BO LI"}]},
    {"records": []},
]
REPLIES = [" John Smith", " María López", "", " J. Smith\nor so"]
