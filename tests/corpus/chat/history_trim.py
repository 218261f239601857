"""A chat whose history is trimmed to a budget of words, oldest first, with a running summary."""

from dataclasses import dataclass, field

import sgc


@dataclass
class Message:
    role: str
    content: str

    def __len__(self) -> int:
        return len(self.content.split())


@dataclass
class History:
    limit: int
    messages: list[Message] = field(default_factory=list)
    dropped: int = 0

    def add(self, role: str, content: str) -> None:
        self.messages.append(Message(role, content))
        while sum(map(len, self.messages)) > self.limit and len(self.messages) > 1:
            self.messages.pop(0)
            self.dropped += 1

    def render(self) -> str:
        return "\n".join(f"{m.role}: {m.content}" for m in self.messages)


@sgc.function
def reply(s, context: str, summary: str):
    if summary:
        s += sgc.system(f"Summary so far: {summary}")
    s += sgc.user(context)
    s += sgc.assistant(sgc.gen("text", max_tokens=32))
    return s["text"].strip()


@sgc.function
def program(s, inputs: list[str], limit: int = 12):
    history = History(limit)
    summary = ""
    for text in inputs:
        before = history.dropped
        history.add("user", text)
        answer = reply(history.render(), summary).ret_value
        history.add("assistant", answer)
        if history.dropped > before:
            s += (
                f"Old: {summary or '-'}\nNew summary:"
                + sgc.gen("summary", max_tokens=16, stop="\n")
                + "\n"
            )
            summary = s["summary"].strip()
    s += history.render()
    return history.dropped, summary, [m.role[0] for m in history.messages]


ARGUMENTS = [
    {"inputs": ["hello there my friend", "how are you doing today", "bye"]},
    {"inputs": []},
]
REPLIES = [" Fine, thanks.", " A long answer that says nothing at all and goes on.", ""]
