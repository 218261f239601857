"""One question with its right answer, and the phrasings of questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tiny_model import world as w
from tiny_model.first_hour.phrasings import head as phrased
from tiny_model.world import World


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question. A prompt is the instruction, `label: content`, and `cue:`.

    instruction and label may be empty; `sentence`: the answer as a full sentence, for chats.
    """

    instruction: str
    label: str
    content: str
    cue: str
    reply: str
    sentence: str = ""


Task = Callable[[Random, Random, World], Exchange]


QUESTION_CUES = [("Question", "Answer"), ("Q", "A"), ("Question", "The answer is"), ("", "Answer")]
QUESTION_HEADS = [
    "",
    "",
    "Answer each question in a few words.",
    "Answer the question.",
    "Answer the question in a few words.",
    "Give a short answer.",
    "Answer in one or two words.",
    "Please answer the following question.",
]


def asked_of(
    r: Random, form: Random, world: World, qa: Callable[[], tuple[str, str, str]]
) -> Exchange:
    """An exchange of this split. qa: draws a question, its short answer, and its full answer."""
    head = phrased(form, world, "question", QUESTION_HEADS)
    label, cue = form.choice(QUESTION_CUES)
    while True:
        question, answer, sentence = qa()
        if w.is_held_out("question", question, head, cue) == (world.split == "test"):
            return Exchange(head, label, question, cue, answer, sentence)
