"""Workloads for passes: the examples, the paper's shapes, and some for single passes.

Each is a function with its rows. Texts are pseudo-words from a seed (`benches/engine/texts.py`);
`ignore_eos` fixes the lengths, so that only the passes make a difference.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "engine"))
sys.path.append(str(Path(__file__).resolve().parents[1]))

import programs_w5 as w5
import speculation
from texts import Prose

import sgc
from sgc.programs.function import Function

ROOT = Path(__file__).resolve().parents[2]
TOOL_S = 0.5  # how long a call of the host takes


@dataclass(frozen=True)
class Workload:
    """A program and its rows; bind: arguments of compiling; tools: those that it may call."""

    name: str
    function: Function
    rows: list[dict[str, Any]]
    bind: dict[str, Any] = field(default_factory=dict)
    tools: tuple[Any, ...] = ()
    keep: str = "all"


def gen(name: str, n_tokens: int, **more: Any) -> Any:
    return sgc.gen(name, max_tokens=n_tokens, ignore_eos=True, temperature=0, **more)


@sgc.tool(effect="pure")
def look_up(query: str) -> str:
    """A host call that takes a while."""
    time.sleep(TOOL_S)
    return "A note on " + query[:20]


RULES = Prose(1).text(500)
SHOTS = Prose(2).text(250)


@sgc.function
def review(s, note):
    s += "You are a careful reviewer. These are the rules.\n" + RULES + "\nThe note: " + note
    s += "\nThe review:" + gen("review", 16)


@sgc.function
def after_a_tool(s, question):
    """A called function with a long constant beginning, which is known while the tool runs."""
    s += "Question: " + question + "\nSearch for:" + gen("query", 8)
    note = look_up(s["query"])
    s += "\nNote: " + note + "\nReview: " + review(note)["review"]


@sgc.function
def judge(s, answer):
    s += SHOTS + "\nIs this answer right? " + answer + "\nVerdict:" + gen("verdict", 12)


@sgc.function
def judged_twice(s, question):
    """Two calls that ask the very same, greedily."""
    s += "Question: " + question + "\nAnswer:" + gen("answer", 16)
    first, second = judge(s["answer"]), judge(s["answer"])
    s += "\nFirst:" + first["verdict"] + "\nSecond:" + second["verdict"]


@sgc.function
def independent_after_a_test(s, text):
    """What follows the test does not depend on it."""
    other = judge(text)
    s += "Text: " + text + "\nIs it long? " + sgc.select("long", ["yes", "no"])
    if s["long"] == "yes":
        s += "\nShorter:" + gen("shorter", 24)
    s += "\nVerdict:" + other["verdict"]
    s += "\nAnother:" + judge(text + " And so on.")["verdict"]


@sgc.function
def a_number(s, text):
    """A constraint that is shorter than its bound."""
    s += (
        "Text: "
        + text
        + "\nWords: "
        + sgc.gen("n", regex="[0-9]{1,3}", max_tokens=64, temperature=0)
    )
    s += "\nGrade: " + sgc.gen("grade", regex="(A|B|C|D)", max_tokens=8, temperature=0)


@sgc.function
def only_the_answer(s, question):
    """Drafts whose streams are not needed, since only the return value is kept."""
    s += "Question: " + question + "\nAnswer:" + gen("answer", 16)
    draft = judge(question)
    s += "\nP.S.:" + gen("more", 24)
    del draft
    return s["answer"]


@sgc.function
def instruction_last(s, text):
    """The instruction is after the text, so rows share only a few words."""
    s += "Text: " + text + "\n\nSummarise the text in one short sentence. Use plain words. "
    s += "Leave out names, dates and numbers.\n\nSummary:" + gen("summary", 16)


def example(name: str) -> tuple[Function, Any]:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name), module


QUESTIONS = ["How many eggs has Ada?", "What do cows drink?", "What is tea?", "Who sails ships?"]
FACTS = ["Ada Moor was born in 1970. She bakes bread in York.",
         "Tea is older than paper. It travelled by road and by sea."]  # fmt: skip
_EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "tip_suggestion": [{"topic": topic} for topic in ("staying healthy", "saving money")],
    "essay_judge": [{"essay": text} for text in FACTS],
    "few_shot": [{"question": text} for text in QUESTIONS],
    "chat": [{"first": "What is tea?", "second": "And coffee?"}],
    "extract": [{"text": text} for text in FACTS],
    "react": [{"question": "What is 12 times 7?"}],
    "router": [{"question": text} for text in QUESTIONS],
    "json_retry": [{"text": text} for text in FACTS],
    "tree_of_thought": [{"question": QUESTIONS[0]}],
    "self_consistency": [{"question": QUESTIONS[0]}],
    "map_reduce": [{"chunks": FACTS}],
}
_TOOLS = {"react": ("search", "calculator")}


def workloads() -> list[Workload]:
    found = []
    for name, rows in _EXAMPLES.items():
        function, module = example(name)
        tools = tuple(getattr(module, tool) for tool in _TOOLS.get(name, ()))
        found.append(Workload(f"example {name}", function, rows, tools=tools))
    texts = [Prose(10 + n).text(60) for n in range(4)]
    found += [
        Workload(f"paper {name}", w5.PROGRAMS[name], [{"text": text} for text in texts])
        for name in ("essay_judge", "tree_of_thought", "multi_chain", "few_shot_select")
    ]
    questions = [{"question": text} for text in QUESTIONS]
    by_text = [{"text": text} for text in texts]
    found += [
        Workload("after a tool", after_a_tool, questions[:2], tools=(look_up,)),
        Workload("judged twice", judged_twice, questions),
        Workload("three fields", speculation.extract, speculation.rows(8, 1)),
        Workload("independent after a test", independent_after_a_test, by_text),
        Workload("a number", a_number, by_text),
        Workload("only the answer", only_the_answer, questions, keep="returns"),
        Workload("instruction last", instruction_last, by_text),
    ]
    return found
