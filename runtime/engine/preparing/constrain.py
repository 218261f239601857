"""Makes one grammar, for the step process, of a generate request's constraint and healed prefix."""

from __future__ import annotations

from collections.abc import Sequence

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.guides.grammar import ConstraintError, Grammar, composed, grammar_of
from sgc.runtime.engine.guides.healing import healer_of
from sgc.runtime.engine.preparing.bounds import invalid
from sgc.runtime.engine.text.tokenizer import Ids, Text, Tokenizer


def constrain(
    work: wpb.WorkerRequest,
    asked: pb.Sampling,
    segments: Sequence[Text | Ids],
    tokenizer: Tokenizer,
) -> None:
    """Sets the grammar, and takes back the prompt's last tokens that healing regenerates.

    Raises RequestError for a constraint that cannot be satisfied.
    """
    grammar = _grammar(asked, tokenizer)
    prefix = ""
    if asked.heal and asked.max_tokens and segments and isinstance(segments[-1], Text):
        prefix = _take_back(work, segments[-1], tokenizer)
    if grammar is not None or prefix:
        work.grammar = composed(grammar, prefix)
        work.n_healed_chars = len(prefix)
        if grammar is None:
            work.free_after = len(prefix.encode())


def _grammar(asked: pb.Sampling, tokenizer: Tokenizer) -> Grammar | None:
    field = asked.WhichOneof("constraint")
    if field is None:
        return None
    try:
        grammar = grammar_of(field, getattr(asked, field))
    except ConstraintError as error:
        raise invalid(str(error)) from error
    n_tokens = -(-grammar.shortest // tokenizer.longest_token_chars)
    if 0 < asked.max_tokens < n_tokens:
        raise invalid(
            f"max_tokens is {asked.max_tokens}, but a text that satisfies the {field} has "
            f"{grammar.shortest} characters at least: {n_tokens} tokens of this model"
        )
    return grammar


def _take_back(work: wpb.WorkerRequest, last: Text, tokenizer: Tokenizer) -> str:
    """Cuts off the prompt's last tokens and returns their text; "" if no token can span the end."""
    healer = healer_of(tokenizer)
    if healer is None:
        raise invalid("heal: this model's tokenizer does not say what bytes its tokens are")
    for n, text in healer.taken_back(work.tokens):
        # It stays within the prompt's last text, and leaves at least one token of the prompt.
        if n < len(work.tokens) and last.text.endswith(text):
            del work.tokens[-n:]
            return text
    return ""
