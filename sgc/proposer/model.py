"""A model as proposer of code movement: it orders a prompt's pieces, and judges the result.

Its order is a proposal like any other: only moves that `movement/move.py` finds legal are made. The
paper (section 4.3.2) asked GPT-4; here it is any endpoint that programs run on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from sgc.lang.state import ProgramState
from sgc.lang.words import Expr, assistant, gen, select, user
from sgc.passes.changing.movement.move import Proposer, violation
from sgc.passes.changing.movement.prompts import Prompt
from sgc.programs.function import Function
from sgc.runs.endpoint import Endpoint

MAX_ASKED_CHARS = 24_000
MAX_REPLY_TOKENS = 512

_LIST = re.compile(r"\[\s*(?:-?\d{1,6}\s*(?:,\s*-?\d{1,6}\s*)*)?\]")

_TASK = """A language-model program sends the same prompt many times with other arguments. What \
stands in front of the first argument is computed once and shared, so constant text should stand \
there wherever the prompt then asks the same. You are given a prompt's pieces, numbered. Answer \
with one line: the numbers of all pieces in their new order, as a JSON list. Every number is there \
once, arguments keep their order, and a cue, which begins the reply, stays last. Leave a text \
where it is if it points at what stands around it ("above", "this", "it", "then"), if it may \
belong to an argument or says how to take one, or if you are not sure.

Pieces:
0 argument "Article: {article}"
1 text "Summarize the article. Use plain words."
2 cue "Summary:"
Order: [1, 0, 2]

Pieces:
0 argument "{text}"
1 text "Translate the text above into French."
2 cue "French:"
Order: [0, 1, 2]
"""
_SAME = """Here are two prompts of one program. Words in braces stand for arguments, which may \
hold any text. Does the second ask a model for the same as the first? Say no if an instruction is \
about another text then, if a word points elsewhere, or if something that belonged to an \
argument, or told how to take it, no longer does. Answer yes or no.

"""


def by_model(endpoint: Endpoint) -> Proposer:
    """Asks an endpoint for an order, greedily, and then whether the prompt still asks the same."""

    def ask(prompt: str, reply: Expr) -> str:
        @Function
        def program(s: ProgramState, prompt: str) -> None:
            s += user(prompt)  # an argument's special tokens are plain text
            s += assistant(reply)

        how = {"temperature": 0.0, "max_tokens": MAX_REPLY_TOKENS, "seed": 0}
        return str(program.run(prompt, backend=endpoint, **how)["reply"])

    def propose(prompt: Prompt) -> tuple[tuple[int, ...], str]:
        asked = question(prompt)
        if len(asked) > MAX_ASKED_CHARS:
            return (), f"its question has over {MAX_ASKED_CHARS} characters"
        reply = ask(asked, gen("reply", stop="\n\n"))
        lists = _LIST.findall(reply)
        if not lists:
            return (), f"not a JSON list of numbers: {reply.strip()[:80]!r}"
        order = tuple(json.loads(lists[-1]))
        reason = violation(prompt.kinds, order)
        if reason or ask(judged(prompt, order), select("reply", choices=["yes", "no"])) == "yes":
            return order, reason
        return order, "the judge says that it would not ask the same"

    return propose


def question(prompt: Prompt) -> str:
    """What the model is asked about a prompt."""
    pieces = enumerate(zip(prompt.kinds, prompt.shown_pieces(), strict=True))
    shown = (
        f"{n} {kind.value} {json.dumps(text, ensure_ascii=False)}\n" for n, (kind, text) in pieces
    )
    return f"{_TASK}\nPieces:\n{''.join(shown)}Order:"


def judged(prompt: Prompt, order: Sequence[int]) -> str:
    """What the judge is asked about a new order."""
    first, second = prompt.shown(), prompt.shown(order)
    return f"{_SAME}<first>\n{first}\n</first>\n\n<second>\n{second}\n</second>"
