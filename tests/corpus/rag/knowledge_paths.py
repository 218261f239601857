"""Triples from sentences, a graph as dict of sets, breadth-first paths, an explanation."""

from collections import deque

import sgc


def triples(text: str) -> list[tuple[str, str, str]]:
    found = []
    for line in text.splitlines():
        parts = [p.strip().lower() for p in line.split("|")]
        if len(parts) == 3 and all(parts):
            found.append((parts[0], parts[1], parts[2]))
    return found


def path(graph: dict[str, dict[str, str]], start: str, goal: str) -> list[str]:
    queue = deque([[start]])
    seen = {start}
    while queue:
        way = queue.popleft()
        if way[-1] == goal:
            return way
        for node in sorted(graph.get(way[-1], {})):
            if node not in seen:
                seen.add(node)
                queue.append([*way, node])
    return []


@sgc.function
def program(s, sentences: list[str], start: str, goal: str):
    graph: dict[str, dict[str, str]] = {}
    n = 0
    for sentence in sentences:
        f = s.fork(1)[0]
        f += "Triples `a | relation | b`, one a line.\n" + sentence + "\n"
        f += sgc.gen("triples", max_tokens=48)
        for a, relation, b in triples(f["triples"]):
            graph.setdefault(a, {})[b] = relation
            n += 1
    way = path(graph, start.lower(), goal.lower())
    if not way:
        s += f"Say that {start} and {goal} are not connected.\n" + sgc.gen("text", max_tokens=24)
        return s["text"], [], n
    steps = [f"{a} {graph[a][b]} {b}" for a, b in zip(way, way[1:])]
    s += "Explain: " + "; ".join(steps) + "\n" + sgc.gen("text", max_tokens=24)
    return s["text"], way, n


ARGUMENTS = [
    {"sentences": ["Ann knows Bob.", "Bob owns a boat."], "start": "Ann", "goal": "boat"},
    {"sentences": [], "start": "a", "goal": "A"},
]
REPLIES = ["ann | knows | bob\nbob | owns | boat", "x | y", "bob|likes|ann", "They are linked."]
