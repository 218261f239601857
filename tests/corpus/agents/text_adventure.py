"""A player of a text adventure: rooms, exits and things; the model picks among what is possible."""

import random
import textwrap

import sgc

WORLD = {
    "hall": {"exits": {"north": "library", "east": "kitchen"}, "things": ["lamp"]},
    "library": {"exits": {"south": "hall"}, "things": ["book", "key"]},
    "kitchen": {"exits": {"west": "hall"}, "things": []},
}
SECRETS = {"library:look": "Behind a book something shines.", "hall:fly": "You hit the lamp."}
SMELLS = ["dust", "soup", "old paper"]


def describe(room, things):
    text = f"You are in the {room}."
    if things:
        text += " You see: " + ", ".join(sorted(things)) + "."
    return textwrap.fill(text, width=40)


def options(room, things):
    for direction in WORLD[room]["exits"]:
        yield f"go {direction}"
    for thing in sorted(things):
        yield f"take {thing}"
    yield "look"


@sgc.function
def program(s, start: str, goal: str, max_moves: int = 6):
    room = start
    bag = set()
    left = {name: set(data["things"]) for name, data in WORLD.items()}
    visited = [room]
    rng = random.Random(7)
    s += f"You play a text adventure. Your goal: find the {goal}.\n"
    for move in range(max_moves):
        s += describe(room, left[room]) + "\nYou can:\n"
        for option in options(room, left[room]):
            s += f" * {option}\n"
        s += "You do:" + sgc.gen("command", max_tokens=8, stop="\n") + "\n"
        verb, _, noun = s["command"].strip().partition(" ")
        if secret := SECRETS.get(f"{room}:{verb}"):
            s += secret + "\n"
        elif verb == "go" and noun in WORLD[room]["exits"]:
            room = WORLD[room]["exits"][noun]
            visited.append(room)
        elif verb == "take" and noun in left[room]:
            left[room].remove(noun)
            bag.add(noun)
            if noun == goal:
                s += f"You have the {goal}!\n"
                break
        elif verb == "look":
            s += f"It smells of {rng.choice(SMELLS)}.\n"
        else:
            s += f"You cannot {verb or 'do nothing'}.\n"
    else:
        return False, visited
    return True, visited


ARGUMENTS = [
    {"start": "library", "goal": "key"},
    {"start": "kitchen", "goal": "unicorn", "max_moves": 3},
]
REPLIES = [" go north", "take key", "take lamp", "look", "go west", "", "fly away", "go south"]
