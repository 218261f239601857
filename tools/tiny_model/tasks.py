"""Questions with one right answer, as records from which any prompt shape can be made.

A task is `task(r, form, world) -> Exchange`: `r` draws the content and `form` the phrasing, so an
equal `form` makes another exchange in the same phrasing. `TASKS` is the table of tasks. `shapes.py`
makes completions, few-shot lists and chats of exchanges.
"""

from __future__ import annotations

from random import Random

from tiny_model import world as w
from tiny_model.class_tasks import area, is_about, kind_of, related, sentiment
from tiny_model.exchange import QUESTION_CUES, QUESTION_HEADS, Exchange, Task, asked_of
from tiny_model.first_hour.phrasings import head as phrased
from tiny_model.first_hour.reviews import reviewed
from tiny_model.first_hour.services import choose_tool
from tiny_model.first_hour.summaries import SUMMARY_HEADS, summarised
from tiny_model.first_hour.sums import may_have, sums_to_100
from tiny_model.person_tasks import biography, fields_as_json, fields_as_lines, is_job, reading
from tiny_model.tool_tasks import tool_choice
from tiny_model.world import World


def fact(r: Random, form: Random, world: World) -> Exchange:
    return asked_of(r, form, world, lambda: r.choice(w.rows("facts")))


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

    return asked_of(r, form, world, qa)


def definition(r: Random, form: Random, world: World) -> Exchange:
    def qa() -> tuple[str, str, str]:
        kind, name, is_what = r.choice(w.rows("things"))
        sentence = f"{w.cap(name)} is {is_what}."
        if r.random() < 0.25:
            return f"What kind of thing is {name}?", kind, sentence
        return f"What is {name}?", is_what, sentence

    return asked_of(r, form, world, qa)


def trade(r: Random, form: Random, world: World) -> Exchange:
    def qa() -> tuple[str, str, str]:
        job, does, place = r.choice(w.rows("people"))
        a_job = w.a(job)
        if r.random() < 0.5:
            return f"What does {a_job} do?", does, f"{w.cap(a_job)} {does}."
        at = f"at {w.a(place)}"
        return f"Where does {a_job} work?", at, f"{w.cap(a_job)} works {at}."

    return asked_of(r, form, world, qa)


# -- numbers --


def small_sum(r: Random, world: World) -> tuple[str, int, int]:
    """A sign and two numbers to 20."""
    while True:
        sign, x, y = world.pick(r, "sum", ["+", "+", "-", "*"], range(1, 21), range(1, 21))
        x, y = {"*": ((x + 1) // 2, (y + 1) // 2), "-": (max(x, y), min(x, y))}.get(sign, (x, y))
        if may_have(world, sign, x, y):
            return sign, x, y


def sums(r: Random, form: Random, world: World) -> Exchange:
    sign, x, y = small_sum(r, world)
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
    head = phrased(form, world, "question", QUESTION_HEADS)
    label, cue = form.choice(QUESTION_CUES)
    return Exchange(head, label, asked, cue, str(value), f"{x} {sign} {y} is {value}.")


def question(r: Random, form: Random, world: World) -> Exchange:
    """Any task above; they have the same phrasings."""
    return r.choice((fact, fact, capital, definition, trade, sums))(r, form, world)


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


# -- words --


def summary(r: Random, form: Random, world: World) -> Exchange:
    p = world.person(r)
    fields = r.sample(["job", "city", "pet", "food"], 3)
    told = {"job": f"is {w.a(p.job)}", "city": f"lives in {p.city}", "pet": f"has a {p.pet}"}
    told["food"] = f"likes {p.food}"
    text = biography(r, p, ["name", *fields])
    facts = [told[f] for f in ("job", "city", "pet", "food") if f in fields]
    head = phrased(form, world, "summary", SUMMARY_HEADS)
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


TASKS: dict[str, tuple[Task, float]] = {  # with their weights
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
    "sums_to_100": (sums_to_100, 0),  # these only in the last stage
    "reviewed": (reviewed, 0),
    "choose_tool": (choose_tool, 0),
    "summarised": (summarised, 0),
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
    {
        "question": 7,
        "sums": 3,
        "sums_to_100": 10,
        "sentiment": 3,
        "reviewed": 5,
        "area": 5,
        "related": 5,
        "is_about": 5,
        "is_job": 3,
        "fields_as_lines": 8,
        "fields_as_json": 7,
        "reading": 12,
        "tool_choice": 6,
        "choose_tool": 10,
        "summary": 2,
        "summarised": 14,
    },
)


def draw(r: Random, stage: int = 0) -> tuple[str, Task]:
    """A random task by its weight."""
    names = list(TASKS)
    name = r.choices(names, [LATER[stage].get(n, TASKS[n][1]) for n in names])[0]
    return name, TASKS[name][0]
