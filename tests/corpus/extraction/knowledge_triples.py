"""Triples (subject; relation; object) into a small graph, and a walk along it."""

from collections import defaultdict

import sgc

ALIASES = {"uk": "United Kingdom", "usa": "United States"}


class Graph:
    def __init__(self):
        self.edges = defaultdict(list)

    @staticmethod
    def canonical(name: str) -> str:
        name = name.strip().strip("()\"'")
        return ALIASES.get(name.lower(), name)

    def add(self, line: str) -> bool:
        parts = line.split(";")
        if len(parts) != 3:
            return False
        head, relation, tail = map(self.canonical, parts)
        if not head or not tail or (relation, tail) in self.edges[head]:
            return False
        self.edges[head].append((relation, tail))
        return True

    def walk(self, start: str, depth: int):
        seen = {start}

        def visit(node, left):
            if left == 0:
                return
            for relation, tail in self.edges.get(node, []):
                if tail not in seen:
                    seen.add(tail)
                    yield f"{node} --{relation}--> {tail}"
                    yield from visit(tail, left - 1)

        yield from visit(start, depth)


@sgc.function
def program(s, text: str, about: str, rounds: int = 2):
    graph = Graph()
    s += f"Text: {text}\nTriples as subject; relation; object:\n"
    total = 0
    for round_ in range(rounds):
        s += sgc.gen("triples", max_tokens=80, stop="\n\n")
        added = [graph.add(line) for line in s["triples"].splitlines()]
        total += sum(added)
        if not any(added):
            break
        s += f"\nMore of them ({round_ + 1}):\n"
    facts = list(graph.walk(graph.canonical(about), depth=3))
    if facts:
        s += "\n\nFacts:\n" + "\n".join(facts)
        s += f"\nWho or what is {about}?" + sgc.gen("summary", max_tokens=40, stop="\n")
    else:
        s += f"\n\nNothing is known about {about}."
    return {"n": total, "facts": facts}


ARGUMENTS = [{"text": "Ada was born in London, UK.", "about": "Ada"}, {"text": "", "about": "USA"}]
REPLIES = [
    "Ada; born in; London\nLondon; capital of; UK\nUK; part of; Europe\nEurope; by; Asia",
    "(Ada; daughter of; Lord Byron)\nUSA; speaks; English; mostly",
    "usa; borders; Canada\nusa; borders; Canada",
]
