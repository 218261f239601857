"""The tokens of a run's requests, which `offline.py` counts."""

from __future__ import annotations

from collections.abc import Sequence

from offline import Optimum, optimum

from sgc.runtime.engine.text.tokenizer import Ids, Text, Tokenizer
from sgc.runtime.executor.interface.backend import Generated, Prompt, TextRun, TokenRun
from sgc.runtime.executor.run.record import Request


def segments(prompt: Prompt) -> list[Text | Ids]:
    """A prompt in the form of the engine's tokenizer."""
    found: list[Text | Ids] = []
    for run in prompt:
        if isinstance(run, TextRun):
            found.append(Text(run.text, run.literal))
        else:
            assert isinstance(run, TokenRun)
            found.append(Ids(run.ids))
    return found


def tokens_of(request: Request, tokenizer: Tokenizer) -> tuple[Sequence[int], Sequence[int], bool]:
    """A request's prompt and output, and whether it needs logits."""
    parts = segments(request.prompt)
    if request.kind == "score":
        return tokenizer.encode_choices(parts, request.choices)[0], [], True
    if request.kind == "commit":
        return tokenizer.encode_commit(parts), [], False
    assert isinstance(request.reply, Generated)
    return tokenizer.encode_prompt(parts), request.reply.ids, True


def best_of(requests: Sequence[Request], tokenizer: Tokenizer) -> Optimum:
    return optimum([tokens_of(request, tokenizer) for request in requests])
