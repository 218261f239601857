"""Choice among more tools, with more phrasings of requests."""

# ruff: noqa: E501 (a template is a line)
from __future__ import annotations

import re
from functools import cache
from random import Random

from tiny_model import world as w
from tiny_model.exchange import Exchange
from tiny_model.first_hour import sums
from tiny_model.first_hour.phrasings import head
from tiny_model.first_hour.spin import phrase
from tiny_model.tool_tasks import TOOL_HEADS, tool_question
from tiny_model.world import World

OF_DATES = re.compile(r"\b(days?|hours?|minutes?|months?|seasons?)\b")
NAMES: dict[str, tuple[str, ...]] = {
    "search": ("search", "search", "search engine", "lookup", "encyclopedia", "web search", "wiki"),
    "calculator": ("calculator", "calculator", "math", "arithmetic"),
    "calendar": ("calendar", "calendar", "date", "dates"),
    "weather": ("weather", "weather", "forecast", "weather report"),
    "translator": ("translator", "translator", "translate", "dictionary"),
    "timer": ("timer", "timer", "alarm", "clock"),
    "map": ("map", "map", "maps", "route"),
    "email": ("email", "email", "mail", "messages"),
    "music": ("music", "music", "player", "music player"),
}
ASKED: dict[str, tuple[str, ...]] = {
    "weather": (
        "(What is|What's|How is|Tell me) the weather in {city}( today| tomorrow| now|)(?|.)",
        "(What is|What's) the weather like in {city}( today| tomorrow| now|)?",
        "(Will|Does) it (rain|snow) in {city}( today| tomorrow| on {day}|)?",
        "(Is it|Will it be) (cold|warm|hot|sunny|windy|cloudy|wet|foggy) in {city}( today| tomorrow| on {day}|)?",
        "(Do I need|Should I take) (an umbrella|a coat|a hat|a scarf|warm clothes) in {city}( today| tomorrow|)?",
        "How (cold|warm|hot|windy) is it in {city}( now| today|)?",
    ),
    "calendar": (
        "(Which|What) (day|weekday|day of the week) is {n} {month}?",
        "(On which|On what) (day|weekday) (does|will) {n} {month} fall?",
        "(Is {n} {month}|Will {n} {month} be) a {day}?",
        "(How many days|How long) is it( from today|) (to|until|till) {n} {month}?",
        "(Which|What) (date|day) is (it |)(today|tomorrow|next {day})?",
        "(When is|What is the date of) (the next|next) {day}?",
    ),
    "translator": (
        "(How do you say|What is) {thing} in (French|Spanish|German|Italian|Polish|Greek)?",
        "(Translate|Please translate) {thing} (into|to) (French|Spanish|German|Italian|Polish|Greek).",
        "(Translate|Please translate) (this|the text|the sentence|it) (into|to) (French|Spanish|German|Italian|Polish)(.|:)",
        "(What does {thing} mean|What is {thing}) in (French|Spanish|German|Italian|English)?",
    ),
    "timer": (
        "(Set|Start) (a timer|an alarm|the timer|the alarm) (for|in) {n} minutes(.|, please.)",
        "(Wake me|Wake me up|Remind me|Call me) (in {n} minutes|in {n} hours|at {hour} o'clock).",
        "(Tell me when|Say when) {n} minutes (are over|have passed).",
    ),
    "map": (
        "(How do I get|What is the way|Show me the way|How can I go) from {city} to {other}(?|.)",
        "(How far|How many kilometres) is it (from {city} to {other}|to {city})?",
        "(Where|In which street) is the (next|nearest) (station|hospital|bakery|school|park|hotel|harbour)?",
        "(Which road goes|Find the way|Find a route) to {city}(?|.)",
    ),
    "email": (
        "(Write|Send) (an email|a message|a mail|a letter) to {name}.",
        "(Tell|Write to|Answer) {name} that I (come later|am ill|have no time|will be there|like the plan).",
        "(Do I have|Have I got|Are there) (new|any|unread) (messages|mails|emails)( from {name}|)?",
        "(Ask|Invite) {name} to (dinner|lunch|the party|the meeting)( by email| in a message|).",
    ),
    "music": (
        "(Play|Put on|Start) (a song|some music|the piano music|a slow song|something quiet|jazz)( by {name}|).",
        "(Stop|Pause|Turn down|Turn up) the (music|song).",
        "(Play|Repeat) (the next|the last|the same) song( again|).",
    ),
    "search": (
        "(Who|What) (was|is) {name}?",
        "(Who wrote|Who painted|Who built|Who invented|Who found) the {good}?",
        "(What is|Which city is|Tell me) the capital of {country}(?|.)",
        "(How many people live|Which river is|Which language do people speak|Which king lived) in {country}?",
        "(When was|Where was) {name} born?",
        "(What is|Tell me about|Find out about|Look up|Find) (the history of {city}|{thing})(?|.)",
        "(What do people know|Find something|Look for news) about {thing}(?|.)",
    ),
}


@cache
def facts_to_search() -> list[str]:
    """Questions of facts that no other tool answers, as a calendar does "What day comes after Friday?"."""
    asked = [row[0] for row in w.rows("facts")]
    return [each for each in asked if not OF_DATES.search(each)]


def asked_of(r: Random, world: World, tool: str) -> str:
    """A request for a tool."""
    if tool == "calculator":
        return sums.problem(r, world)[0]
    if tool in ("search", "weather", "calendar") and r.random() < 0.3:
        return tool_question(r, world, tool)[0]
    if tool == "search" and r.random() < 0.2:
        return r.choice(facts_to_search())
    asked = phrase(r, world, f"for {tool}", ASKED[tool])
    first, last, _ = world.name(r)
    return asked.format(
        city=w.city(r), other=w.city(r), day=r.choice(w.DAYS), month=r.choice(w.MONTHS),
        n=r.randint(1, 28), hour=r.randint(1, 12), name=f"{first} {last}", good=r.choice(w.GOODS),
        country=r.choice(w.rows("countries"))[0], thing=r.choice(w.rows("things"))[1],
    )  # fmt: skip


def choose_tool(r: Random, form: Random, world: World) -> Exchange:
    kinds = form.sample(sorted(NAMES), form.randint(2, 6))
    names = {kind: form.choice(NAMES[kind]) for kind in kinds}
    tool = r.choice(sorted(names))
    instruction = head(form, world, "tool", TOOL_HEADS).format(", ".join(names.values()))
    label = form.choice(["Question", "Question", "Request", "User", "Task", "Message", ""])
    cue = form.choice(["Tool", "Tool", "Answer", "Choice", "Tool to use"])
    return Exchange(instruction, label, asked_of(r, world, tool), cue, names[tool])
