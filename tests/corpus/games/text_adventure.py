"""A text adventure: the model types commands until the lamp is in the hall."""

import sgc

DOORS = {
    "hall:north": "library",
    "hall:east": "kitchen",
    "library:south": "hall",
    "library:up": "attic",
    "kitchen:west": "hall",
    "attic:down": "library",
}
THINGS = {"lamp": "attic", "bread": "kitchen"}


class World:
    def __init__(self, start):
        self.room = start
        self.bag = []
        self.things = dict(THINGS)

    def look(self):
        here = [t for t, place in self.things.items() if place == self.room]
        exits = ", ".join(d.split(":")[1] for d in DOORS if d.startswith(self.room))
        return f"You are in the {self.room}. Exits: {exits}." + (
            f" You see: {', '.join(here)}." if here else ""
        )

    def do(self, command):
        match command.lower().split():
            case []:
                return "Say something."
            case ["go", direction] | [
                ("north" | "south" | "east" | "west" | "up" | "down") as direction
            ]:
                room = DOORS.get(f"{self.room}:{direction}")
                if room is None:
                    return f"There is no way {direction}."
                self.room = room
                return self.look()
            case ["take", *_, thing] if self.things.get(thing) == self.room:
                self.bag.append(thing)
                del self.things[thing]
                return f"Taken: {thing}."
            case ["take", *_]:
                return "It is not here."
            case ["look", *_]:
                return self.look()
            case [verb, *_]:
                return f"I do not know how to {verb}."


@sgc.function(max_turns=12)
def program(s, start: str, moves: int):
    world = World(start)
    s += "You are playing a text adventure. Find the lamp and bring it to the hall.\n\n"
    s += world.look() + "\n"
    n = 0
    while n < moves:
        n += 1
        s += "> " + sgc.gen("command", max_tokens=8, stop="\n") + "\n"
        s += world.do(s["command"]) + "\n"
        if "lamp" in world.bag and world.room == "hall":
            s += "*** You have won ***\n"
            return True, n
    s += f"After {n} moves you are tired. You carry {' and '.join(world.bag) or 'nothing'}."
    return False, n


ARGUMENTS = [
    {"start": "attic", "moves": 10},
    {"start": "hall", "moves": 4},
    {"start": "kitchen", "moves": 1},
]
REPLIES = ["go north", "take the lamp", "down", "south", "look around", "sing", "", "up"]
