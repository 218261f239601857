"""A model as proposer of code movement: it is shown a stream's numbered pieces, and orders them.

What it says is a proposal like any other: only what `movement/check.py` finds legal is done. The
paper (section 4.3.2) asked GPT-4; here it is any endpoint that programs run on.
"""

from __future__ import annotations

import json
import re

from sgc.ir.text.parser import parse
from sgc.passes.changing.movement.pieces import Kind
from sgc.passes.changing.movement.propose import Draft, Proposal, Proposer, Rejected
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.run.options import RunOptions

MAX_DRAFT_CHARS = 24_000
MAX_REPLY_TOKENS = 512
MAX_SHOWN_CHARS = 80

_LIST = re.compile(r"\[\s*(?:-?\d{1,6}\s*(?:,\s*-?\d{1,6}\s*)*)?\]")

_ASK = """sgir 1
program @order_pieces(%prompt: text) {
  %s0 = stream "order_pieces" path="order_pieces"
  %s1 = role_begin %s0 "user"
  %s2 = append %s1 %prompt
  %s3 = role_end %s2 "user"
  %s4 = role_begin %s3 "assistant"
  %s5, %order = gen %s4 name="order" stop=["\\n\\n"]
  %s6 = role_end %s5 "assistant"
  publish %s6 "order_pieces" keys=["order"] items=[%order]
  return none
}
"""

_TASK = """You are a compiler pass. A language-model program sends the same prompt many times with \
other arguments. What stands in front of the first argument is computed once and shared, so \
constant text should stand in front of the arguments wherever the prompt then means the same.

A program's prompt is a stream of nodes: `const` appends constant text, `append` an argument, \
`gen` what the model generates; `role_begin` and `role_end` enclose a turn. You are given the \
stream's pieces, numbered. Answer with one line: the numbers of all pieces in their new order, as \
a JSON list. Every number is there once. Arguments keep their order. Nothing crosses a generation, \
a role or a state. A piece of kind cue begins the reply and stays last. Leave a text where it is \
if it points at what stands around it ("above", "this", "the following", "it", "then"), or if you \
are not sure; if nothing should move, answer with the order as it is.
"""

_EXAMPLES = """Example 1
  %s1 = const  %s0 "Article: "
  %s2 = append %s1 %article
  %s3 = const  %s2 "\\n\\nSummarize the article. Use plain words.\\n\\nSummary:"
  %s4, %summary = gen %s3 name="summary"
Pieces:
0 argument "Article: {article}"
1 text "Summarize the article."
2 text "Use plain words."
3 cue "Summary:"
4 generation "gen summary"
Order: [1, 2, 0, 3, 4]

Example 2
  %s1 = append %s0 %text
  %s2 = const  %s1 "\\n\\nTranslate the text above into French.\\n\\nFrench:"
  %s3, %french = gen %s2 name="french"
Pieces:
0 argument "{text}"
1 text "Translate the text above into French."
2 cue "French:"
3 generation "gen french"
Order: [0, 1, 2, 3]

Example 3
  %s1 = role_begin %s0 "user"
  %s2 = const  %s1 "Here is a question "
  %s3 = append %s2 %question
  %s4 = const  %s3 ". Please act as a math expert and solve the given question."
  %s5 = role_end %s4 "user"
Pieces:
0 role "role_begin user"
1 argument "Here is a question {question}."
2 text "Please act as a math expert and solve the given question."
3 role "role_end user"
Order: [0, 2, 1, 3]
"""


def by_model(endpoint: Endpoint) -> Proposer:
    """A proposer that asks an endpoint, greedily and once for each stream."""
    program = Program(parse(_ASK))
    options = RunOptions(temperature=0.0, max_tokens=MAX_REPLY_TOKENS, seed=0)

    def propose(draft: Draft) -> Proposal | Rejected:
        same = Proposal(draft, tuple(range(len(draft.parts))))
        prompt = question(draft)
        if len(prompt) > MAX_DRAFT_CHARS:
            return Rejected(same, f"its prompt is longer than {MAX_DRAFT_CHARS} characters")
        reply = program.run_once({"prompt": prompt}, options, endpoint)["order"]
        order = read_order(reply)
        if order is None:
            shown = repr(reply.strip()[:MAX_SHOWN_CHARS])
            return Rejected(same, f"expected a JSON list of piece numbers, found {shown}")
        return Proposal(draft, order, "the model proposed it")

    return propose


def question(draft: Draft) -> str:
    """What the model is asked about a draft."""
    pieces = "\n".join(
        f"{number} {_kind(part.kind, part.text)} {json.dumps(part.text, ensure_ascii=False)}"
        for number, part in enumerate(draft.parts)
    )
    return f"{_TASK}\n{_EXAMPLES}\nYour task\nPieces:\n{pieces}\nOrder:"


def _kind(kind: Kind | None, text: str) -> str:
    if kind is not None:
        return kind.value
    if text.startswith("role_"):
        return "role"
    return "generation" if text.startswith(("gen", "select", "share")) else "state"


def read_order(reply: str) -> tuple[int, ...] | None:
    """The last list of whole numbers in a reply; None if there is none."""
    lists = _LIST.findall(reply)
    return tuple(json.loads(lists[-1])) if lists else None
