"""Role play: a non-player character with moods and a purse, described by a pydantic model."""

from typing import Literal

from pydantic import BaseModel

import sgc

Mood = Literal["grumpy", "calm", "cheerful"]


class Character(BaseModel):
    name: str
    occupation: str = "tavern keeper"
    mood: Mood = "calm"
    gold: int = 10
    secret: str | None = None

    def sheet(self) -> str:
        parts = [f"{self.name}, {self.occupation}", f"mood: {self.mood}", f"gold: {self.gold}"]
        if self.secret:
            parts.append(f"secret (tell only if cheerful): {self.secret}")
        return "; ".join(parts)


PRICES = {"ale": 2, "stew": 5, "room": 12}
REACTIONS: dict[str, Mood] = {
    "grumpy:smiles": "calm",
    "calm:smiles": "cheerful",
    "calm:frowns": "grumpy",
    "cheerful:frowns": "calm",
}


@sgc.function
def program(s, character: Character, lines: list[str]):
    me = character.model_copy()
    sold: dict[str, int] = {}
    for line in lines:
        s += sgc.system(me.sheet())
        s += sgc.user(line)
        with s.assistant():
            s += "*" + sgc.select("tone", choices=["smiles", "frowns", "shrugs"]) + "* "
            s += sgc.gen("reply", max_tokens=60, stop="\n")
        me.mood = REACTIONS.get(f"{me.mood}:{s['tone']}", me.mood)
        for thing, price in PRICES.items():
            if thing in line.lower():
                sold[thing] = sold.get(thing, 0) + 1
                me.gold += price
        if me.secret is not None and me.secret.lower() in s["reply"].lower():
            if me.mood != "cheerful":
                s += sgc.user("(The keeper gave the secret away too early.)")
                return {"broke_character": True, "gold": me.gold}
            me.secret = None
    return {"mood": me.mood, "gold": me.gold, "sold": sold, "told": me.secret is None}


KEEPER = Character(name="Marta", secret="the cellar has a second door")
ARGUMENTS = [
    {
        "character": KEEPER,
        "lines": ["An ale, please!", "And the stew. Any news?", "Tell me about the cellar."],
    },
    {"character": Character(name="Bo", mood="grumpy", gold=0), "lines": ["A room?"]},
    {"character": KEEPER, "lines": []},
]
REPLIES = [
    "Here you go, love.",
    "Psst: the cellar has a second door.",
    "That will be two coins.",
    "...",
    "Who wants to know?",
]
