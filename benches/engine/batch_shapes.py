"""Rows of texts for `batch_plan.py`: the papers' workload shapes, and a table, from a seed.

The words mean nothing; only what rows share matters. Rows are shuffled.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sgc

Rows = list[dict[str, Any]]

_TEXT = (
    "the river carries old stones past quiet mills while seven clocks measure rain on copper "
    "roofs and every winter merchants bring salt amber wool paper maps lanterns honey glass"
)
_WORDS = _TEXT.split()


def words(draw: random.Random, n: int) -> str:
    return " ".join(draw.choice(_WORDS) for _ in range(n))


@sgc.function
def few_shot(s, examples: str, question: str):
    s += examples + "\nQ: " + question + "\nA:"
    s += sgc.select("answer", choices=[" yes", " no", " maybe"])


@sgc.function
def tree_of_thought(s, examples: str, problem: str):
    s += examples + "\nProblem: " + problem + "\n"
    plans = s.fork(2)
    for i in range(2):
        plans[i] += f"Plan {i}:"
        plans[i] += sgc.gen("plan", max_tokens=12)
        tries = plans[i].fork(2)
        for j in range(2):
            tries[j] += f"\nTry {j}:"
            tries[j] += sgc.gen("try", max_tokens=12)
        tries.join()
    plans.join()
    s += "Verdict:" + sgc.gen("verdict", max_tokens=6)


@sgc.function
def documents(s, first: str, second: str, question: str):
    s += "Answer from the documents.\n" + first + "\n---\n" + second
    s += "\nQuestion: " + question + "\n" + sgc.gen("answer", max_tokens=10)


@sgc.function
def two_level(s, task: str, page: str, question: str):
    s += sgc.system(task)
    s += sgc.user(page + "\n" + question)
    s += sgc.assistant(sgc.gen("answer", max_tokens=10))


@sgc.function
def chat(s, persona: str, one: str, two: str, three: str):
    s += sgc.system(persona)
    for turn in (one, two, three):
        s += sgc.user(turn)
        s += sgc.assistant(sgc.gen("reply", max_tokens=12))


@sgc.function
def review(s, brand: str, product: str, rating: str, text: str, country: str):
    s += "Does this review praise the product? Answer yes or no.\n"
    s += "text: " + text + "\n"
    s += "country: " + country + "\n"
    s += "rating: " + rating + "\n"
    s += "product: " + product + "\n"
    s += "brand: " + brand + "\n"
    s += "Answer:" + sgc.select("answer", choices=[" yes", " no"])


def few_shot_rows(draw: random.Random, n: int) -> Rows:
    templates = [words(draw, 120) for _ in range(6)]
    return [{"examples": templates[i % 6], "question": words(draw, 12)} for i in range(n)]


def tree_of_thought_rows(draw: random.Random, n: int) -> Rows:
    templates = [words(draw, 80) for _ in range(5)]
    return [{"examples": templates[i % 5], "problem": words(draw, 16)} for i in range(n)]


def document_rows(draw: random.Random, n: int) -> Rows:
    """Rows with two documents each, in the order of their numbers; some are far more frequent."""
    pages = [words(draw, 90) for _ in range(max(4, n // 6))]
    weights = [1 / (i + 1) for i in range(len(pages))]
    rows = []
    for _ in range(n):
        first, second = sorted(draw.choices(range(len(pages)), weights, k=2))
        rows.append({"first": pages[first], "second": pages[second], "question": words(draw, 10)})
    return rows


def two_level_rows(draw: random.Random, n: int) -> Rows:
    tasks = [words(draw, 60) for _ in range(3)]
    pages = [(tasks[i % 3], words(draw, 80)) for i in range(max(3, n // 6))]
    return [
        {"task": pages[i % len(pages)][0], "page": pages[i % len(pages)][1],
         "question": words(draw, 10)}
        for i in range(n)
    ]  # fmt: skip


def chat_rows(draw: random.Random, n: int) -> Rows:
    personas = [words(draw, 90) for _ in range(6)]
    return [
        {"persona": personas[i % 6], "one": words(draw, 20), "two": words(draw, 20),
         "three": words(draw, 20)}
        for i in range(n)
    ]  # fmt: skip


def review_rows(draw: random.Random, n: int) -> Rows:
    """Rated products of a few brands; most texts are unique, and a quarter are from a few."""
    products = [(words(draw, 6), words(draw, 25)) for _ in range(max(4, n // 12))]
    brands = [words(draw, 4) for _ in range(5)]
    stock = [words(draw, 30) for _ in range(4)]
    rows = []
    for _ in range(n):
        number = draw.randrange(len(products))
        text = draw.choice(stock) if draw.random() < 0.25 else words(draw, 20)
        rows.append(
            {"brand": brands[number % 5], "product": " ".join(products[number]),
             "rating": str(draw.randint(1, 5)), "text": text,
             "country": draw.choice(["Norway", "Kenya", "Chile", "Japan"])}
        )  # fmt: skip
    return rows


@dataclass(frozen=True, slots=True)
class Shape:
    """A program, and a function that makes rows for it."""

    program: sgc.Function
    make: Callable[[random.Random, int], Rows]

    def rows(self, seed: int, n: int) -> Rows:
        """n rows, shuffled."""
        draw = random.Random(seed)
        rows = self.make(draw, n)
        draw.shuffle(rows)
        return rows


SHAPES = {
    "few-shot of 6 templates": Shape(few_shot, few_shot_rows),
    "tree of thought": Shape(tree_of_thought, tree_of_thought_rows),
    "multi-document QA": Shape(documents, document_rows),
    "two-level sharing": Shape(two_level, two_level_rows),
    "chat": Shape(chat, chat_rows),
}
TABLE = Shape(review, review_rows)
