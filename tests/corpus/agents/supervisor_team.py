"""A supervisor hands the work round a team of specialists until it says FINISH."""

from dataclasses import dataclass

import sgc


@dataclass(frozen=True)
class Worker:
    name: str
    persona: str
    max_tokens: int = 64


TEAM = [
    Worker("researcher", "You collect facts. Never give opinions."),
    Worker("writer", "You write friendly prose.", max_tokens=120),
    Worker("reviewer", "You find mistakes. Start with OK if there are none."),
]
BY_NAME = {w.name: w for w in TEAM}
OPTIONS = [*BY_NAME, "FINISH"]


@sgc.function
def work(s, name: str, transcript: list[str]):
    worker = BY_NAME[name]
    s += sgc.system(worker.persona)
    s += sgc.user("\n\n".join(transcript[-4:]))
    s += sgc.assistant(sgc.gen("contribution", max_tokens=worker.max_tokens))
    return s["contribution"]


@sgc.function(max_turns=6)
def program(s, request: str, required: list[str]):
    s += sgc.system(f"You supervise {', '.join(w.name for w in TEAM)}. Say who is next, or FINISH.")
    transcript = [f"user: {request}"]
    s += sgc.user(transcript[0])
    visits = dict.fromkeys(BY_NAME, 0)
    while True:
        s += sgc.assistant(sgc.select("next", choices=OPTIONS))
        who = s["next"]
        if who == "FINISH":
            missing = [name for name in required if not visits.get(name)]
            if not missing:
                break
            s += sgc.user("Not yet: " + " and ".join(missing) + " did not act.")
            continue
        visits[who] += 1
        if visits[who] > 2:
            return transcript, f"{who} was asked too often"
        text = work(who, transcript).ret_value
        transcript.append(f"{who}: {text}")
        s += sgc.user(transcript[-1])
        if who == "reviewer" and text.startswith("OK"):
            break
    return transcript, "done"


ARGUMENTS = [
    {"request": "A paragraph about alpine salamanders.", "required": ["writer"]},
    {"request": "Say hello.", "required": []},
]
REPLIES = [
    "They give birth to live young after two to three years.",
    "OK, nothing to add.",
    "Meet the alpine salamander!",
    "The second sentence has no verb.",
]
