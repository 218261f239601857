"""Programs that choose a tool, read what it returns, and answer."""

from __future__ import annotations

from random import Random

from tiny_model.first_hour.phrasings import head as phrased
from tiny_model.first_hour.spin import FIRST_HOUR
from tiny_model.text import END, Text
from tiny_model.tool_tasks import TOOL_DOES, TOOLS, tool_names, tool_question
from tiny_model.world import World

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


SKIES = {"sunny": "The sun shines", "rainy": "It rains", "snowy": "It snows"}
FAILED = ["Nothing was found.", "The tool does not answer.", "That cannot be worked out.",
          "Nobody knows.", "Error: not found."]  # fmt: skip


def seen_otherwise(r: Random, tool: str, given: str, seen: str, answer: str) -> tuple[str, str]:
    """What a tool says in other words, or that it failed; and the answer to that."""
    if r.random() < 0.1:
        return r.choice(FAILED), "I do not know."
    if tool == "weather" and r.random() < 0.5:
        sky = seen.partition(",")[0]
        said = r.choice(
            [f"It is {sky} in {given}.", f"{SKIES.get(sky, 'It is ' + sky)} in {given}."]
        )
        return said, said
    return seen, answer


def react(r: Random, world: World) -> Text:
    """Thought, action, observation, and the final answer."""
    names = tool_names(r)
    text = Text(r)
    if r.random() < 0.8:
        lines = "\n".join(f"- {name}: {TOOL_DOES[tool]}" for tool, name in names.items())
        text.ask(phrased(r, world, "agent", AGENT_HEADS).format(tools=lines))
        if r.random() < 0.3:
            text.ask("Use the format Thought, Action, Action Input, Observation, Final Answer.\n")
    style = r.randrange(3)
    for _ in range(r.choice((1, 1, 1, 2))):
        tool = r.choice(sorted(names))
        question, given, seen, answer = tool_question(r, world, tool)
        text.ask(f"Question: {question}\n")
        if world.stage >= FIRST_HOUR:
            seen, answer = seen_otherwise(r, tool, given, seen, answer)
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


assert set(TOOL_DOES) == set(TOOLS) == set(NEEDS)
