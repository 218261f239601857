"""A turn-based fight: the model picks actions, seeded dice decide, a narrator tells the story."""

from __future__ import annotations

import random
from contextlib import contextmanager
from dataclasses import dataclass, replace

import sgc


@dataclass
class Fighter:
    name: str
    hp: int
    attack: int
    potions: int = 0

    @property
    def alive(self) -> bool:
        return self.hp > 0

    def hit(self, other: Fighter, dice: random.Random) -> str:
        roll = dice.randint(1, 6) + dice.randint(1, 6)
        if roll == 12:
            damage = 2 * self.attack
        elif roll < 5:
            return f"{self.name} misses."
        else:
            damage = self.attack
        other.hp = max(0, other.hp - damage)
        return f"{self.name} hits {other.name} for {damage}."

    def drink(self) -> str:
        if self.potions == 0:
            return f"{self.name} finds only empty bottles."
        self.potions -= 1
        self.hp += 8
        return f"{self.name} drinks and has {self.hp} HP."


@contextmanager
def scene(s, title: str):
    s += f"== {title} ==\n"
    yield
    s += "\n"


@sgc.function(max_turns=10)
def program(s, hero: Fighter, monster: Fighter, seed: int = 7):
    dice = random.Random(seed)
    hero, monster = replace(hero), replace(monster)
    rounds = 0
    while hero.alive and monster.alive and rounds < 8:
        rounds += 1
        with scene(s, f"Round {rounds}"):
            s += f"{hero.name}: {hero.hp} HP. {monster.name}: {monster.hp} HP. {hero.name} will "
            s += sgc.select("action", choices=["attack", "drink", "flee"]) + ".\n"
            if s["action"] == "flee":
                if dice.random() < 0.5:
                    s += "You escape into the dark."
                    return "fled", rounds
                events = ["You stumble."]
            elif s["action"] == "drink":
                events = [hero.drink()]
            else:
                events = [hero.hit(monster, dice)]
            if monster.alive:
                events.append(monster.hit(hero, dice))
            s += " ".join(events) + "\nNarrator:" + sgc.gen("story", max_tokens=40, stop="\n")
    outcome = "won" if not monster.alive else "died" if not hero.alive else "draw"
    return outcome, rounds


HERO = Fighter("Brin", hp=14, attack=4, potions=1)
ARGUMENTS = [
    {"hero": HERO, "monster": Fighter("Goblin", hp=9, attack=3)},
    {"hero": HERO, "monster": Fighter("Dragon", hp=60, attack=9), "seed": 3},
    {"hero": Fighter("Ghost", 0, 0), "monster": Fighter("Rat", 1, 1)},
    {"hero": Fighter("Turtle", 90, 0), "monster": Fighter("Wall", hp=99, attack=0), "seed": 5},
]
REPLIES = [" Steel rings in the dark.", " The goblin grins.", " Blood drips on the stone.", ""]
