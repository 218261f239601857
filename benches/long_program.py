"""A program of some 200 lines, as one would write it: a support desk that triages a ticket, reads
it, searches, drafts, judges, revises and reports. For timing its compilation.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import sgc
from sgc import assistant, gen, select, system, user

TEAMS = {
    "billing": "accounts",
    "bug": "engineering",
    "question": "support",
    "complaint": "managers",
}
ARTICLES = ["Refunds take five days.", "Restart the device to mend most problems."]
PRIORITIES = ["low", "normal", "urgent"]
MAX_DRAFTS = 3


@dataclass
class Ticket:
    kind: str = ""
    priority: str = "normal"
    fields: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text.strip())

    def summary(self) -> str:
        lines = [f"{key}: {value}" for key, value in self.fields.items()]
        return "\n".join([f"[{self.priority}] {self.kind}", *lines])


@sgc.tool
def search(query: str) -> list[str]:
    """Articles that match a query."""
    return [article for article in ARTICLES if query.lower() in article.lower()]


@sgc.tool
def order_status(number: str) -> dict[str, str]:
    """What is known of an order."""
    return {"number": number, "state": "sent"}


def order_number(text: str) -> str:
    for word in text.replace(",", " ").split():
        if word.startswith("#") and word[1:].isdigit():
            return word[1:]
    return ""


def parse_fields(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        if ":" not in line:
            continue
        key, value = line.split(":", 1)
        if value.strip():
            found[key.strip().lower()] = value.strip()
    return found


def numbered(items: list[str]) -> str:
    return "\n".join(f"{n}. {item}" for n, item in enumerate(items, 1))


def score_of(text: str) -> int:
    digits = [c for c in text if c.isdigit()]
    if not digits:
        return 0
    return min(int("".join(digits[:2])), 10)


def triage(s, ticket: Ticket, text: str) -> None:
    s += system("You work at a support desk. Be brief and exact.")
    s += user(f"A customer writes:\n{text}\nWhat is it?")
    s += assistant(select("kind", choices=list(TEAMS)))
    ticket.kind = s["kind"]
    s += user("How urgent is it?")
    s += assistant(select("priority", choices=PRIORITIES))
    ticket.priority = s["priority"]
    if ticket.kind == "complaint" and ticket.priority == "low":
        ticket.priority = "normal"
        ticket.note("complaints are never of low priority")


def extract(s, ticket: Ticket, text: str) -> None:
    s += user("List what the customer tells of: name, product, problem, a line each.")
    s += assistant(gen("details", max_tokens=120))
    ticket.fields = parse_fields(s["details"])
    number = order_number(text)
    if number:
        status = order_status(number)
        ticket.fields["order"] = number
        if "state" in status:
            ticket.fields["state"] = status["state"]
        ticket.note(f"order {number} was looked up")
    for key in ("name", "problem"):
        if key not in ticket.fields:
            s += user(f"What is the customer's {key}? Say 'unknown' if it is not told.")
            s += assistant(gen("missing", max_tokens=16, stop="\n"))
            if s["missing"].strip().lower() != "unknown":
                ticket.fields[key] = s["missing"].strip()


def research(s, ticket: Ticket) -> list[str]:
    s += user("Write up to three queries for our help pages, a line each.")
    s += assistant(gen("queries", max_tokens=60))
    passages: list[str] = []
    for query in s["queries"].splitlines()[:3]:
        if not query.strip():
            continue
        try:
            found = search(query.strip())
        except RuntimeError as error:
            ticket.note(f"no search for {query.strip()}: {error}")
            continue
        for passage in found[:2]:
            if passage not in passages:
                passages.append(passage)
    return passages


def judged(s, draft: str) -> int:
    s += user(f"Rate this answer from 0 to 10. Reply with the number.\n{draft}")
    s += assistant(gen("score", max_tokens=4, stop="\n"))
    return score_of(s["score"])


def answer(s, ticket: Ticket, passages: list[str]) -> str:
    best, best_score = "", -1
    for attempt in range(MAX_DRAFTS):
        s += user(
            f"{ticket.summary()}\nWhat our pages say:\n{numbered(passages)}\n"
            f"Write answer number {attempt + 1} to the customer."
        )
        s += assistant(gen("draft", max_tokens=200))
        draft = s["draft"].strip()
        score = judged(s, draft)
        ticket.note(f"draft {attempt + 1}: {score}")
        if score > best_score:
            best, best_score = draft, score
        if best_score >= 8:
            break
        s += user("What is wrong with it?")
        s += assistant(gen("critique", max_tokens=80))
    return best


def reviews(s, draft: str) -> list[str]:
    objections = []
    forks = s.fork(2)
    for fork, eye in zip(forks, ("a lawyer", "the customer"), strict=True):
        fork += user(f"Read it as {eye}: is there anything against sending it? yes or no, and why.")
        fork += assistant(gen("review", max_tokens=40))
    forks.join()
    for fork in forks:
        if fork["review"].lower().startswith("yes"):
            objections.append(fork["review"])
    return objections


def report(s, ticket: Ticket, reply: str) -> dict:
    s += user('Report as JSON: {"solved": true or false, "tags": [...]}')
    s += assistant(gen("report", max_tokens=80))
    try:
        told = json.loads(s["report"])
        solved = bool(told["solved"])
        tags = [str(tag).lower() for tag in told["tags"]]
    except (ValueError, KeyError, TypeError):
        ticket.note("the report could not be read")
        solved, tags = False, []
    return {
        "team": TEAMS[ticket.kind],
        "priority": ticket.priority,
        "solved": solved,
        "tags": sorted(set(tags)),
        "notes": ticket.notes,
        "reply": reply,
    }


@sgc.function
def desk(s, text: str):
    ticket = Ticket()
    triage(s, ticket, text)
    extract(s, ticket, text)
    passages = research(s, ticket)
    if not passages and ticket.kind == "question":
        return {"team": TEAMS[ticket.kind], "solved": False, "notes": ticket.notes}
    reply = answer(s, ticket, passages)
    objections = reviews(s, reply)
    if objections:
        s += user("Mend these:\n" + numbered(objections))
        s += assistant(gen("mended", max_tokens=200))
        reply = s["mended"]
    if ticket.priority == "urgent":
        s += user("Write one line for the team that is on duty.")
        s += assistant(gen("alert", max_tokens=30, stop="\n"))
        ticket.note(s["alert"])
    return report(s, ticket, reply)
