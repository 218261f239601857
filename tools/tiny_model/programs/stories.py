"""Programs that ask for a very short story."""

from __future__ import annotations

from random import Random

from tiny_model import world as w
from tiny_model.text import Text
from tiny_model.world import World


def story(r: Random, world: World) -> Text:
    """A very short story about a person."""
    p = world.person(r)
    tone = r.choice(w.TONES)
    prose = r.choice(
        [
            f"Once there was {w.a(tone)} {p.job} called {p.first}, who lived in {p.city}. "
            f"One day {p.their} {p.pet} ran away. {p.first} looked for it everywhere and found "
            f"it in the garden, eating {p.food}. They walked home and were happy.",
            f"{p.first} was {w.a(tone)} {p.job} in {p.city}. Every morning {p.they} walked to "
            f"work with {p.their} {p.pet}. One day it began to rain, and a friend brought a "
            f"{p.color} umbrella. From then on they walked together.",
        ]
    )
    about = r.choice([p.first, w.a(p.job), w.a(p.pet), f"{w.a(p.job)} called {p.first}"])
    ask = r.choice(
        [
            "Write a short story about {}.",
            "Tell me a short story about {}.",
            "Tell a story about {}.",
        ]
    ).format(about)
    if r.random() < 0.5:
        return Text(r).turn("user", ask).answer(prose)
    return Text(r).ask(f"{ask}\n").reply(prose).end()
