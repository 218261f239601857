"""Twenty shapes of programs, and what each costs without a cache, the vendor's way and by plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from providers.cache_models import (
    AnthropicCache,
    Bill,
    CacheApi,
    OpenAIAutomaticCache,
    OpenAIMarkedCache,
    VirtualClock,
    said,
)

import sgc
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.providers.backend import ProviderBackend
from sgc.runtime.executor.backends.providers.models.models import Choices, facts_for
from sgc.runtime.executor.backends.providers.wire.limits import LimitSettings

MODELS = {
    "anthropic": ("claude-opus-5", AnthropicCache),
    "openai-marked": ("gpt-5.6-sol", OpenAIMarkedCache),
    "openai-automatic": ("gpt-5.2", OpenAIAutomaticCache),
}


def words(n_tokens: int, about: str) -> str:
    """About so many tokens of text, with another beginning for each subject."""
    return f"On {about}: " + "all that is known is told here. " * (n_tokens // 8)


RULES = words(1600, "the rules")
SHORT = "Answer in one line."


@sgc.function
def single(s, text: str):
    s += sgc.system(RULES) + sgc.user(text) + sgc.assistant(sgc.gen("a", max_tokens=64))


@sgc.function
def under_floor(s, one: str, two: str):
    s += sgc.system(SHORT) + sgc.user(one) + sgc.assistant(sgc.gen("a", max_tokens=64))
    s += sgc.user(two) + sgc.assistant(sgc.gen("b", max_tokens=64))


@sgc.function
def twice(s, one: str, two: str):
    s += sgc.system(RULES)
    left, right = s.fork(2)
    left += sgc.user(one) + sgc.assistant(sgc.gen("a", max_tokens=64))
    right += sgc.user(two) + sgc.assistant(sgc.gen("a", max_tokens=64))


@sgc.function
def chat(s, topic: str):
    s += sgc.system(RULES)
    for turn in range(6):
        s += sgc.user(f"Question {turn} on {topic}?")
        s += sgc.assistant(sgc.gen(f"a{turn}", max_tokens=64))


@sgc.function
def long_chat(s, topic: str):
    s += sgc.system(RULES)
    for turn in range(30):
        s += sgc.user(f"Question {turn} on {topic}?")
        s += sgc.assistant(sgc.gen(f"a{turn}", max_tokens=64))


@sgc.function
def no_roles(s, text: str):
    s += text
    for turn in range(5):
        s += f"\nQuestion {turn}: what follows?\nAnswer:" + sgc.gen(f"a{turn}", max_tokens=64)


@sgc.function
def fan(s, text: str):
    s += sgc.user("Read this.\n" + text)
    parts = s.fork(8)
    for number, part in enumerate(parts):
        part += sgc.user(f"Sum up point {number}.") + sgc.assistant(sgc.gen("a", max_tokens=64))


@sgc.function
def summary(s, text: str):
    s += sgc.system(RULES) + sgc.user(text) + sgc.assistant(sgc.gen("a", max_tokens=64))


@sgc.function
def mapped(s, texts: list[str]):
    found = sgc.map(summary, texts)
    s += sgc.user(sgc.join("\n", found["a"])) + sgc.assistant(sgc.gen("all", max_tokens=64))


@sgc.function
def few_shot(s, question: str):
    s += "Examples.\n" + words(1500, "examples") + "\nQ: " + question + "\nA:"
    s += sgc.gen("a", max_tokens=32)


@sgc.function
def thoughts(s, problem: str):
    s += sgc.system(RULES) + sgc.user(problem)
    for number, one in enumerate(s.fork(3)):
        one += sgc.user(f"Plan {number}.") + sgc.assistant(sgc.gen("plan", max_tokens=300))
        for step, two in enumerate(one.fork(3)):
            two += sgc.user(f"Step {step}.") + sgc.assistant(sgc.gen("step", max_tokens=64))


@sgc.function
def agent(s, task: str):
    s += sgc.system(RULES) + sgc.user(task)
    for _ in sgc.turns(8):
        s += sgc.assistant(sgc.gen("act", max_tokens=64))
        if s["act"].startswith("DONE"):
            break
        s += sgc.user("The tool said: " + words(200, "the tool"))


@sgc.function
def two_levels(s, text: str):
    s += sgc.system(RULES) + sgc.user(text)
    for number, part in enumerate(s.fork(4)):
        part += sgc.user(f"Question {number}?") + sgc.assistant(sgc.gen("a", max_tokens=64))


@sgc.function
def document(s, text: str, question: str):
    s += sgc.user("Read this.\n" + text + "\nNow answer: " + question)
    s += sgc.assistant(sgc.gen("a", max_tokens=64))


@sgc.function
def long_argument(s, text: str):
    s += sgc.system(SHORT) + sgc.user(text) + sgc.assistant(sgc.gen("a", max_tokens=64))


@sgc.function
def judge(s, text: str):
    s += sgc.user("Read this.\n" + text)
    parts = s.fork(4)
    for number, part in enumerate(parts):
        part += sgc.user(f"Essay {number}.") + sgc.assistant(sgc.gen("a", max_tokens=300))
    for part in parts:
        part += sgc.user("Judge it.") + sgc.assistant(sgc.gen("grade", max_tokens=16))
    s += sgc.user("The best?\n" + "\n".join(part["a"] for part in parts))
    s += sgc.assistant(sgc.gen("best", max_tokens=64))


@sgc.function
def samples(s, text: str):
    s += sgc.user(text) + sgc.assistant(sgc.gen("a", n=5, max_tokens=64))


@sgc.function
def selects(s, text: str):
    s += sgc.user("Read this.\n" + text)
    for number, part in enumerate(s.fork(5)):
        part += sgc.user(f"Is {number} so?") + sgc.assistant(sgc.select("a", ["yes", "no"]))


@sgc.function
def branches(s, text: str):
    s += sgc.system(RULES) + sgc.user(text) + sgc.assistant(sgc.gen("a", max_tokens=64))
    if s["a"].startswith("MORE"):
        s += sgc.user("Why more?") + sgc.assistant(sgc.gen("b", max_tokens=64))
    else:
        s += sgc.user("Why done?") + sgc.assistant(sgc.gen("b", max_tokens=64))
    s += sgc.user("So?") + sgc.assistant(sgc.gen("c", max_tokens=64))


@sgc.function
def deep(s, text: str):
    s += sgc.system(RULES)
    for level in range(6):  # more places where prompts part than a request has marks
        s += sgc.user(words(300, f"level {level}") + text)
        (side,) = s.fork(1)
        side += sgc.user("Stop here.") + sgc.assistant(sgc.gen("a", max_tokens=64))
    s += sgc.user("The end?") + sgc.assistant(sgc.gen("end", max_tokens=64))


Run = Callable[[Endpoint], None]


def one(program: Any, **arguments: Any) -> Run:
    def run(endpoint: Endpoint) -> None:
        state = program(**arguments, backend=endpoint)
        state.sync()
        if state.error() is not None:
            raise state.error()

    return run


def batch(program: Any, rows: list[dict[str, Any]]) -> Run:
    def run(endpoint: Endpoint) -> None:
        for state in program.run_batch(rows, backend=endpoint):
            if state.error() is not None:
                raise state.error()

    return run


def one_by_one(program: Any, rows: list[dict[str, Any]]) -> Run:
    def run(endpoint: Endpoint) -> None:
        for row in rows:
            one(program, **row)(endpoint)

    return run


def _rows(n: int, **sizes: int) -> list[dict[str, Any]]:
    return [{k: words(v, f"row {i}") for k, v in sizes.items()} for i in range(n)]


TEXT = words(2500, "the text")
SHAPES: dict[str, Run] = {
    "a single call": one(single, text="Hello?"),
    "two calls, prefix under the floor": one(under_floor, one="Hello?", two="And?"),
    "two calls, prefix over the floor": one(twice, one="Hello?", two="And?"),
    "chat of 6 turns": one(chat, topic="tea"),
    "chat of 30 turns": one(long_chat, topic="tea"),
    "completion that grows, no roles": one(no_roles, text=TEXT),
    "fork of 8 on a text": one(fan, text=TEXT),
    "map over 12 texts": one(mapped, texts=[words(300, f"text {i}") for i in range(12)]),
    "few-shot batch of 40": batch(few_shot, _rows(40, question=16)),
    "tree of thoughts, 3 by 3": one(thoughts, problem=words(200, "a problem")),
    "agent loop": one(agent, task=words(100, "a task")),
    "two levels: 6 rows, fork of 4": batch(two_levels, _rows(6, text=1500)),
    "30 questions on one text": batch(
        document, [{"text": TEXT, "question": f"what of {i}?"} for i in range(30)]
    ),
    "long argument, 8 rows": batch(long_argument, _rows(8, text=3000)),
    "long system, changing tail, one by one": one_by_one(single, _rows(8, text=40)),
    "essays and judges": one(judge, text=TEXT),
    "5 samples of one prompt": one(samples, text=TEXT),
    "5 selects on a text": one(selects, text=TEXT),
    "branches": one(branches, text="Hello?"),
    "6 forks on one path": one(deep, text="Go on."),
}


@dataclass(frozen=True)
class Cost:
    """In tokens of plain input. plain: without any cache; write: what a token more costs."""

    plain: float
    vendor: float
    placed: float
    first_write: float
    bill: Bill
    said: tuple[str, ...]


def measure(shape: str, model: str) -> Cost:
    """One shape at one model, the same requests each time."""
    bills, texts = {}, {}
    for cache in ("off", "vendor", "plan"):
        name, make = MODELS[model]
        provider = model.partition("-")[0]
        clock = VirtualClock()
        api = CacheApi(make(), clock)
        facts = facts_for(provider, name, Choices(cache=cache))
        backend = ProviderBackend(api, facts, LimitSettings(), clock=clock)
        SHAPES[shape](Endpoint(backend))
        bills[cache] = api.cache.bill
        texts[cache] = tuple(sorted(said(body) for body in api.bodies))
    assert texts["off"] == texts["vendor"] == texts["plan"], "a plan changes no text"
    write, read = make.write, make.read
    plan = bills["plan"]
    return Cost(
        plain=float(bills["off"].prompt),
        vendor=bills["vendor"].cost(write, read),
        placed=plan.cost(write, read),
        first_write=(write - 1) * plan.largest,
        bill=plan,
        said=texts["plan"],
    )
