"""Questions with one right answer, as records that any prompt shape can be made from.

A task is `task(r, form, world) -> Exchange`: `r` draws what it is about, `form` how it is put, so
that an equal `form` gives another exchange in the same words. `TASKS` is the table of them. How an
exchange becomes a completion, a few-shot list or a chat is in `shapes.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tiny_model import world as w
from tiny_model.world import Person, World


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question. A prompt is the instruction, `label: content`, and `cue:`.

    instruction and label may be empty; `sentence`: the answer as a full sentence, for chats.
    """

    instruction: str
    label: str
    content: str
    cue: str
    reply: str
    sentence: str = ""


Task = Callable[[Random, Random, World], Exchange]


# -- facts --


QUESTION_CUES = [("Question", "Answer"), ("Q", "A"), ("Question", "The answer is"), ("", "Answer")]
QUESTION_HEADS = [
    "",
    "",
    "Answer each question in a few words.",
    "Answer the question.",
    "Answer the question in a few words.",
    "Give a short answer.",
    "Answer in one or two words.",
    "Please answer the following question.",
]


def _asked(
    r: Random, form: Random, world: World, qa: Callable[[], tuple[str, str, str]]
) -> Exchange:
    """qa: draws a question, its short answer, and its full one."""
    head, (label, cue) = form.choice(QUESTION_HEADS), form.choice(QUESTION_CUES)
    while True:
        question, answer, sentence = qa()
        if w.is_held_out("question", question, head, cue) == (world.split == "test"):
            return Exchange(head, label, question, cue, answer, sentence)


def fact(r: Random, form: Random, world: World) -> Exchange:
    return _asked(r, form, world, lambda: r.choice(w.rows("facts")))


def capital(r: Random, form: Random, world: World) -> Exchange:
    def qa() -> tuple[str, str, str]:
        country, city, part = r.choice(w.rows("countries"))
        asked = [
            (f"What is the capital of {country}?", city, f"The capital of {country} is {city}."),
            (f"Which city is the capital of {country}?", city, f"{city} is the capital."),
            (f"Of which country is {city} the capital?", country, f"{city} belongs to {country}."),
            (f"On which continent is {country}?", part, f"{country} is in {part}."),
            (f"Where is {city}?", f"in {country}", f"{city} is in {country}."),
        ]
        return asked[0] if r.random() < 0.4 else r.choice(asked)

    return _asked(r, form, world, qa)


def definition(r: Random, form: Random, world: World) -> Exchange:
    def qa() -> tuple[str, str, str]:
        kind, name, is_what = r.choice(w.rows("things"))
        sentence = f"{w.cap(name)} is {is_what}."
        if r.random() < 0.25:
            return f"What kind of thing is {name}?", kind, sentence
        return f"What is {name}?", is_what, sentence

    return _asked(r, form, world, qa)


def trade(r: Random, form: Random, world: World) -> Exchange:
    def qa() -> tuple[str, str, str]:
        job, does, place = r.choice(w.rows("people"))
        a_job = w.a(job)
        if r.random() < 0.5:
            return f"What does {a_job} do?", does, f"{w.cap(a_job)} {does}."
        at = f"at {w.a(place)}"
        return f"Where does {a_job} work?", at, f"{w.cap(a_job)} works {at}."

    return _asked(r, form, world, qa)


# -- numbers --


def sums(r: Random, form: Random, world: World) -> Exchange:
    sign, x, y = world.pick(r, "sum", ["+", "+", "-", "*"], range(1, 21), range(1, 21))
    x, y = {"*": ((x + 1) // 2, (y + 1) // 2), "-": (max(x, y), min(x, y))}.get(sign, (x, y))
    value = {"+": x + y, "-": x - y, "*": x * y}[sign]
    spoken = {"+": "plus", "-": "minus", "*": "times"}[sign]
    asked = r.choice(
        [
            f"What is {x} {sign} {y}?",
            f"What is {x} {spoken} {y}?",
            f"How much is {x} {sign} {y}?",
            f"Calculate {x} {sign} {y}.",
        ]
    )
    head, (label, cue) = form.choice(QUESTION_HEADS), form.choice(QUESTION_CUES)
    return Exchange(head, label, asked, cue, str(value), f"{x} {sign} {y} is {value}.")


def question(r: Random, form: Random, world: World) -> Exchange:
    """Any of the above: they are put in the same ways."""
    return r.choice((fact, fact, capital, definition, trade, sums))(r, form, world)


# -- classes --


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
    """A sentiment, a sentence of it, and what that is about."""
    if r.random() < 0.5:
        (label, form), thing = world.pick(r, "opinion", w.rows("sentiments"), w.GOODS)
        return label, form.format(x=thing), thing
    label, adjectives = r.choice([("positive", GOOD), ("negative", BAD)])
    form, adjective, thing = world.pick(r, "opinion", OPINIONS, adjectives, w.GOODS)
    form = form.replace("a {adj}", w.a(adjective))
    was, second = r.choice(["was", "is"]), r.choice(adjectives)
    return label, form.format(x=thing, adj=adjective, adj2=second, was=was), thing


def sentiment(r: Random, form: Random, world: World) -> Exchange:
    head, name = form.choice(SENTIMENT_HEADS), form.choice(LABELS)
    cue = form.choice(["Sentiment", "Sentiment", "Label", "Answer", "Class"])
    label, text, thing = opinion(r, world)
    if r.random() < 0.3:  # something neutral beside it
        beside = r.choice([row[1] for row in w.rows("sentiments") if row[0] == "neutral"])
        beside = beside.format(x=thing)
        text = f"{beside} {text}" if r.random() < 0.5 else f"{text} {beside}"
    return Exchange(head, name, text, cue, label, f"The sentiment is {label}.")


def areas() -> list[str]:
    return [row[0] for row in w.rows("areas")]


def area_sentence(r: Random, world: World, among: list[str]) -> tuple[str, str]:
    """One of some areas, and a sentence of it."""
    chosen = r.choice(among)
    _, who, *did = next(row for row in w.rows("areas") if row[0] == chosen)
    subject, predicate = world.pick(r, "sentence", who.split(", "), did)
    return chosen, w.cap(f"{subject} {predicate}.")


def area(r: Random, form: Random, world: World) -> Exchange:
    choices = form.sample(areas(), form.randint(2, 6))
    head = form.choice(AREA_HEADS).format(", ".join(choices))
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
    """Whether two sentences share their area."""
    head, (one, two) = form.choice(RELATED_HEADS), form.choice(RELATED_LABELS)
    cue = form.choice(["Answer", "Answer", "Related", "Yes or no"])
    kind, text = area_sentence(r, world, areas())
    is_same = r.random() < 0.5
    _, second = area_sentence(r, world, [a for a in areas() if (a == kind) == is_same])
    reply = "yes" if is_same else "no"
    return Exchange(head, one, f"{text}\n{two}: {second}", cue, reply, w.cap(reply) + ".")


def is_about(r: Random, form: Random, world: World) -> Exchange:
    """Whether a sentence is of an area."""
    named = form.choice(areas())
    head, label = form.choice(IS_ABOUT_HEADS).format(named), form.choice(LABELS)
    cue = form.choice(["Answer", "Answer", "Related", "Yes or no"])
    among = [named] if r.random() < 0.5 else [a for a in areas() if a != named]
    kind, text = area_sentence(r, world, among)
    reply = "yes" if kind == named else "no"
    return Exchange(head, label, text, cue, reply, w.cap(reply) + ".")


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
    head = form.choice(["Answer yes or no.", "Answer with yes or no.", "Yes or no?", ""])
    label, cue = form.choice(QUESTION_CUES)
    return Exchange(head, label, question, cue, reply, sentence)


# -- people: fields out of texts --


def biography(r: Random, p: Person, fields: list[str]) -> str:
    """Sentences that tell the fields, and some others; the first one says the name."""
    year, month, day = p.born
    spoken = f"{day} {w.MONTHS[month - 1]} {year}"
    tell: dict[str, list[str]] = {
        "job": [
            "{s} {does} for a living",
            "{s} {does}",
            "{s} works as {a_job}",
            "{s} is {a_job}",
            "{s} became {a_job}",
        ],
        "city": ["{s} lives in {city}", "{s} has a house in {city}", "{s} moved to {city}"],
        "born": ["{s} was born in {year}", "{s} was born in the year {year}"],
        "date": ["{s} was born on {spoken}", "{their} birthday is {spoken}"],
        "age": ["{s} is {age} years old", "{s} turned {age} this year"],
        "pet": ["{s} has a {pet}", "{s} keeps a {pet}", "{their} {pet} sleeps all day"],
        "food": ["{s} likes {food}", "{s} loves to eat {food}", "{their} favourite food is {food}"],
        "color": ["{their} favourite color is {color}", "{s} likes the color {color}"],
        "phone": ["{their} phone number is {phone}", "you can call {them} at {phone}"],
        "email": ["{their} email is {email}", "{s} can be reached at {email}"],
    }
    told = [field for field in fields if field != "name"]
    spare = [k for k in tell if k not in told and {k, "born"} != {"date", "born"} and k != "age"]
    if not {"date", "born", "age"} & set(told) or "date" in told:
        spare = [k for k in spare if k != "born"]
    told += r.sample(spare, r.choice((0, 0, 1, 2)))
    r.shuffle(told)
    words = {
        "does": p.does,
        "a_job": w.a(p.job),
        "city": p.city,
        "year": year,
        "spoken": spoken,
        "age": age_of(p),
        "pet": p.pet,
        "food": p.food,
        "color": p.color,
        "phone": p.phone,
        "email": p.email,
        "their": p.their,
        "them": "her" if p.is_woman else "him",
    }
    sentences = []
    for i, field in enumerate(told):
        forms = tell[field]
        if i == 0:
            forms = [form for form in forms if form.startswith("{s}")]
        if not forms:
            sentences.append(f"This is {p.name}.")
            forms = tell[field]
        subject = p.name if not sentences else r.choice([p.they, p.they, p.first])
        sentences.append(w.cap(r.choice(forms).format(s=subject, **words)) + ".")
    if len(sentences) > 2 and r.random() < 0.4:  # "She bakes bread in York" like joins
        first, second, *rest = sentences
        second = second.removesuffix(".")
        if second.startswith((w.cap(p.they) + " ", w.cap(p.their) + " ")):
            sentences = [f"{first.removesuffix('.')} and {second[0].lower()}{second[1:]}.", *rest]
    return " ".join(sentences) or f"This is {p.name}."


def age_of(p: Person) -> int:
    return 2030 - p.born[0]


def value_of(p: Person, field: str) -> str | int:
    year = p.born[0]
    values: dict[str, str | int] = {"name": p.name, "born": year, "date": p.iso, "age": age_of(p)}
    return values[field] if field in values else str(getattr(p, field))


FIELDS = ["job", "city", "born", "date", "age", "pet", "food", "color", "phone", "email"]
KEYS: dict[str, list[str]] = {  # how programs may call a field
    "name": ["name", "name", "full name"],
    "job": ["job", "job", "profession", "occupation"],
    "city": ["city", "city", "place", "home"],
    "born": ["born", "born", "birth year", "year"],
    "date": ["date", "birthday", "date of birth"],
    "age": ["age"],
    "pet": ["pet", "animal"],
    "food": ["food", "favourite food"],
    "color": ["color", "favourite color"],
    "phone": ["phone", "phone number"],
    "email": ["email"],
}
EXTRACT_HEADS = [
    "Extract the {} from the text.",
    "Extract {} from the text.",
    "Read the text and give the {}.",
    "Write down the {} of the person.",
    "Find the {} in the text.",
    "Get the {} of the person in this text.",
]
JSON_HEADS = [
    "Extract the {} from the text as JSON.",
    "Extract {} as JSON.",
    "Give the {} of the person as JSON.",
    "Return a JSON object with the keys {}.",
    "Read the text and write a JSON object with {}.",
]


def some_fields(r: Random, n_min: int = 1, n_max: int = 5) -> list[str]:
    """Fields in some order, mostly with the name first; at most one that tells the birth."""
    while True:
        fields = r.sample(FIELDS, r.randint(n_min, n_max) - 1)
        if len({"born", "date", "age"} & set(fields)) < 2:
            return ["name", *fields] if r.random() < 0.9 or not fields else fields


def named_fields(r: Random, fields: list[str]) -> list[str]:
    return [r.choice(KEYS[field]) for field in fields]


def fields_as_lines(r: Random, form: Random, world: World) -> Exchange:
    fields = some_fields(form)
    keys, shown = named_fields(form, fields), list[str]()
    if form.random() < 0.3:
        shown = [w.cap(key) for key in keys]
        keys = keys if world.stage < 2 else shown  # the lines are called as they are asked for
    head = form.choice(EXTRACT_HEADS).format(w.listed(keys))
    p, keys = world.person(r), shown or keys
    reply = "\n".join(f"{k}: {value_of(p, f)}" for k, f in zip(keys, fields, strict=True))
    return Exchange(head, "Text", biography(r, p, fields), "", reply)


def fields_as_json(r: Random, form: Random, world: World) -> Exchange:
    fields = some_fields(form)
    keys = named_fields(form, fields)
    head = form.choice(JSON_HEADS).format(w.listed(keys))
    cue = form.choice(["JSON", "JSON", "", "Answer", "Output"])
    p = world.person(r)
    reply = json.dumps({k: value_of(p, f) for k, f in zip(keys, fields, strict=True)})
    return Exchange(head, "Text", biography(r, p, fields), cue, reply)


ABOUT_PERSON: dict[str, list[str]] = {
    "job": ["What is {first}'s job?", "What does {name} do for a living?", "What is the job?"],
    "city": ["Where does {first} live?", "In which city does {name} live?", "What is the city?"],
    "born": ["When was {first} born?", "In which year was {name} born?"],
    "date": ["When is {first}'s birthday?", "What is {name}'s date of birth?"],
    "age": ["How old is {first}?", "How old is {name}?"],
    "pet": ["Which pet does {first} have?", "What animal does {name} have?"],
    "food": ["What does {first} like to eat?", "What is {name}'s favourite food?"],
    "color": ["What is {first}'s favourite color?", "Which color does {name} like?"],
    "phone": ["What is {first}'s phone number?", "How can I call {name}?"],
    "email": ["What is {first}'s email?", "What is {name}'s email?"],
    "name": ["What is the name of the person?", "Who is the text about?"],
}
READ_HEADS = [
    "Read the text and answer the question.",
    "Answer the question about the text.",
    "Use the text to answer the question.",
    "",
]


def reading(r: Random, form: Random, world: World) -> Exchange:
    """A question that the text answers; sometimes about one of two people."""
    head, (label, cue) = form.choice(READ_HEADS), form.choice(QUESTION_CUES)
    p, fields = world.person(r), some_fields(r, 2, 4)
    field = r.choice(fields)
    text = biography(r, p, fields)
    if r.random() < 0.3 and field != "name":
        other = world.person(r)
        texts = [text, biography(r, other, fields)]
        r.shuffle(texts)
        text = " ".join(texts)
    forms = [q for q in ABOUT_PERSON[field] if "{" in q or " " not in text]
    question = r.choice(forms or ABOUT_PERSON[field]).format(first=p.first, name=p.name)
    value = str(value_of(p, field))
    content = f"{text}\n{label}: {question}" if label else f"{text}\n{question}"
    return Exchange(head, "Text", content, cue, value, f"{w.cap(value)}.")


def is_job(r: Random, form: Random, world: World) -> Exchange:
    p = world.person(r)
    jobs = [row[0] for row in w.rows("people")]
    asked = p.job if r.random() < 0.5 else r.choice(jobs)
    reply = "yes" if asked == p.job else "no"
    question = r.choice(
        [
            f"Is the person {w.a(asked)}?",
            f"Is {p.first} {w.a(asked)}?",
            f"Is {p.they} {w.a(asked)}?",
        ]
    )
    text = biography(r, p, ["name", "job", *r.sample(["city", "born", "pet"], 1)])
    content = f"{text}\nQuestion: {question}"
    sentence = f"{w.cap(reply)}, {p.they} is {w.a(p.job)}."
    return Exchange(form.choice(READ_HEADS), "Text", content, "Answer", reply, sentence)


# -- fields of fixed form --


def date(r: Random, form: Random, world: World) -> Exchange:
    year, month, day = r.randint(1900, 2030), r.randint(1, 12), r.randint(1, 28)
    name = w.MONTHS[month - 1]
    spoken = r.choice(
        [f"{day} {name} {year}", f"{name} {day}, {year}", f"the {day} of {name} {year}"]
    )
    head = form.choice(["Write the date as YYYY-MM-DD.", "Give the date in the form YYYY-MM-DD."])
    return Exchange(head, "Text", spoken, "Date", f"{year}-{month:02}-{day:02}")


def clock(r: Random, form: Random, world: World) -> Exchange:
    hour, minute = r.randint(1, 12), r.choice((0, 0, 15, 30, 45, r.randint(1, 59)))
    half = r.choice(("am", "pm"))
    spoken = f"{hour} {half}" if minute == 0 else f"{hour}:{minute:02} {half}"
    at = hour % 12 + (12 if half == "pm" else 0)
    what = r.choice(["The train leaves", "We meet", "The shop opens", "The film starts", "Come"])
    head = form.choice(["Write the time as HH:MM.", "Give the time of day in the form HH:MM."])
    return Exchange(head, "Text", f"{what} at {spoken}.", "Time", f"{at:02}:{minute:02}")


# -- tools --


TOOLS: dict[str, tuple[str, ...]] = {
    "search": ("search", "search engine", "lookup"),
    "calculator": ("calculator", "calculator", "math"),
    "calendar": ("calendar", "calendar", "date"),
    "weather": ("weather", "weather", "forecast"),
}
TOOL_DOES = {
    "search": "looks up a fact",
    "calculator": "works out a sum",
    "calendar": "tells days and dates",
    "weather": "tells the weather of a city",
}
TOOL_HEADS = [
    "Which tool answers the question? Tools: {}.",
    "Choose the right tool for the question: {}.",
    "You can use one of these tools: {}. Which one do you need?",
    "Pick a tool ({}) for the request.",
]


def tool_question(r: Random, world: World, tool: str) -> tuple[str, str, str, str]:
    """A question for the tool, what the tool is given, what it says, and the answer."""
    if tool == "calculator":
        sign, x, y = world.pick(r, "big sum", "+-*", range(2, 100), range(2, 100))
        x, y = (max(x, y), min(x, y)) if sign == "-" else (x, y)
        value = {"+": x + y, "-": x - y, "*": x * y}[sign]
        spoken = {"+": "plus", "-": "minus", "*": "times"}[sign]
        asked = r.choice(
            [
                f"What is {x} {spoken} {y}?",
                f"What is {x} {sign} {y}?",
                f"How much is {x} {spoken} {y}?",
            ]
        )
        return asked, f"{x} {sign} {y}", str(value), f"{value}"
    if tool == "weather":
        place, sky = w.city(r), r.choice(["sunny", "rainy", "cloudy", "windy", "snowy"])
        degrees = r.randint(1, 30)
        asked = r.choice(
            [
                f"What is the weather in {place}?",
                f"Is it {sky} in {place} today?",
                f"Do I need an umbrella in {place}?",
                f"How warm is it in {place}?",
            ]
        )
        return (
            asked,
            place,
            f"{sky}, {degrees} degrees",
            f"It is {sky} in {place}, {degrees} degrees.",
        )
    if tool == "calendar":
        n, month = world.pick(r, "day", range(1, 29), w.MONTHS)
        day = r.choice(w.DAYS)
        asked = r.choice(
            [
                f"Which day of the week is {n} {month}?",
                f"What day is {n} {month}?",
                f"On which weekday does {n} {month} fall?",
            ]
        )
        return asked, f"{n} {month}", day, day
    if r.random() < 0.5:
        p = world.person(r)
        field = r.choice(["job", "city", "born", "food", "pet"])
        asked = r.choice(ABOUT_PERSON[field][:2]).format(first=p.name, name=p.name)
        while "{" not in "".join(ABOUT_PERSON[field]) or p.name not in asked:
            asked = r.choice(ABOUT_PERSON[field][:2]).format(first=p.name, name=p.name)
        return asked, p.name, biography(r, p, ["name", field]), str(value_of(p, field))
    country, city, _ = r.choice(w.rows("countries"))
    asked = r.choice(
        [f"What is the capital of {country}?", f"Which city is the capital of {country}?"]
    )
    return asked, f"capital of {country}", f"The capital of {country} is {city}.", city


def tool_names(r: Random, n_min: int = 2) -> dict[str, str]:
    """Some tools, and what they are called."""
    kinds = r.sample(sorted(TOOLS), r.randint(n_min, len(TOOLS)))
    return {kind: r.choice(TOOLS[kind]) for kind in kinds}


def tool_choice(r: Random, form: Random, world: World) -> Exchange:
    names = tool_names(form)
    tool = r.choice(sorted(names))
    question = tool_question(r, world, tool)[0]
    head = form.choice(TOOL_HEADS).format(", ".join(names.values()))
    label = form.choice(["Question", "Question", "Request", "User"])
    return Exchange(head, label, question, form.choice(["Tool", "Tool", "Answer"]), names[tool])


# -- words --


SUMMARY_HEADS = [
    "Summarize the text in one sentence.",
    "Write a one sentence summary of the text.",
    "Give a short summary.",
    "Sum up the following text.",
]


def summary(r: Random, form: Random, world: World) -> Exchange:
    p = world.person(r)
    fields = r.sample(["job", "city", "pet", "food"], 3)
    told = {"job": f"is {w.a(p.job)}", "city": f"lives in {p.city}", "pet": f"has a {p.pet}"}
    told["food"] = f"likes {p.food}"
    text = biography(r, p, ["name", *fields])
    facts = [told[f] for f in ("job", "city", "pet", "food") if f in fields]
    head = form.choice(SUMMARY_HEADS)
    return Exchange(head, "Text", text, "Summary", f"{p.name} {w.listed(facts)}.")


def name_some(r: Random, form: Random, world: World) -> Exchange:
    """A list of things of a kind."""
    kinds = sorted({row[0] for row in w.rows("things")} - {"nature", "music", "building"})
    kind, n = r.choice(kinds), r.randint(2, 4)
    names = [
        row[1].split(" ", 1)[-1] if row[1][:2] in ("a ", "an") else row[1]
        for row in w.rows("things")
        if row[0] == kind
    ]
    number = ["two", "three", "four"][n - 2] if r.random() < 0.5 else str(n)
    asked = r.choice(["Name {n} {k}s.", "List {n} {k}s.", "Give me {n} {k}s."])
    reply = ", ".join(r.sample(names, n))
    label, cue = form.choice(QUESTION_CUES)
    content = asked.format(n=number, k=kind).replace("foods", "kinds of food")
    return Exchange("", label, content, cue, reply, w.cap(reply) + ".")


TASKS: dict[str, tuple[Task, float]] = {  # and how often
    "question": (question, 6),
    "definition": (definition, 1),
    "sums": (sums, 1),
    "sentiment": (sentiment, 2.5),
    "area": (area, 2),
    "related": (related, 1.5),
    "is_about": (is_about, 1.5),
    "kind_of": (kind_of, 1.5),
    "fields_as_lines": (fields_as_lines, 3),
    "fields_as_json": (fields_as_json, 3.5),
    "reading": (reading, 2.5),
    "is_job": (is_job, 1),
    "date": (date, 0.7),
    "clock": (clock, 0.7),
    "tool_choice": (tool_choice, 2),
    "summary": (summary, 1.2),
    "name_some": (name_some, 0.7),
}


LATER: tuple[dict[str, float], ...] = (  # weights of later stages
    {},
    {
        "sums": 5,
        "area": 3,
        "related": 3,
        "is_about": 2.5,
        "fields_as_lines": 9,
        "fields_as_json": 10,
        "reading": 6,
        "tool_choice": 4,
    },
    {
        "sums": 5,
        "area": 5,
        "related": 7,
        "is_about": 7,
        "fields_as_lines": 9,
        "fields_as_json": 8,
        "reading": 8,
        "tool_choice": 7,
    },
    {
        "sums": 6,
        "area": 4,
        "related": 6,
        "is_about": 6,
        "is_job": 3,
        "fields_as_lines": 8,
        "fields_as_json": 7,
        "reading": 9,
        "tool_choice": 6,
    },
    {
        "sums": 5,
        "area": 4,
        "related": 4,
        "is_about": 4,
        "is_job": 2,
        "fields_as_lines": 12,
        "fields_as_json": 7,
        "reading": 10,
        "tool_choice": 13,
    },
)


def draw(r: Random, stage: int = 0) -> tuple[str, Task]:
    """A task by its weight."""
    names = list(TASKS)
    name = r.choices(names, [LATER[stage].get(n, TASKS[n][1]) for n in names])[0]
    return name, TASKS[name][0]
