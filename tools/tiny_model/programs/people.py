"""Programs that read or invent a person's data."""

from __future__ import annotations

import json
from random import Random

from tiny_model import world as w
from tiny_model.person_tasks import age_of, biography
from tiny_model.text import END, Text
from tiny_model.world import World

ENUM = ["baker", "doctor", "engineer", "teacher"]


def extract_program(r: Random, world: World) -> Text:
    """JSON with a closed list of jobs, a date, a choice (extract.py)."""
    p = world.person(r)
    has_date = r.random() < 0.6
    prose = biography(r, p, ["name", "job", "date" if has_date else "born"])
    job = p.job if p.job in ENUM else "other"
    reply = json.dumps({"name": p.name, "job": job, "born": p.born[0]})
    text = Text(r).ask(f"Text: {prose}\n")
    born = p.iso if has_date else f"{p.born[0]}-01-01"
    if r.random() < 0.8:
        text.ask("The person as JSON: ").reply(f"{reply}\n")
    if r.random() < 0.7:
        text.ask("Born on ").reply(f"{born}.\n")
    asked = p.job if r.random() < 0.5 else r.choice([*ENUM, p.job])
    yes = "yes" if asked == p.job else "no"
    return text.ask(f"Is the person {w.a(asked)}? ").reply(f"{yes}\n").end()


def character(r: Random, world: World) -> Text:
    """`Name: … Birthday: … Job: …` of an invented person (API speculation's example)."""
    keys = r.choice(
        [
            ["Name", "Birthday", "Job"],
            ["Name", "Age", "Job"],
            ["Name", "City", "Pet"],
            ["Name", "Job", "City"],
            ["Name", "Birthday", "Job", "City"],
        ]
    )
    text = Text(r)
    if r.random() < 0.7:
        form = "\n".join(f"{key}: ..." for key in keys)
        head = r.choice(
            [
                "Construct a character within the following format:",
                "Invent a person in this format:",
            ]
        )
        text.ask(f"{head}\n{form}\n")
        if r.random() < 0.6:
            text.ask(f"\nPlease generate new {w.listed(keys)}.\n")
    n = r.randint(1, 4)
    for _ in range(n):
        p = world.person(r)
        values = {"Name": p.name, "Job": p.job, "City": p.city, "Age": str(age_of(p)), "Pet": p.pet}
        values["Birthday"] = f"{p.born[2]} {w.MONTHS[p.born[1] - 1]} {p.born[0]}"
        for key in keys:
            text.ask(f"{key}:").reply(f" {values[key]}\n")
        if n > 1:
            text.ask("\n")
    return text.end()


def character_at_once(r: Random, world: World) -> Text:
    """A character whose fields are all one generation, as in one speculative request."""
    stepwise = character(r, world)
    prompt, *rest = [part for part, _ in stepwise.parts if part != END]
    return Text(r).ask(prompt).reply("".join(rest).rstrip("\n") + "\n").end()
