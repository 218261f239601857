"""The table of shapes, and the endless, seeded stream of training texts drawn from it.

Text `i` of a seed depends only on these two, so a stream can be resumed anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from tiny_model import shapes
from tiny_model.first_hour import summaries, sums
from tiny_model.programs import agents, essays, people, reasoning, stories, tips
from tiny_model.text import Text
from tiny_model.world import World

Shape = Callable[[Random, World], Text]

SHAPES: dict[str, tuple[Shape, float]] = {  # with their weights
    "completion": (shapes.completion, 8),
    "few_shot": (shapes.few_shot, 4),
    "comparisons": (shapes.comparisons, 0),  # only in later stages
    "chat": (shapes.chat, 6),
    "follow_up": (shapes.follow_up, 1.5),
    "recall": (shapes.recall, 2.5),
    "tool_chat": (shapes.tool_chat, 1),
    "tips_program": (tips.tips_program, 2.5),
    "tips_at_once": (tips.tips_at_once, 1.5),
    "expansion": (tips.expansion, 1.5),
    "advice": (tips.advice, 0.7),
    "judge": (essays.judge, 2),
    "grade": (essays.grade, 2.5),
    "grade_chat": (essays.grade_chat, 0.7),
    "extract_program": (people.extract_program, 2),
    "character": (people.character, 1),
    "character_at_once": (people.character_at_once, 1),
    "reason": (reasoning.reason, 1.5),
    "reason_chat": (reasoning.reason_chat, 0.7),
    "react": (agents.react, 1.5),
    "react_at_once": (agents.react_at_once, 1),
    "tool_use": (agents.tool_use, 0.7),
    "story": (stories.story, 0.7),
    "sums_in_a_row": (sums.sums_in_a_row, 0),  # these only in the last stage
    "notes": (summaries.notes, 0),
}
NAMES = list(SHAPES)
# Weights of later stages, in which the shapes are known and their content is still to be learnt.
LATER: tuple[dict[str, float], ...] = (
    {},
    {
        "completion": 11,
        "chat": 8,
        "follow_up": 3,
        "tips_program": 1,
        "expansion": 0.6,
        "advice": 0.4,
        "judge": 0.8,
        "grade": 1.2,
        "grade_chat": 0.5,
        "extract_program": 3,
        "character": 1,
        "story": 0.3,
    },
    {
        "completion": 13,
        "chat": 9,
        "follow_up": 5,
        "recall": 1.5,
        "tips_program": 1,
        "tips_at_once": 5,
        "expansion": 0.6,
        "advice": 0.4,
        "judge": 0.8,
        "grade": 0.8,
        "grade_chat": 0.4,
        "extract_program": 2,
        "character": 0.7,
        "character_at_once": 0.7,
        "react": 1.2,
        "reason": 1,
        "story": 0.3,
    },
    {
        "completion": 12,
        "comparisons": 16,
        "chat": 8,
        "follow_up": 7,
        "recall": 1.5,
        "tips_program": 1,
        "tips_at_once": 4,
        "expansion": 0.6,
        "advice": 0.4,
        "judge": 0.7,
        "grade": 0.7,
        "grade_chat": 0.4,
        "extract_program": 2,
        "character": 0.7,
        "character_at_once": 0.7,
        "react": 1.2,
        "reason": 1,
        "story": 0.3,
    },
    {
        "completion": 14,
        "comparisons": 6,
        "chat": 9,
        "follow_up": 9,
        "recall": 1.5,
        "tips_program": 1,
        "tips_at_once": 9,
        "expansion": 0.6,
        "advice": 0.4,
        "judge": 0.7,
        "grade": 0.7,
        "grade_chat": 0.4,
        "extract_program": 1.5,
        "character": 0.7,
        "character_at_once": 0.7,
        "react": 1,
        "reason": 1,
        "story": 0.3,
    },
    {
        "completion": 22,
        "few_shot": 3,
        "comparisons": 3,
        "chat": 9,
        "follow_up": 5,
        "recall": 2,
        "tips_program": 1.5,
        "tips_at_once": 4,
        "expansion": 1,
        "advice": 0.5,
        "judge": 1.2,
        "grade": 1.2,
        "grade_chat": 0.4,
        "extract_program": 2,
        "character": 0.5,
        "character_at_once": 0.5,
        "react": 2,
        "react_at_once": 1,
        "reason": 4,
        "reason_chat": 2,
        "story": 0.4,
        "sums_in_a_row": 6,
        "notes": 4,
    },
)
# The first text of each stage. The last one is trained on from the weights of those before.
STAGES = (0, 250 * 1024, 388 * 1024, 463 * 1024, 533 * 1024, 1024 * 1024)
LAST_STAGE = len(STAGES) - 1


def stage_of(i: int) -> int:
    """The stage of text `i`."""
    return sum(i >= start for start in STAGES) - 1


def text(seed: int, i: int, world: World) -> tuple[str, Text]:
    """The name of a shape, and text `i` of the seed."""
    r = Random(f"{seed}/{i}")
    stage = stage_of(i)
    weights = [LATER[stage].get(name, weight) for name, (_, weight) in SHAPES.items()]
    name = r.choices(NAMES, weights)[0]
    return name, SHAPES[name][0](r, replace(world, stage=stage))


def stream(seed: int, start: int = 0) -> Iterator[Text]:
    """The training texts from `start` on."""
    world, i = World("train"), start
    while True:
        yield text(seed, i, world)[1]
        i += 1


def show(name: str | None, n: int, seed: int) -> None:
    """Prints texts of one shape, or of all, with the generated parts in brackets."""
    for shape in [name] if name else NAMES:
        for i in range(n):
            text = SHAPES[shape][0](Random(f"{seed}/{shape}/{i}"), World("train", stage=LAST_STAGE))
            marked = "".join(f"[{part}]" if is_new else part for part, is_new in text.parts)
            print(f"-- {shape} --\n{marked}\n")
