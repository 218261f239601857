"""Monte Carlo tree search over plans: UCT selection and rollouts that the model scores."""

from __future__ import annotations

import math
import random

import sgc

ACTIONS = ["search the web", "ask an expert", "run an experiment", "write a draft"]


class Node:
    def __init__(self, action: str | None = None, parent: Node | None = None):
        self.action = action
        self.parent = parent
        self.children: list[Node] = []
        self.visits = 0
        self.value = 0.0

    def uct(self, c: float = 1.4) -> float:
        if self.visits == 0:
            return math.inf
        return self.value / self.visits + c * math.sqrt(math.log(self.parent.visits) / self.visits)

    def path(self) -> list[str]:
        node, actions = self, []
        while node.parent is not None:
            actions.append(node.action)
            node = node.parent
        return actions[::-1]

    def backpropagate(self, reward: float) -> None:
        node = self
        while node:
            node.visits += 1
            node.value += reward
            node = node.parent


@sgc.function
def rollout(s, goal: str, plan: list[str]):
    s += f"Goal: {goal}\nPlan:\n" + "".join(f"{i}. {a}\n" for i, a in enumerate(plan, 1))
    s += "What will happen:" + sgc.gen("outcome", max_tokens=40, stop="\n")
    s += "\nSuccess in percent: " + sgc.gen("percent", regex="100|[1-9]?[0-9]")
    return int(s["percent"]) / 100


@sgc.function(max_turns=8)
def program(s, goal: str, iterations: int = 6, max_depth: int = 2):
    rng = random.Random(7)
    root = Node()
    for _ in range(iterations):
        node = root
        while node.children:
            node = max(node.children, key=Node.uct)
        if node.visits > 0 or node is root:
            path = node.path()
            if len(path) < max_depth:
                options = [a for a in ACTIONS if a not in path]
                rng.shuffle(options)
                node.children = [Node(a, node) for a in options[:3]]
                node = node.children[0]
        node.backpropagate(rollout(goal, node.path()).ret_value)

    plan = []
    node = root
    while node.children:
        node = max(node.children, key=lambda n: n.visits)
        plan.append(node.action)
    s += f"Goal: {goal}\nThe plan: {' -> '.join(plan) or '(improvise)'}\nFirst action today:"
    s += sgc.gen("today", max_tokens=24, stop="\n")
    return {"plan": plan, "visits": root.visits, "mean": round(root.value / max(1, root.visits), 3)}


ARGUMENTS = [
    {"goal": "Find out why the cake did not rise."},
    {"goal": "Write a thesis.", "iterations": 9, "max_depth": 1},
    {"goal": "Nothing.", "iterations": 0},
]
REPLIES = [" It works well.", " The expert is on holiday.", "75", "10", " Call the library."]
