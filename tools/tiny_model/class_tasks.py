"""Tasks whose answer is one of a few: sentiment, topic, relatedness, kind."""

from __future__ import annotations

from random import Random

from tiny_model import world as w
from tiny_model.exchange import QUESTION_CUES, Exchange
from tiny_model.first_hour.phrasings import head as phrased
from tiny_model.world import World

SENTIMENT_HEADS = [
    "Classify the sentiment of the text as positive, negative or neutral.",
    "Is the following text positive, negative or neutral?",
    "Tell the sentiment of each text: positive, negative or neutral.",
    "What is the sentiment of this review?",
    "Decide whether the review is positive, negative or neutral.",
    "Label the text as positive, negative or neutral.",
]
AREA_HEADS = [
    "What is the text about? Choose one of: {}.",
    "Classify the topic of the text. Topics: {}.",
    "Choose the topic of the sentence from: {}.",
    "Which of these topics fits the text: {}?",
    "Label the text with one topic ({}).",
]
LABELS = ["Text", "Text", "Review", "Sentence", "Input", "Message"]


GOOD = """good great wonderful excellent lovely beautiful nice perfect fantastic brilliant amazing
superb charming pleasant friendly delightful reliable impressive""".split()  # noqa: SIM905
BAD = """bad awful terrible horrible poor ugly broken useless disappointing boring dreadful dirty
rude noisy unpleasant annoying weak miserable""".split()  # noqa: SIM905
OPINIONS = [
    "The {x} {was} {adj}.",
    "This {x} {was} really {adj}.",
    "I found the {x} {adj}.",
    "What a {adj} {x}!",
    "The {x} {was} {adj} and {adj2}.",
    "My friends say that the {x} {was} {adj}.",
    "It {was} a very {adj} {x}.",
]


def opinion(r: Random, world: World) -> tuple[str, str, str]:
    """A sentiment, a sentence with it, and the sentence's subject."""
    if r.random() < 0.5:
        (label, form), thing = world.pick(r, "opinion", w.rows("sentiments"), w.GOODS)
        return label, form.format(x=thing), thing
    label, adjectives = r.choice([("positive", GOOD), ("negative", BAD)])
    form, adjective, thing = world.pick(r, "opinion", OPINIONS, adjectives, w.GOODS)
    form = form.replace("a {adj}", w.a(adjective))
    was, second = r.choice(["was", "is"]), r.choice(adjectives)
    return label, form.format(x=thing, adj=adjective, adj2=second, was=was), thing


def sentiment(r: Random, form: Random, world: World) -> Exchange:
    head, name = phrased(form, world, "sentiment", SENTIMENT_HEADS), form.choice(LABELS)
    cue = form.choice(["Sentiment", "Sentiment", "Label", "Answer", "Class"])
    label, text, thing = opinion(r, world)
    if r.random() < 0.3:  # with a neutral sentence beside it
        beside = r.choice([row[1] for row in w.rows("sentiments") if row[0] == "neutral"])
        beside = beside.format(x=thing)
        text = f"{beside} {text}" if r.random() < 0.5 else f"{text} {beside}"
    return Exchange(head, name, text, cue, label, f"The sentiment is {label}.")


def areas() -> list[str]:
    return [row[0] for row in w.rows("areas")]


def area_sentence(r: Random, world: World, among: list[str]) -> tuple[str, str]:
    """One of some topics, and a sentence about it."""
    chosen = r.choice(among)
    _, who, *did = next(row for row in w.rows("areas") if row[0] == chosen)
    subject, predicate = world.pick(r, "sentence", who.split(", "), did)
    return chosen, w.cap(f"{subject} {predicate}.")


def area(r: Random, form: Random, world: World) -> Exchange:
    choices = form.sample(areas(), form.randint(2, 6))
    head = phrased(form, world, "area", AREA_HEADS).format(", ".join(choices))
    label, cue = form.choice(LABELS), form.choice(["Topic", "Topic", "Answer", "Label"])
    right, text = area_sentence(r, world, choices)
    return Exchange(head, label, text, cue, right, f"The text is about {right}.")


RELATED_HEADS = [
    "Are the two sentences about the same topic? Answer yes or no.",
    "Do these texts have the same topic? Answer yes or no.",
    "Is the second sentence related to the first? Answer yes or no.",
]
IS_ABOUT_HEADS = [
    "Is this text about {}? Answer yes or no.",
    "Is the sentence related to {}? Answer yes or no.",
    "Does the text have to do with {}? Answer yes or no.",
    "Is the following about {}? Answer with yes or no.",
]


RELATED_LABELS = [("1", "2"), ("A", "B"), ("First", "Second"), ("Sentence 1", "Sentence 2")]


def related(r: Random, form: Random, world: World) -> Exchange:
    """Whether two sentences have the same topic."""
    head = phrased(form, world, "related", RELATED_HEADS)
    one, two = form.choice(RELATED_LABELS)
    cue = form.choice(["Answer", "Answer", "Related", "Yes or no"])
    kind, text = area_sentence(r, world, areas())
    is_same = r.random() < 0.5
    _, second = area_sentence(r, world, [a for a in areas() if (a == kind) == is_same])
    reply = "yes" if is_same else "no"
    return Exchange(head, one, f"{text}\n{two}: {second}", cue, reply, w.cap(reply) + ".")


def is_about(r: Random, form: Random, world: World) -> Exchange:
    """Whether a sentence is about a topic."""
    named = form.choice(areas())
    head = phrased(form, world, "is_about", IS_ABOUT_HEADS).format(named)
    label = form.choice(LABELS)
    cue = form.choice(["Answer", "Answer", "Related", "Yes or no"])
    among = [named] if r.random() < 0.5 else [a for a in areas() if a != named]
    kind, text = area_sentence(r, world, among)
    reply = "yes" if kind == named else "no"
    return Exchange(head, label, text, cue, reply, w.cap(reply) + ".")


KIND_HEADS = ["Answer yes or no.", "Answer with yes or no.", "Yes or no?", ""]


def kind_of(r: Random, form: Random, world: World) -> Exchange:
    """Whether a thing is of a kind."""
    kind, name, _ = r.choice(w.rows("things"))
    kinds = sorted({row[0] for row in w.rows("things")} - {kind, "nature", "music"})
    asked = kind if r.random() < 0.5 and kind in kinds else r.choice(kinds)
    if {asked, kind} == {"fruit", "food"}:
        asked = kind
    reply = "yes" if asked == kind else "no"
    question = f"Is {name} {w.a(asked)}?"
    sentence = (
        f"Yes, {name} is {w.a(kind)}." if reply == "yes" else f"No, {name} is not {w.a(asked)}."
    )
    head = phrased(form, world, "kind_of", KIND_HEADS)
    label, cue = form.choice(QUESTION_CUES)
    return Exchange(head, label, question, cue, reply, sentence)
