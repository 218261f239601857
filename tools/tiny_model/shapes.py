"""Shapes that make a prompt of exchanges: completions, few-shot lists, chats of several turns.

A shape is `shape(r, world) -> Text`. The shapes of whole programs are in `programs/`, the
table of all shapes in `corpus.py`.
"""

from __future__ import annotations

from random import Random

from tiny_model import world as w
from tiny_model.class_tasks import is_about, related, sentiment
from tiny_model.exchange import Exchange, Task
from tiny_model.first_hour import people as otherwise
from tiny_model.first_hour.phrasings import head as phrased
from tiny_model.first_hour.spin import FIRST_HOUR
from tiny_model.person_tasks import is_job, value_of
from tiny_model.tasks import draw, fact
from tiny_model.text import Text
from tiny_model.tool_tasks import TOOLS, tool_question
from tiny_model.world import Person, World

SYSTEMS = [
    "You are a helpful assistant.",
    "You are a helpful assistant.",
    "You are a helpful assistant. The user is called {name}.",
    "You are a helpful assistant and give short answers.",
    "You are a friendly assistant.",
    "Answer briefly.",
    "You answer questions.",
    "You are sgc-tiny, a very small language model.",
]


# -- completions --


def body(e: Exchange) -> str:
    """The content and its label, without the cue."""
    return f"{e.label}: {e.content}" if e.label else e.content


def cue(e: Exchange) -> str:
    if not e.cue:
        return ""
    return e.cue if e.cue.endswith(" is") else f"{e.cue}:"


def completion(r: Random, world: World) -> Text:
    """`instruction`, `label: content`, and `cue:` with the reply, each on a line."""
    return complete(Text(r), exchange(r, world), r)


def exchange(r: Random, world: World, task: Task | None = None) -> Exchange:
    """An exchange of a task, or of a random task, in a random phrasing."""
    return (task or draw(r, world.stage)[1])(r, Random(r.random()), world)


def complete(text: Text, e: Exchange, r: Random) -> Text:
    head = f"{e.instruction}\n" if e.instruction else ""
    if head and r.random() < 0.15:
        head += "\n"
    if e.instruction and r.random() < 0.15:  # the instruction after the text
        text.ask(f"{body(e)}\n{e.instruction}\n")
    else:
        text.ask(f"{head}{body(e)}\n")
    text.ask(cue(e))
    return after_cue(text, e, r).end()


def after_cue(text: Text, e: Exchange, r: Random) -> Text:
    """Appends the reply, or its `key: value` lines, with a newline at the end."""
    if not e.cue:
        return fields(text, e.reply, r) if ": " in e.reply else text.reply(e.reply + "\n")
    if r.random() < 0.25:  # the program writes the space itself
        return text.ask(" ").reply(e.reply + "\n")
    return text.reply(f" {e.reply}\n")


def fields(text: Text, lines: str, r: Random) -> Text:
    """Appends `key: value` lines; the program writes no key, the first key, or all keys."""
    kind = r.randrange(3)
    if kind == 0:
        return text.reply(lines + "\n")
    if kind == 1:
        key, _, rest = lines.partition(":")
        return text.ask(f"{key}:").reply(rest + "\n")
    for line in lines.splitlines():
        key, _, value = line.partition(":")
        text.ask(f"{key}:").reply(value + "\n")
    return text


def few_shot(r: Random, world: World) -> Text:
    """Several exchanges of one task in one phrasing; all replies are training targets."""
    task, seed = draw(r, world.stage)[1], r.random()
    text = Text(r)
    gap = r.choice(["\n", "\n", "\n", ""])
    for i in range(r.randint(3, 7)):
        e = task(r, Random(seed), world)
        if i == 0 and e.instruction:
            text.ask(f"{e.instruction}\n\n")
        text.ask(f"{body(e)}\n{cue(e)}")
        after_cue(text, e, r).ask(gap)
    return text


def comparisons(r: Random, world: World) -> Text:
    """Many yes-or-no questions in a row: comparing is hard to learn from single questions."""
    tasks = (related, is_about, is_job)
    if r.random() < 0.4:
        text, _ = opened(r, world)
        for _ in range(r.randint(4, 8)):
            say(text, exchange(r, world, r.choice(tasks)), r)
        return text
    text, task, seed = Text(r), r.choice(tasks), r.random()
    is_same_form = r.random() < 0.5
    for i in range(r.randint(5, 10)):
        e = task(r, Random(seed if is_same_form else r.random()), world)
        if e.instruction and (i == 0 or not is_same_form):
            text.ask(f"{e.instruction}\n")
        text.ask(f"{body(e)}\n{cue(e)}")
        after_cue(text, e, r).ask("\n")
    return text


# -- chats --


def opened(r: Random, world: World) -> tuple[Text, str]:
    """A new chat, perhaps with a system message, and the user's first name."""
    text, first = Text(r), world.name(r)[0]
    if r.random() < 0.6:
        text.turn("system", r.choice(SYSTEMS).format(name=first))
    return text, first


def say(text: Text, e: Exchange, r: Random) -> None:
    """Appends a question and its answer as turns."""
    content = f"{e.instruction}\n{body(e)}" if e.instruction else e.content
    if e.instruction and r.random() < 0.1:
        content = f"{body(e)}\n{e.instruction}"
    if e.cue and r.random() < 0.15:
        content += f"\n{cue(e)}"
    wants_short = not e.sentence or ("nswer" in e.instruction and r.random() < 0.8)
    given = "Sure." if r.random() < 0.08 else ""
    wants_sentence = bool(given) or (not e.instruction and not wants_short)
    reply = e.sentence if e.sentence and wants_sentence else e.reply
    text.turn("user", content).answer(f" {reply}" if given else reply, given)


def chat(r: Random, world: World) -> Text:
    """One to four turns about different things."""
    text, first = opened(r, world)
    if r.random() < 0.3:
        greet(text, r, first)
    for _ in range(r.choice((1, 1, 1, 2, 3, 4))):
        say(text, exchange(r, world), r)
    if r.random() < 0.15:
        part(text, r)
    return text


GREETINGS = ["Hello!", "Hi!", "Hello", "Hi there!", "Good morning!", "Good evening!", "Hey"]
OFFERS = ["How can I help you?", "What can I do for you?"]
WHO = ["Who are you?", "What are you?", "What is your name?", "Tell me about yourself."]
THANKS = ["Thank you!", "Thanks!", "Thanks a lot.", "Thank you very much."]
BYES = ["Goodbye!", "Bye!", "See you!", "Good night!"]
I_AM = "I am sgc-tiny, a very small language model. I live in a toy world and know little."


def greet(text: Text, r: Random, first: str) -> None:
    kind = r.randrange(4)
    if kind == 0:
        text.turn("user", r.choice(WHO)).answer(I_AM)
    elif kind == 1:
        text.turn("user", f"{r.choice(GREETINGS)} How are you?").answer(
            f"I am fine, thank you. {OFFERS[0]}"
        )
    elif kind == 2:
        text.turn("user", f"{r.choice(GREETINGS)} My name is {first}.").answer(
            f"Hello {first}! {OFFERS[0]}"
        )
    else:
        text.turn("user", r.choice(GREETINGS)).answer(f"Hello! {OFFERS[0]}")


def part(text: Text, r: Random) -> None:
    if r.random() < 0.6:
        text.turn("user", r.choice(THANKS)).answer("You are welcome!")
    else:
        text.turn("user", r.choice(BYES)).answer("Goodbye!")


ASKED_ABOUT = [
    "Was my {nth} question about {kind}? Answer yes or no.",
    "Was the {nth} question about {kind}? Answer yes or no.",
    "Did my {nth} question have to do with {kind}? Answer yes or no.",
]
KIND_NAMES = {
    "food": ("food", "drink", "fruit"),
    "animals": ("animal",),
    "tools": ("tool",),
    "games": ("game",),
    "music": ("music",),
    "nature": ("nature",),
    "vehicles": ("vehicle",),
    "buildings": ("building",),
}
ASK_WHAT = ["What is {}?", "What is {}?", "Tell me what {} is.", "Can you tell me what {} is?"]


def follow_up(r: Random, world: World) -> Text:
    """Questions about things, then yes-or-no questions about these (examples/chat.py)."""
    text, _ = opened(r, world)
    while True:
        things = r.sample(w.rows("things"), r.choice((2, 2, 2, 3)))
        if w.is_held_out("follow up", things[0], things[1]) == (world.split == "test"):
            break
    for i, (_, name, is_what) in enumerate(things):
        sentence = f"{w.cap(name)} is {is_what}."
        question = phrased(r, world, "what_is", ASK_WHAT).format(name)
        if i and r.random() < 0.6:
            question = r.choice([f"And {name}?", f"What about {name}?"])
        given = "Sure." if i and r.random() < 0.4 else ""
        text.turn("user", question).answer(f" {sentence}" if given else sentence, given)
    for _ in range(r.choice((1, 1, 2))):
        i = r.randrange(len(things))
        nth = (
            "last" if i == len(things) - 1 and r.random() < 0.5 else ["first", "second", "third"][i]
        )
        right = next(name for name, kinds in KIND_NAMES.items() if things[i][0] in kinds)
        kind = right if r.random() < 0.5 else r.choice(list(KIND_NAMES))
        question = phrased(r, world, "asked_about", ASKED_ABOUT).format(nth=nth, kind=kind)
        text.turn("user", question).answer("yes" if kind == right else "no")
    return text


TOLD = {  # field: how users state it, how they ask for it later, and the answer
    "first": (
        ["My name is {v}.", "I am called {v}.", "I am {v}."],
        ["What is my name?", "Do you remember my name?"],
        "Your name is {v}.",
    ),
    "city": (
        ["I live in {v}.", "I come from {v}."],
        ["Where do I live?", "Which city do I live in?"],
        "You live in {v}.",
    ),
    "pet": (
        ["I have a {v}.", "My pet is a {v}."],
        ["Which pet do I have?", "What animal do I have?"],
        "You have a {v}.",
    ),
    "food": (
        ["I like {v}.", "I love to eat {v}."],
        ["What do I like to eat?", "Which food do I like?"],
        "You like {v}.",
    ),
    "color": (
        ["My favourite color is {v}.", "I like the color {v}."],
        ["What is my favourite color?", "Which color do I like?"],
        "Your favourite color is {v}.",
    ),
    "job": (
        ["I work as a {v}.", "My job is {v}."],
        ["What is my job?", "What do I do for a living?"],
        "You work as a {v}.",
    ),
    "age": (
        ["I am {v} years old."],
        ["How old am I?", "What is my age?"],
        "You are {v} years old.",
    ),
    "phone": (
        ["My phone number is {v}."],
        ["What is my phone number?"],
        "Your phone number is {v}.",
    ),
}
NOTED = ["I will remember that.", "Good to know.", "Thank you for telling me.", "Noted."]


def recall(r: Random, world: World) -> Text:
    """The user states personal facts and asks for them in a later turn."""
    text, _ = opened(r, world)
    while True:
        p, fields = world.person(r), r.sample(sorted(TOLD), r.randint(1, 4))
        if r.random() < 0.6 and "first" not in fields:
            fields.insert(0, "first")
        told = [told_value(p, field) for field in fields]
        if w.is_held_out("told", *told) == (world.split == "test"):
            break
    n_turns = 1 if r.random() < 0.7 else r.randint(1, len(fields))
    for i in range(n_turns):
        told = fields[i::n_turns]
        content = " ".join(_with(world, telling(r, world, f), told_value(p, f)) for f in told)
        if r.random() < 0.15:
            content = f"{r.choice(GREETINGS)} {content}"
        hello = f"Nice to meet you, {p.first}." if "first" in told else r.choice(NOTED)
        text.turn("user", content).answer(hello)
    if r.random() < 0.3:  # something in between
        say(text, exchange(r, world, r.choice((fact, sentiment))), r)
    for field in r.sample(fields, min(len(fields), r.choice((1, 1, 2, 3)))):
        _, questions, answer = TOLD[field]
        value = told_value(p, field)
        if r.random() < 0.25:
            question = f"{asking(r, world, field, questions)} Answer in one word."
            text.turn("user", question).answer(value)
        else:
            text.turn("user", asking(r, world, field, questions)).answer(
                _with(world, answer, value)
            )
    return text


def _with(world: World, told: str, value: str) -> str:
    """A sentence with a value; from the last stage on "an engineer" in place of "a engineer"."""
    if world.stage >= FIRST_HOUR and value[0] in "aeiou":
        told = told.replace("a {v}", "an {v}")
    return told.format(v=value)


def telling(r: Random, world: World, field: str) -> str:
    return otherwise.otherwise(r, world, "told", otherwise.TOLD, field, TOLD[field][0])


def asking(r: Random, world: World, field: str, questions: list[str]) -> str:
    return otherwise.otherwise(r, world, "asked", otherwise.ASKED, field, questions)


def told_value(p: Person, field: str) -> str:
    return p.first if field == "first" else str(value_of(p, field))


def tool_chat(r: Random, world: World) -> Text:
    """A question, the tool's message, and the answer based on it."""
    text, _ = opened(r, world)
    tool = r.choice(sorted(TOOLS))
    question, given, seen, answer = tool_question(r, world, tool)
    call = f"{r.choice(TOOLS[tool])}({given})"
    text.turn("user", question).answer(call).turn("tool", seen)
    return text.answer(answer if answer.endswith(".") else f"{w.cap(answer)}.")
