"""Greedy evaluation on held-out prompts, with a line for each ability of the model.

A prompt is a text of a shape, drawn from combinations that training never saw, cut before one of
its generations. It runs on plain transformers, in batches; the engine's tests use the same exams.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tiny_model import shapes, tasks
from tiny_model.batches import WINDOW
from tiny_model.corpus import LAST_STAGE, Shape, stage_of
from tiny_model.first_hour import sixty
from tiny_model.first_hour import summaries as short
from tiny_model.first_hour.spin import FIRST_HOUR
from tiny_model.programs import agents, essays, reasoning, tips
from tiny_model.text import CLOSE, END, Text
from tiny_model.world import World

Check = Callable[[str, str], bool]  # of the generated and the expected text


@dataclass(frozen=True, slots=True)
class Exam:
    """A prompt, with its special tokens, the expected reply, and the string that ends the reply."""

    prompt: str
    expected: str
    stop: str


@dataclass(frozen=True, slots=True)
class Line:
    """An ability to evaluate. goal: the least share of right answers.

    stage: the stage of training whose prompts it has; those of the last one are in phrasings that
    are held out of training, too.
    """

    name: str
    shape: Shape
    goal: float
    check: Check
    which: int = -1  # of the text's generations
    max_tokens: int = 96
    stage: int = FIRST_HOUR - 1


def same(got: str, expected: str) -> bool:
    return got.strip().removesuffix(".") == expected.strip().removesuffix(".")


def same_json(got: str, expected: str) -> bool:
    return got.strip() == expected.strip()


def says(got: str, expected: str) -> bool:
    """Whether the reply contains the last word of the expected text."""
    return expected.strip().rstrip(".").split(" ")[-1] in got


def is_counted(got: str, expected: str) -> bool:
    """Whether the reply has as many numbered lines as expected."""
    n_lines = len(expected.strip().splitlines())
    return is_numbered(got, expected) and len(got.strip().splitlines()) == n_lines


def is_numbered(got: str, expected: str) -> bool:
    """Whether the reply is two or more numbered lines, each with a sentence, and nothing else."""
    lines = got.strip().splitlines()
    return len(lines) > 1 and all(
        re.fullmatch(rf"{i}\. [A-Z][^\n]{{8,}}\.", line) for i, line in enumerate(lines, 1)
    )


def has_fields(got: str, expected: str) -> bool:
    """Whether the reply has the expected fields in order, each with a value."""
    lines, wanted = got.strip().splitlines(), expected.strip().splitlines()
    return len(lines) == len(wanted) and all(
        line.startswith(want.partition(": ")[0] + ": ")
        and len(line) > len(want.partition(": ")[0]) + 2
        for line, want in zip(lines, wanted, strict=True)
    )


def follows(got: str, expected: str) -> bool:
    """Whether the reply is the value of a first key, and then the other fields."""
    return has_fields("first: " + got.lstrip(), "first: " + expected.lstrip())


def is_prose(got: str, expected: str) -> bool:
    """Whether the reply is one or more sentences that the model ended."""
    return bool(re.fullmatch(r"\s?[A-Za-z][^\n]{15,}\.", got))


def of(*chosen: tasks.Task) -> Shape:
    """Completions of some tasks."""

    def shape(r: Random, world: World) -> Text:
        return shapes.complete(Text(r), shapes.exchange(r, world, r.choice(chosen)), r)

    return shape


def in_chat(*chosen: tasks.Task) -> Shape:
    def shape(r: Random, world: World) -> Text:
        text, _ = shapes.opened(r, world)
        shapes.say(text, shapes.exchange(r, world, r.choice(chosen)), r)
        return text

    return shape


def numbered(r: Random, world: World) -> Text:
    while True:
        text = tips.tips_at_once(r, world)
        if text.parts[1][0].startswith("1."):
            return text


def counted(r: Random, world: World) -> Text:
    """A list of tips whose prompt says how many."""
    while True:
        text = numbered(r, world)
        if re.search(r"\b(?:[2-9]|two|three|four|five)\b", text.parts[0][0]):
            return text


def lines_at_once(r: Random, world: World) -> Text:
    """Fields as lines, all in one generation."""
    e = shapes.exchange(r, world, tasks.fields_as_lines)
    return Text(r).ask(f"{e.instruction}\n{e.label}: {e.content}\n").reply(e.reply + "\n").end()


def three_fields(r: Random, world: World) -> Text:
    """Three fields in one generation after the first key, which the program writes (API
    speculation)."""
    while True:
        e = shapes.exchange(r, world, tasks.fields_as_lines)
        if e.reply.count("\n") == 2:
            key, _, rest = e.reply.partition(":")
            text = Text(r).ask(f"{e.instruction}\n{e.label}: {e.content}\n{key}:")
            return text.reply(rest + "\n").end()


CLASSES = (tasks.sentiment, tasks.area)
COMPARED = (tasks.related, tasks.is_about, tasks.is_job)
LINES = [
    Line("classification", of(*CLASSES), 0.95, same),
    Line("classification in a chat", in_chat(*CLASSES), 0.95, same),
    Line("yes or no, compared", of(*COMPARED), 0.90, same),
    Line("yes or no, known", of(tasks.kind_of), 0.95, same),
    Line("tool choice", of(tasks.tool_choice), 0.95, same),
    Line("JSON extraction, exact", of(tasks.fields_as_json), 0.90, same_json),
    Line("JSON extraction in a chat", in_chat(tasks.fields_as_json), 0.90, same_json),
    Line("numbered list, form", numbered, 0.98, is_numbered, which=0, max_tokens=128),
    Line("numbered list, count", counted, 0.90, is_counted, which=0, max_tokens=128),
    Line("field: value, form", lines_at_once, 0.98, has_fields),
    Line("field: value, exact", lines_at_once, 0.90, same),
    Line("three fields, speculated", three_fields, 0.90, follows),
    Line("letter grade", essays.grade, 0.85, same),
    Line("recall of an earlier turn", shapes.recall, 0.90, same),
    Line("answers about a text", of(tasks.reading), 0.90, same),
    Line("everyday questions", of(tasks.fact, tasks.capital, tasks.trade), 0.90, same),
    Line("sums", of(tasks.sums), 0.80, same),
    Line("reasoning, answer", reasoning.reason, 0.85, same),
    Line("tool in running text", agents.tool_use, 0.95, same, which=0),
    Line("agent, final answer", agents.react, 0.85, same),
    Line("food or not (chat.py)", shapes.follow_up, 0.90, same),
    Line("expansion, prose", tips.expansion, 0.95, is_prose),
    Line("sums to 100", of(tasks.sums_to_100), 0.80, same, stage=LAST_STAGE),
    Line("reasoning to 100, answer", reasoning.reason, 0.80, same, stage=LAST_STAGE),
    Line("summary of a text", of(tasks.summarised), 0.80, same, stage=LAST_STAGE),
    Line("one sentence of notes", short.notes, 0.80, same, stage=LAST_STAGE),
    Line("reviews, other phrasings", of(tasks.reviewed), 0.85, same, stage=LAST_STAGE),
    Line("topics, other phrasings", of(tasks.area), 0.85, same, stage=LAST_STAGE),
    Line("nine tools, other phrasings", of(tasks.choose_tool), 0.85, same, stage=LAST_STAGE),
    Line("JSON, other phrasings", of(tasks.fields_as_json), 0.85, same_json, stage=LAST_STAGE),
    Line("reading, other phrasings", of(tasks.reading), 0.80, same, stage=LAST_STAGE),
    Line("recall, other phrasings", shapes.recall, 0.80, same, stage=LAST_STAGE),
]
SIXTY_GOAL = 0.85


def exam(line: Line, seed: int, i: int) -> Exam:
    """Prompt `i` of a line."""
    text = line.shape(Random(f"exam {seed}/{line.name}/{i}"), World("test", stage=line.stage))
    generated = [n for n, (part, is_new) in enumerate(text.parts) if is_new and part != END]
    at = generated[line.which]
    reply = text.parts[at][0].removesuffix(CLOSE)
    stop = CLOSE if CLOSE in text.parts[at][0] else END
    if reply.endswith("\n") and reply.count("\n") == 1:
        stop = "\n"
    elif text.parts[at + 1 :] and text.parts[at + 1][0].startswith("."):
        stop = "."
    prompt = "".join(part for part, _ in text.parts[:at])
    return Exam(prompt, reply, stop)


class Greedy:
    """The greedy replies of a model in a folder, computed in batches."""

    def __init__(self, folder: Path, threads: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(threads)
        self._torch = torch
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def __call__(self, exams: list[Exam], max_tokens: int, batch: int = 50) -> list[str]:
        order = sorted(range(len(exams)), key=lambda i: len(exams[i].prompt))
        replies = [""] * len(exams)
        for start in range(0, len(order), batch):
            some = order[start : start + batch]
            for i, reply in zip(
                some, self._batch([exams[i] for i in some], max_tokens), strict=True
            ):
                replies[i] = reply
        return replies

    def _batch(self, exams: list[Exam], max_tokens: int) -> list[str]:
        tokenizer = self.tokenizer
        inputs = tokenizer(
            [exam.prompt.removesuffix(" ") if self._heals(exam) else exam.prompt for exam in exams],
            return_tensors="pt",
            padding=True,
            padding_side="left",
            add_special_tokens=False,
        )
        with self._torch.inference_mode():
            output = self.model.generate(
                **inputs,
                max_new_tokens=max_tokens,
                do_sample=False,
                pad_token_id=tokenizer.pad_token_id,
            )
        texts = tokenizer.batch_decode(output[:, inputs["input_ids"].shape[1] :])
        return [cut(text, exam.stop) for text, exam in zip(texts, exams, strict=True)]

    @staticmethod
    def _heals(exam: Exam) -> bool:
        """Whether the engine would heal the border: a space before a lower-case letter."""
        return exam.prompt.endswith(" ") and exam.expected[:1].islower()


def cut(text: str, stop: str) -> str:
    """The text before the first end token or `stop`."""
    found = [at for at in (text.find(mark) for mark in (END, CLOSE)) if at >= 0]
    text = text[: min(found)] if found else text
    if stop == "\n":  # the reply itself may not begin with it
        return text.lstrip("\n").partition("\n")[0]
    return text.partition(stop)[0] if stop == "." else text


def sixty_of(greedy: Greedy) -> dict[str, Any]:
    """The prompts of `sixty.toml`: how many replies are sound, and those that are not."""
    prompts = sixty.prompts()
    exams = [Exam(p.whole, (p.equal or p.has or ("X",))[0], p.stop) for p in prompts]
    replies = greedy(exams, sixty.MAX_TOKENS)
    wrong = [
        {"prompt": p.text, "reply": reply.strip()}
        for p, reply in zip(prompts, replies, strict=True)
        if not p.is_sound(reply)
    ]
    n_sound = len(prompts) - len(wrong)
    print(f"unseen phrasings: {n_sound} of {len(prompts)} sound, of {SIXTY_GOAL:.0%}", flush=True)
    for failure in wrong:
        print(f"    … {failure['prompt'][-160:]!r}\n    -> {failure['reply']!r}")
    return {"sound": n_sound, "n": len(prompts), "goal": SIXTY_GOAL, "wrong": wrong}


def evaluate(folder: Path, n: int, seed: int, threads: int, show: int, only: str) -> None:
    """Prints a table and writes evaluation.json beside the model.

    only: a pattern of the names of lines; the others are kept from the evaluation before.
    """
    progress = json.loads((folder / "checkpoint" / "progress.json").read_text())
    greedy, results = Greedy(folder / "model", threads), dict[str, dict[str, Any]]()
    file = folder / "model" / "evaluation.json"
    if only and file.is_file():
        results = {row["name"]: row for row in json.loads(file.read_text())["lines"]}
    for line in LINES:
        if not re.search(only, line.name):
            continue
        started = time.monotonic()
        exams = [exam(line, seed, i) for i in range(n)]
        replies = greedy(exams, line.max_tokens)
        is_right = [line.check(reply, e.expected) for reply, e in zip(replies, exams, strict=True)]
        share = sum(is_right) / n
        results[line.name] = {"name": line.name, "share": share, "goal": line.goal, "n": n}
        mark = "" if share >= line.goal else "  below its goal"
        seconds = time.monotonic() - started
        print(
            f"{line.name:28} {share:7.1%}  of {line.goal:.0%}  {seconds:5.1f} s{mark}", flush=True
        )
        for i in [i for i in range(n) if not is_right[i]][:show]:
            prompt, expected = exams[i].prompt[-240:], exams[i].expected
            print(f"    … {prompt!r}\n    -> {replies[i]!r}, not {expected!r}")
    lines = [results[line.name] for line in LINES if line.name in results]
    record = {
        "seed": seed,
        "stage": stage_of(progress["window"] * WINDOW),
        "lines": lines,
        "sixty": sixty_of(greedy),
    }
    file.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
