"""Watches the sentiment of a conversation and hands it to a human when it gets worse."""

from dataclasses import dataclass, field

import sgc

SCORES = {"very bad": -2, "bad": -1, "neutral": 0, "good": 1, "very good": 2}


@dataclass
class Monitor:
    window: int = 3
    values: list[int] = field(default_factory=list)

    def push(self, value: int) -> None:
        self.values.append(value)

    @property
    def recent(self) -> list[int]:
        return self.values[-self.window :]

    def trend(self) -> float:
        if len(self.recent) < 2:
            return 0.0
        return (self.recent[-1] - self.recent[0]) / (len(self.recent) - 1)

    def is_bad(self) -> bool:
        return len(self.recent) >= 2 and (all(v < 0 for v in self.recent) or self.trend() <= -1)


@sgc.function
def program(s, history: list[dict]):
    monitor = Monitor(window=2)
    s += sgc.system("You are a patient assistant of an electricity company.")
    for i, message in enumerate(history):
        match message:
            case {"role": "user", "content": str(text)}:
                s += sgc.user(text)
                probe = s.fork(1)[0]
                probe += sgc.assistant("Mood: " + sgc.select("mood", choices=list(SCORES)))
                monitor.push(SCORES[probe["mood"]])
            case {"role": "assistant", "content": text}:
                s += sgc.assistant(text)
            case {"role": role}:
                raise ValueError(f"message {i} has the role {role!r}")
        if monitor.is_bad():
            s += sgc.user("Summarise the conversation for a human colleague.")
            s += sgc.assistant(sgc.gen("handoff", max_tokens=60))
            return {"to": "human", "at": i, "note": s["handoff"], "moods": monitor.values}
    s += sgc.assistant(sgc.gen("reply", max_tokens=60))
    return {"to": "bot", "reply": s["reply"], "moods": monitor.values}


ARGUMENTS = [
    {
        "history": [
            {"role": "user", "content": "My bill is wrong."},
            {"role": "assistant", "content": "Let me look."},
            {"role": "user", "content": "I have been waiting for an hour!"},
            {"role": "user", "content": "Hello???"},
        ]
    },
    {"history": []},
    {"history": [{"role": "function", "content": "{}"}]},
]
REPLIES = ["The customer waits for a corrected bill.", "I am sorry, here is the new bill.", "..."]
