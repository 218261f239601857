"""The shapes of whole programs: tips and their expansion, judges, extraction, reasoning, agents.

Each is `shape(r, world) -> Text`. They include the prompts of `examples/`, and many paraphrases.
The table of all shapes is in `corpus.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random

from tiny_model import world as w
from tiny_model.person_tasks import age_of, biography
from tiny_model.text import END, Text
from tiny_model.tool_tasks import TOOL_DOES, TOOLS, tool_names, tool_question
from tiny_model.world import World

NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five"}


# -- tips --


GENERIC_TIPS = [
    ("Start with something small", "small beginnings are easy to keep"),
    ("Ask someone who knows {t}", "good advice saves many mistakes"),
    ("Take some time for {t} every day", "what you repeat becomes easy"),
    ("Make a simple plan for {t}", "a plan shows you the next step"),
    ("Prepare what you need for {t}", "good tools make light work"),
    ("Take a break when you are tired", "a rested mind sees more"),
    ("Read a little about {t}", "others have made the mistakes before you"),
    ("Share {t} with a friend", "what is shared is more fun"),
    ("Keep a short diary of {t}", "you see what helps and what does not"),
    ("Be patient with yourself", "everything new takes time"),
    ("Do not spend too much on {t}", "care is worth more than money"),
    ("Look at how others do it", "a good example teaches quickly"),
]
GENERIC_GISTS = [
    "patience and a little practice go a long way",
    "small steps every day bring you forward",
    "a simple plan and some patience are enough",
]
DOINGS = """making repairing choosing buying collecting selling building cleaning painting sharing
storing carrying finding testing""".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Advice:
    """Tips for a topic, and the words that ask for them."""

    name: str
    gist: str
    tips: tuple[tuple[str, str], ...]


def topic(r: Random, world: World) -> Advice:
    """A topic of the world by one of its names; one time in five any other topic, with tips that
    fit any topic."""
    if r.random() < 0.8:
        t = r.choice(w.topics())
        return Advice(t.names[0] if r.random() < 0.6 else r.choice(t.names), t.gist, t.tips)
    while True:
        name = any_topic(r)
        if w.is_held_out("topic", name) == (world.split == "test"):
            break
    tips = [(tip.format(t=name), why) for tip, why in r.sample(GENERIC_TIPS, 5)]
    return Advice(name, r.choice(GENERIC_GISTS), tuple(tips))


def any_topic(r: Random) -> str:
    thing = r.choice([*w.GOODS, *w.PETS])
    return r.choice(
        [
            f"{r.choice(DOINGS)} {w.a(thing)}",
            f"{r.choice(DOINGS)} {r.choice(w.FOODS)}",
            f"visiting {w.city(r)}",
            f"living in {w.city(r)}",
            f"working as {w.a(w.job_of(r)[0])}",
            f"your first {thing}",
            r.choice(w.FOODS),
            r.choice([row[1] for row in w.rows("things")]),
        ]
    )


TIPS_HEADS = [
    "Here are {n} concise tips for {t}.\n",
    "Here are {n} concise tips for {t}.\n",
    "Here are {n} tips for {t}.\n",
    "Here are {n} tips for {t}:\n",
    "Here are {n} short tips for {t}:\n",
    "{n} tips for {t}:\n",
    "Give {n} tips for {t}.\n",
    "Tips for {t}:\n",
]
EXPAND_HEADS = [
    "Please expand the following tip into a detailed paragraph: ",
    "Please expand the following tip into a detailed paragraph: ",
    "Please expand the following tip into a paragraph: ",
    "Expand this tip into a paragraph: ",
    "Explain this tip in more detail: ",
    "Write a paragraph about this tip: ",
]
CLOSINGS = [
    "It costs little and pays back every day.",
    "Try it for a week and you will see the difference.",
    "It takes some practice, and then it becomes a habit.",
    "Many people forget this, although it is easy.",
    "Begin today, even if it is only for a few minutes.",
    "Once you are used to it, you will not want to go back.",
]


def tips_of(r: Random, world: World) -> tuple[Advice, str, list[tuple[str, str]]]:
    """A topic, a program's prompt that asks for tips, and the tips."""
    while True:
        t, head = topic(r, world), r.choice(TIPS_HEADS)
        tips = r.sample(t.tips, r.choice((2, 2, 2, 3, 3, 4, 5)))
        if w.is_held_out("tips", t.name, len(tips)) == (world.split == "test"):
            return t, w.cap(head.format(n=numbered(r, len(tips)), t=t.name)), tips


def paragraph(r: Random, tip: str, why: str) -> str:
    """A tip with its reason, in at most 48 tokens."""
    start = r.choice(["{tip}, because {why}.", "{tip}, because {why}.", "{tip}. {Why}."])
    return f"{start.format(tip=tip, why=why, Why=w.cap(why))} {r.choice(CLOSINGS)}"


def numbered(r: Random, n: int) -> str:
    return str(n) if r.random() < 0.75 else NUMBERS[n]


def tips_program(r: Random, world: World) -> Text:
    """A skeleton of short tips, their expansions merged, and a summary (tip_suggestion.py)."""
    t, head, tips = tips_of(r, world)
    text = Text(r).ask(head)
    dot = r.choice([".", ""])  # a stop string may remove it
    for i, (tip, _) in enumerate(tips, 1):
        text.ask(f"{i}.").reply(f" {tip}{dot}").ask("\n")
    if r.random() < 0.7:
        for i, (tip, why) in enumerate(tips, 1):
            text.ask(f"Tip {i}: {paragraph(r, tip, why)}\n")
    if r.random() < 0.8:
        lead = r.choice(["", "", f" when it comes to {t.name},"])
        text.ask("In summary,").reply(f"{lead} {t.gist}.")
    return text.end()


def tips_at_once(r: Random, world: World) -> Text:
    """The whole list in one generation, or as a chat."""
    t, prompt, tips = tips_of(r, world)
    n = len(tips)
    lines = "\n".join(f"{i}. {tip}." for i, (tip, _) in enumerate(tips, 1))
    if r.random() < 0.5:
        if r.random() < 0.5:
            return Text(r).ask(f"{prompt}1.").reply(lines.removeprefix("1.") + "\n").end()
        return Text(r).ask(prompt).reply(lines + "\n").end()
    asked = r.choice(
        [
            "Give me {n} tips for {t}.",
            "Can you give me {n} tips for {t}?",
            "Please list {n} tips for {t}.",
            "I want {n} tips for {t}.",
        ]
    )
    question = asked.format(n=numbered(r, n), t=t.name)
    text = Text(r).turn("user", question).answer(lines)
    if r.random() < 0.4:
        i = r.randrange(n)
        nth = ["first", "second", "third", "fourth", "fifth"][i]
        text.turn("user", f"Please explain the {nth} tip.").answer(paragraph(r, *tips[i]))
    return text


def expansion(r: Random, world: World) -> Text:
    """A tip and its paragraph."""
    while True:
        (tip, why), head = r.choice(topic(r, world).tips), r.choice(EXPAND_HEADS)
        if w.is_held_out("expansion", tip, head) == (world.split == "test"):
            break
    tip_text = tip + r.choice(["", "", "."])
    if r.random() < 0.2:
        return Text(r).turn("user", head + tip_text).answer(paragraph(r, tip, why))
    space = r.choice(["", " "])  # a generated tip begins with a space
    return Text(r).ask(f"{head}{space}{tip_text}\n").reply(paragraph(r, tip, why)).end()


def advice(r: Random, world: World) -> Text:
    """One tip in a chat, or a few lines about a topic."""
    t = topic(r, world)
    tip, why = r.choice(t.tips)
    if r.random() < 0.5:
        asked = r.choice(
            [
                "What should I know about {t}?",
                "Do you have advice on {t}?",
                "Tell me something about {t}.",
                "What matters in {t}?",
            ]
        )
        return (
            Text(r)
            .turn("user", asked.format(t=t.name))
            .answer(f"{w.cap(t.gist)}. {tip}, because {why}.")
        )
    asked = r.choice(["Write a short text about {t}.\n", "Write a few sentences about {t}.\n"])
    other = r.choice(t.tips)
    prose = f"{w.cap(t.gist)}. {tip}, because {why}."
    if other[0] != tip:
        prose += f" {other[0]}, because {other[1]}."
    return Text(r).ask(asked.format(t=t.name)).reply(prose).end()


# -- essays --


DIMENSIONS = ["Clarity", "Originality", "Evidence", "Structure", "Style", "Persuasion"]
OTHER_NAMES = {
    "Clarity": ["Simplicity", "Readability"],
    "Originality": ["Creativity", "Novelty"],
    "Evidence": ["Support", "Facts"],
    "Structure": ["Organization", "Coherence", "Order"],
    "Style": ["Language", "Grammar"],
    "Persuasion": ["Argument", "Persuasiveness"],
}
PLAIN = dict(zip(DIMENSIONS, [2, 0, 0, 1, 1, 0], strict=True))  # levels of a mere list of facts
LEVELS = ["poor", "middling", "good"]
GRADES: dict[str, list[int]] = {  # the levels of six dimensions, in any order
    "A": [2, 2, 2, 2, 2, 2],
    "B": [2, 2, 2, 1, 1, 1],
    "C": [1, 1, 1, 1, 1, 0],
    "D": [0, 0, 0, 0, 0, 0],
}
SUBJECTS = """tea,coffee,bread,the bicycle,the night train,the public library,chess,the garden,
the school choir,the market,the river,the old clock,the letter,the map,the long walk,the telephone,
the museum,the quiet evening,the kitchen,the bus,the newspaper,the weekly market,honey,the piano,
the dog,homework,the computer,the bridge,breakfast,silence,paper,rain""".replace("\n", "").split(
    ","
)
ESSAY_HEADS = [
    "Please evaluate the following essay.\n",
    "Please evaluate the following essay.\n",
    "Please judge the following essay.\n",
    "Read the following essay.\n",
    "Essay: ",
    "Evaluate this essay:\n",
]
METRIC_ASKS = [
    "Evaluate it by this metric: {d}. End your judgment with END.\nJudgment:",
    "Evaluate it by this metric: {d}. End your judgment with END.\nJudgment:",
    "Evaluate it by this metric: {d}. End your judgment with the word END.\nJudgment:",
    "Judge it by this metric: {d}. End your judgment with END.\nJudgment:",
    "Judge its {l}. End your judgment with END.\nJudgment:",
]


def essay(r: Random, world: World) -> tuple[str, str, dict[str, str]]:
    """An essay, its planted grade, and the planted level of each dimension."""
    if r.random() < 0.08:
        facts = [f"{w.cap(name)} is {what}." for _, name, what in r.sample(w.rows("things"), 2)]
        facts += [row[2] for row in r.sample(w.rows("facts"), 2)]
        prose = " ".join(r.sample(facts, r.randint(2, 4)))
        return prose, "C", {d: LEVELS[n] for d, n in PLAIN.items()}
    grade = r.choice("ABCD")
    numbers = GRADES[grade][:]
    if r.random() < 0.5:  # one dimension has another level
        numbers[r.randrange(6)] = {"A": 1, "B": r.choice((1, 2)), "C": r.choice((0, 1)), "D": 1}[
            grade
        ]
    r.shuffle(numbers)
    levels = {d: LEVELS[n] for d, n in zip(DIMENSIONS, numbers, strict=True)}
    subjects = [*SUBJECTS, *(f"the {thing}" for thing in w.GOODS)]
    subject, *chosen = world.pick(r, "essay", subjects, *[range(3)] * 6)
    lines = [w.essay_lines("e", d, level) for d, level in levels.items()]
    sentences = [
        w.cap(of[i].format(t=subject, n=r.randint(20, 900), p=r.randint(6, 9)))
        for of, i in zip(lines, chosen, strict=True)
    ]
    return " ".join(sentences), grade, levels


def judgment(r: Random, dimension: str, level: str) -> str:
    return r.choice(w.essay_lines("j", dimension, level))


def verdict(levels: dict[str, str]) -> str:
    """A summary of some dimensions, in at most 32 tokens."""
    by_level = {lv: [d.lower() for d in levels if levels[d] == lv] for lv in LEVELS}
    if len(by_level["good"]) == len(levels):
        return "the essay is strong in every way."
    if len(by_level["poor"]) == len(levels):
        return "the essay is weak in every way."
    words = {"good": "strong in", "middling": "fair in", "poor": "weak in"}
    parts = [f"{words[lv]} {w.listed(by_level[lv])}" for lv in reversed(LEVELS) if by_level[lv]]
    return f"the essay is {', '.join(parts)}."


def judge(r: Random, world: World) -> Text:
    """One dimension of an essay (a branch of essay_judge.py)."""
    prose, _, levels = essay(r, world)
    dimension = r.choice(DIMENSIONS)
    called = dimension if r.random() < 0.85 else r.choice(OTHER_NAMES[dimension])
    ask = r.choice(METRIC_ASKS).format(d=called, l=called.lower())
    text = Text(r).ask(r.choice(ESSAY_HEADS) + prose + "\n")
    return text.ask(ask).reply(f" {judgment(r, dimension, levels[dimension])} END").end()


GRADE_ASKS = [
    "The letter grade of the essay is ",
    "The letter grade of the essay is ",
    "The grade of the essay is ",
    "Letter grade: ",
    "Grade: ",
    "The letter grade is ",
]


def grade(r: Random, world: World) -> Text:
    """The merged judgments, a summary, and the letter grade (essay_judge.py)."""
    prose, letter, levels = essay(r, world)
    text = Text(r).ask(r.choice(ESSAY_HEADS) + prose + "\n")
    judged = r.sample(DIMENSIONS, r.choice((0, 2, 3, 3, 4)))
    if judged and r.random() < 0.4:
        judged = DIMENSIONS[:3]
    space = r.choice(["", " "])  # cutting off END leaves a space
    for d in judged:
        text.ask(f"{d}: {judgment(r, d, levels[d])}{space}\n")
    if judged and r.random() < 0.8:
        text.ask("In summary,").reply(f" {verdict({d: levels[d] for d in judged})}\n")
    ask = r.choice(GRADE_ASKS)
    after = r.choice([".", "", "\n"])
    return (
        text.ask(ask).reply(letter).reply(after).end()
        if after
        else text.ask(ask).reply(letter).end()
    )


def grade_chat(r: Random, world: World) -> Text:
    prose, letter, levels = essay(r, world)
    asked = r.choice(
        [
            "Please give this essay a letter grade from A to D.",
            "Grade this essay with A, B, C or D.",
            "Which letter grade does this essay deserve?",
        ]
    )
    text = Text(r).turn("user", f"{asked}\n{prose}").answer(letter)
    if r.random() < 0.6:
        d = r.choice(DIMENSIONS)
        why = r.choice([f"How is its {d.lower()}?", f"Judge its {d.lower()}."])
        text.turn("user", why).answer(judgment(r, d, levels[d]))
    return text


# -- extraction --


ENUM = ["baker", "doctor", "engineer", "teacher"]


def extract_program(r: Random, world: World) -> Text:
    """JSON with a closed list of jobs, a date, a choice (extract.py)."""
    p = world.person(r)
    has_date = r.random() < 0.6
    prose = biography(r, p, ["name", "job", "date" if has_date else "born"])
    job = p.job if p.job in ENUM else "other"
    reply = json.dumps({"name": p.name, "job": job, "born": p.born[0]})
    text = Text(r).ask(f"Text: {prose}\n")
    born = p.iso if has_date else f"{p.born[0]}-01-01"
    if r.random() < 0.8:
        text.ask("The person as JSON: ").reply(f"{reply}\n")
    if r.random() < 0.7:
        text.ask("Born on ").reply(f"{born}.\n")
    asked = p.job if r.random() < 0.5 else r.choice([*ENUM, p.job])
    yes = "yes" if asked == p.job else "no"
    return text.ask(f"Is the person {w.a(asked)}? ").reply(f"{yes}\n").end()


def character(r: Random, world: World) -> Text:
    """`Name: … Birthday: … Job: …` of an invented person (API speculation's example)."""
    keys = r.choice(
        [
            ["Name", "Birthday", "Job"],
            ["Name", "Age", "Job"],
            ["Name", "City", "Pet"],
            ["Name", "Job", "City"],
            ["Name", "Birthday", "Job", "City"],
        ]
    )
    text = Text(r)
    if r.random() < 0.7:
        form = "\n".join(f"{key}: ..." for key in keys)
        head = r.choice(
            [
                "Construct a character within the following format:",
                "Invent a person in this format:",
            ]
        )
        text.ask(f"{head}\n{form}\n")
        if r.random() < 0.6:
            text.ask(f"\nPlease generate new {w.listed(keys)}.\n")
    n = r.randint(1, 4)
    for _ in range(n):
        p = world.person(r)
        values = {"Name": p.name, "Job": p.job, "City": p.city, "Age": str(age_of(p)), "Pet": p.pet}
        values["Birthday"] = f"{p.born[2]} {w.MONTHS[p.born[1] - 1]} {p.born[0]}"
        for key in keys:
            text.ask(f"{key}:").reply(f" {values[key]}\n")
        if n > 1:
            text.ask("\n")
    return text.end()


def character_at_once(r: Random, world: World) -> Text:
    """A character whose fields are all one generation, as in one speculative request."""
    stepwise = character(r, world)
    prompt, *rest = [part for part, _ in stepwise.parts if part != END]
    return Text(r).ask(prompt).reply("".join(rest).rstrip("\n") + "\n").end()


# -- reasoning --


ITEMS = "apples books coins cups eggs pens stamps shells cards flowers".split()  # noqa: SIM905


def word_problem(r: Random, world: World) -> tuple[str, str, int]:
    """A question, its reasoning, and the answer."""
    sign, x, y = world.pick(r, "sum", "+-", range(1, 21), range(1, 21))
    first, _, is_woman = world.name(r)
    thing, they = r.choice(ITEMS), "she" if is_woman else "he"
    if sign == "+":
        more = r.choice(["gets {y} more", "finds {y} more", "buys {y} more"]).format(y=y)
        question = f"{first} has {x} {thing} and {more}. How many {thing} does {they} have now?"
        why = f"{first} starts with {x} and adds {y}. {x} + {y} = {x + y}."
        return question, why, x + y
    x, y = max(x, y), min(x, y)
    less = r.choice(["gives away {y}", "loses {y}", "sells {y}"]).format(y=y)
    question = f"{first} has {x} {thing} and {less}. How many {thing} does {they} have left?"
    return question, f"{first} starts with {x} and takes away {y}. {x} - {y} = {x - y}.", x - y


STEP_CUES = ["Let's think step by step.", "Let us think step by step.", "Reasoning:", "Thought:"]
ANSWER_CUES = ["The answer is", "Answer:", "So the answer is", "Therefore, the answer is"]


def reason(r: Random, world: World) -> Text:
    """Reasoning, then the answer; with or without solved examples."""
    text = Text(r)
    think, answer = r.choice(STEP_CUES), r.choice(ANSWER_CUES)
    label, reply_label = r.choice(
        [("Question: ", "Answer: "), ("Q: ", "A: "), ("Q: ", ""), ("", "")]
    )
    if r.random() < 0.4:
        text.ask(r.choice(["Solve the problem.\n", "Answer the question step by step.\n"]))
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        question, why, value = word_problem(r, world)
        gap = "\n" if r.random() < 0.8 else " "
        text.ask(f"{label}{question}\n{reply_label}{think}").reply(f" {why}\n")
        text.ask(f"{answer}").reply(f" {value}.\n").ask("\n" if gap == "\n" else "")
    return text.end()


def reason_chat(r: Random, world: World) -> Text:
    question, why, value = word_problem(r, world)
    text = Text(r)
    if r.random() < 0.3:
        text.turn("system", "Think step by step, then give the answer.")
    if r.random() < 0.4:
        return text.turn("user", f"{question} Answer with a number.").answer(str(value))
    return text.turn("user", question).answer(f"{why} The answer is {value}.")


# -- agents --


AGENT_HEADS = [
    "Answer the question. You can use these tools:\n{tools}\n",
    "Answer the following question with the help of tools.\nTools:\n{tools}\n",
    "You have access to the following tools:\n{tools}\n",
]
NEEDS = {
    "search": ["I need to look this up.", "I should look up {g}.", "I have to search for it."],
    "calculator": ["I need to calculate {g}.", "I should work out {g}."],
    "calendar": ["I need to look at the calendar.", "I should check the date {g}."],
    "weather": ["I need the weather in {g}.", "I should check the weather in {g}."],
}
KNOW = ["Now I know the answer.", "I can answer now.", "This answers the question."]


def react(r: Random, world: World) -> Text:
    """Thought, action, observation, and the final answer."""
    names = tool_names(r)
    text = Text(r)
    if r.random() < 0.8:
        lines = "\n".join(f"- {name}: {TOOL_DOES[tool]}" for tool, name in names.items())
        text.ask(r.choice(AGENT_HEADS).format(tools=lines))
        if r.random() < 0.3:
            text.ask("Use the format Thought, Action, Action Input, Observation, Final Answer.\n")
    style = r.randrange(3)
    for _ in range(r.choice((1, 1, 1, 2))):
        tool = r.choice(sorted(names))
        question, given, seen, answer = tool_question(r, world, tool)
        text.ask(f"Question: {question}\n")
        thought = r.choice(NEEDS[tool]).format(g=given)
        text.ask("Thought:").reply(f" {thought}\n")
        if style == 0:
            text.ask("Action:").reply(f" {names[tool]}[{given}]\n")
        elif style == 1:
            text.ask("Action:").reply(f" {names[tool]}\n").ask("Action Input:").reply(f" {given}\n")
        else:
            text.ask("Action: ").reply(names[tool]).ask("\nInput: ").reply(f"{given}\n")
        text.ask(f"Observation: {seen}\n").ask("Thought:").reply(f" {r.choice(KNOW)}\n")
        text.ask("Final Answer:").reply(f" {answer}\n")
    return text.end()


def react_at_once(r: Random, world: World) -> Text:
    """An agent with one generation up to each observation (stop="Observation:")."""
    stepwise = react(r, world)
    text = Text(r)
    for part, is_new in stepwise.parts:
        cue = part in ("Action:", "Action: ", "Action Input:", "\nInput: ", "Final Answer:")
        if (is_new or cue) and text.parts and text.parts[-1][1] and part != END:
            text.parts[-1] = (text.parts[-1][0] + part, True)
        elif is_new:
            text.parts.append((part, True))
        elif part.startswith("Observation:") and text.parts[-1][1]:
            text.parts[-1] = (text.parts[-1][0] + "Observation:", True)
            text.ask(part.removeprefix("Observation:"))
        else:
            text.ask(part)
    return text


def tool_use(r: Random, world: World) -> Text:
    """A choice of tool within a sentence, then its input."""
    tool = r.choice(["calculator", "search"])
    question, given, _, _ = tool_question(r, world, tool)
    named = {"calculator": "calculator", "search": "search engine"}[tool]
    text = Text(r).ask(f"To answer this question: {question} I need to use a ").reply(named)
    text.ask(". ")
    ask = {"calculator": "The math expression is", "search": "The key word to search is"}[tool]
    return text.ask(ask).reply(f" {given}.").end()


# -- prose --


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


assert set(TOOL_DOES) == set(TOOLS) == set(NEEDS)
