"""Reviews in other words than those of the stages before."""

# ruff: noqa: E501 (a template is a line)
from __future__ import annotations

from random import Random

from tiny_model import world as w
from tiny_model.class_tasks import BAD, GOOD, LABELS
from tiny_model.exchange import Exchange
from tiny_model.first_hour.phrasings import head
from tiny_model.world import World

SUBJECTS = [
    *w.GOODS,
    *[
        "waiter",
        "soup",
        "room",
        "service",
        "staff",
        "battery",
        "screen",
        "parcel",
        "food",
        "breakfast",
        "cook",
        "driver",
        "flight",
        "train",
        "course",
        "teacher",
        "app",
        "support",
        "story",
        "ending",
        "view",
        "beach",
        "coffee",
        "dinner",
        "bread",
        "price",
        "delivery",
        "box",
        "handle",
        "zip",
        "button",
        "sound",
        "picture",
        "game",
        "seat",
        "bus",
        "garden",
        "doctor",
        "shop",
        "manual",
    ],
]
FORMS: dict[str, tuple[str, ...]] = {
    "positive": (
        "I love this {x}.", "We loved every minute of the {x}.", "I would buy this {x} again.",
        "The {x} works like a dream.", "Great {x}, I use it every day.", "The {x} made my day.",
        "I can recommend the {x} to everybody.", "Five stars for the {x}.", "Best {x} ever!",
        "The {x} was {good}, and we will come again.", "My children adore the {x}.",
        "The {x} was worth the money.", "Thank you for the {good} {x}!", "The {x} came early and works.",
        "I am so glad that I chose this {x}.", "The {x} is {good} and the price is fair.",
    ),
    "negative": (
        "I hate this {x}.", "The {x} broke after {n} days.", "The {x} died after {n} weeks.",
        "I want my money back for this {x}.", "Never again this {x}.", "The {x} never worked.",
        "Nobody should buy this {x}.", "One star for the {x}.", "Worst {x} ever!",
        "The {x} was {bad}, and we will not come again.", "The {x} fell apart.",
        "The {x} was cold and the waiter was {bad}.", "The {x} was a waste of time.",
        "The {x} came late and was {bad}.", "I am sorry that I chose this {x}.",
        "The {x} is {bad} and much too expensive.", "The {x} stopped after {n} hours.",
    ),
    "neutral": (
        "The {x} arrived on {day}.", "The {x} came on {day} morning.", "The {x} is {color}.",
        "I bought the {x} in {month}.", "The {x} has {n} parts.", "The {x} weighs {n} grams.",
        "There are {n} colors of this {x}.", "The {x} stands in the kitchen.", "This is the second {x}.",
        "The {x} was made in {city}.", "The {x} costs {n} euros.", "The {x} starts at {n} o'clock.",
        "My sister has the same {x}.", "The {x} is for my brother.", "We ordered the {x} last week.",
    ),
}  # fmt: skip


KIND = "review"  # of the combinations that are held out


def is_held_out(form: str, thing: str) -> bool:
    return w.is_held_out(KIND, form, thing)


def review(r: Random, world: World) -> tuple[str, str, str]:
    """A sentiment, a review with it, and its subject."""
    label = r.choice(sorted(FORMS))
    form, thing = world.pick(r, KIND, FORMS[label], SUBJECTS)
    text = _filled(r, form, thing)
    if r.random() < 0.35:  # with a neutral sentence beside it, or a second one of its kind
        forms = FORMS["neutral" if r.random() < 0.6 else label]
        forms = tuple(f for f in forms if world.split == "test" or not is_held_out(f, thing))
        beside = _filled(r, r.choice(forms), thing)
        text = f"{text} {beside}" if r.random() < 0.6 else f"{beside} {text}"
    return label, text, thing


def _filled(r: Random, form: str, thing: str) -> str:
    return form.format(
        x=thing, good=r.choice(GOOD), bad=r.choice(BAD), n=r.randint(2, 90), day=r.choice(w.DAYS),
        month=r.choice(w.MONTHS), color=r.choice(w.COLORS), city=w.city(r),
    )  # fmt: skip


def reviewed(r: Random, form: Random, world: World) -> Exchange:
    old = [
        "What is the sentiment of this review?",
        "Is the following text positive, negative or neutral?",
    ]
    instruction = head(form, world, "sentiment", old)
    name = form.choice([*LABELS, "Review", "Comment", "Post", "Passage"])
    cue = form.choice(
        ["Sentiment", "Sentiment", "Label", "Answer", "Class", "Mood", "It is", "Verdict"]
    )
    label, text, _ = review(r, world)
    return Exchange(instruction, name, text, cue, label, f"The sentiment is {label}.")
