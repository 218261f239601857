"""Tasks on texts about people: extraction of fields, and questions."""

from __future__ import annotations

import json
from random import Random

from tiny_model import world as w
from tiny_model.exchange import QUESTION_CUES, Exchange
from tiny_model.first_hour import people as otherwise
from tiny_model.first_hour.phrasings import head as phrased
from tiny_model.world import Person, World


def biography(r: Random, p: Person, fields: list[str]) -> str:
    """Sentences that state the fields, and some others; the first one states the name."""
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
    if len(sentences) > 2 and r.random() < 0.4:  # join the first two with "and"
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
KEYS: dict[str, list[str]] = {  # the names that programs may use for a field
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
    """Fields in random order, mostly with the name first; at most one of born, date and age."""
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
        keys = keys if world.stage < 2 else shown  # the instruction uses the keys of the lines
    head = phrased(form, world, "extract", EXTRACT_HEADS).format(w.listed(keys))
    p, keys = world.person(r), shown or keys
    reply = "\n".join(f"{k}: {value_of(p, f)}" for k, f in zip(keys, fields, strict=True))
    return Exchange(head, "Text", biography(r, p, fields), "", reply)


def fields_as_json(r: Random, form: Random, world: World) -> Exchange:
    fields = some_fields(form)
    keys = named_fields(form, fields)
    head = phrased(form, world, "json", JSON_HEADS).format(w.listed(keys))
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
    head, (label, cue) = phrased(form, world, "read", READ_HEADS), form.choice(QUESTION_CUES)
    p, fields = world.person(r), some_fields(r, 2, 4)
    field = r.choice(fields)
    texts = [biography(r, p, fields)]
    if r.random() < 0.3 and field != "name":
        other = world.person(r)
        texts.append(biography(r, other, fields))
        r.shuffle(texts)
    text = " ".join(texts)
    forms = [q for q in ABOUT_PERSON[field] if "{" in q or " " not in text]
    forms = forms or ABOUT_PERSON[field]
    question = otherwise.otherwise(r, world, "about", otherwise.ABOUT, field, forms)
    if len(texts) > 1:
        question = question.replace("the person", "{name}")
    question = question.format(first=p.first, name=p.name)
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
    head = phrased(form, world, "read", READ_HEADS)
    return Exchange(head, "Text", content, "Answer", reply, sentence)
