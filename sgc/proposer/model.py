"""A model as proposer of code movement: it orders a prompt's pieces, and judges what came out.

What it says is a proposal like any other: only what `movement/check.py` finds legal is done. The
paper (section 4.3.2) asked GPT-4; here it is any endpoint that programs run on.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from sgc.ir.text.parser import parse
from sgc.passes.changing.movement.check import violation
from sgc.passes.changing.movement.move import Proposal, Proposer
from sgc.passes.changing.movement.prompts import Prompt
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.run.options import RunOptions

MAX_ASKED_CHARS = 24_000
MAX_REPLY_TOKENS = 512

_LIST = re.compile(r"\[\s*(?:-?\d{1,6}\s*(?:,\s*-?\d{1,6}\s*)*)?\]")

_PROGRAM = """sgir 1
program @ask(%prompt: text) {{
  %s0 = stream "ask" path="ask"
  %s1 = role_begin %s0 "user"
  %s2 = append %s1 %prompt
  %s3 = role_end %s2 "user"
  %s4 = role_begin %s3 "assistant"
  %s5, %reply = {how}
  %s6 = role_end %s5 "assistant"
  publish %s6 "ask" keys=["reply"] items=[%reply]
  return none
}}
"""
_ORDER = _PROGRAM.format(how='gen %s4 name="reply" stop=["\\n\\n"]')
_JUDGE = _PROGRAM.format(how='select %s4 choices=["yes", "no"] name="reply"')

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

    def ask(program: str, prompt: str) -> str:
        options = RunOptions(temperature=0.0, max_tokens=MAX_REPLY_TOKENS, seed=0)
        return str(Program(parse(program)).run_once({"prompt": prompt}, options, endpoint)["reply"])

    def propose(prompt: Prompt) -> Proposal:
        same = tuple(range(len(prompt.pieces)))
        asked = question(prompt)
        if len(asked) > MAX_ASKED_CHARS:
            return Proposal(prompt, same, f"its question has over {MAX_ASKED_CHARS} characters")
        reply = ask(_ORDER, asked)
        order = read_order(reply)
        if order is None:
            return Proposal(prompt, same, f"not a JSON list of numbers: {reply.strip()[:80]!r}")
        proposal = Proposal(prompt, order, violation(prompt.kinds, order))
        if proposal.is_move and ask(_JUDGE, judged(proposal)) != "yes":
            return replace(proposal, reason="the judge says that it would not ask the same")
        return proposal

    return propose


def question(prompt: Prompt) -> str:
    """What the model is asked about a prompt."""
    pieces = "".join(
        f"{number} {kind.value} {json.dumps(text, ensure_ascii=False)}\n"
        for number, (kind, text) in enumerate(zip(prompt.kinds, prompt.shown, strict=True))
    )
    return f"{_TASK}\nPieces:\n{pieces}Order:"


def judged(proposal: Proposal) -> str:
    """What the judge is asked about a proposal."""
    first, second = proposal.before, proposal.after
    return f"{_SAME}<first>\n{first}\n</first>\n\n<second>\n{second}\n</second>"


def read_order(reply: str) -> tuple[int, ...] | None:
    """The last list of whole numbers in a reply; None if there is none."""
    lists = _LIST.findall(reply)
    return tuple(json.loads(lists[-1])) if lists else None
