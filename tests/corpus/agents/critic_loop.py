"""Writer and critic, with a Protocol, an abstract base class, and a memory with __len__ and __iter__."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque

import sgc


class Memory:
    def __init__(self, size: int):
        self._items: deque[str] = deque(maxlen=size)

    def add(self, item: str) -> None:
        self._items.append(item)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self):
        return iter(self._items)

    def __contains__(self, item: str) -> bool:
        return item in self._items

    def __bool__(self) -> bool:
        return bool(self._items)


class Agent(ABC):
    name = "agent"

    def __init__(self, memory: Memory):
        self.memory = memory

    @abstractmethod
    def prompt(self, task: str) -> str: ...

    def history(self) -> str:
        return "\n".join(f"* {m}" for m in self.memory)

    def act(self, s, task: str) -> str:
        s += self.prompt(task)
        s += sgc.gen(self.name, max_tokens=40, stop="\n")
        s += "\n"
        return s[self.name].strip()


class Writer(Agent):
    name = "writer"

    def prompt(self, task: str) -> str:
        base = f"Write: {task}\n"
        if self.memory:
            base += f"Feedback so far:\n{self.history()}\n"
        return base + "Draft:"


class Critic(Agent):
    name = "critic"

    def prompt(self, task: str) -> str:
        return f"Criticise it, or say GOOD ({len(self.memory)} remarks before).\nCritique:"


@sgc.function
def program(s, task: str, rounds: int = 3):
    memory = Memory(2)
    writer, critic = Writer(memory), Critic(memory)
    draft = ""
    for i in range(rounds):
        draft = writer.act(s, task)
        remark = critic.act(s, task)
        if remark.upper().startswith("GOOD"):
            break
        if remark in memory:
            s += "You said so before.\n"
            continue
        memory.add(remark)
    else:
        s += "(out of rounds)\n"
    return draft, list(memory), len(memory)


ARGUMENTS = [{"task": "a slogan"}, {"task": "", "rounds": 1}]
REPLIES = [" Fresh bread daily", " Too short.", " good", " Too bland.", ""]
