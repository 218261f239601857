"""The sampling parameters: fields of every op that generates text."""

from __future__ import annotations

from sgc.ir.op_specs import NUMERIC, TEXTUAL, FieldSpec
from sgc.ir.types import Kind

GREEDY_BELOW = 1e-5  # temperatures below it take the likeliest token


def option(name: str, kind: Kind, doc: str, unit: str = "", is_list: bool = False) -> FieldSpec:
    """A sampling parameter: None means the run's default."""
    kinds = frozenset({kind}) | (NUMERIC if kind is Kind.FLOAT else frozenset())
    if kind is Kind.TEXT:
        kinds |= TEXTUAL
    return FieldSpec(name, kinds, default=None, is_list=is_list, unit=unit, doc=doc)


SAMPLING = (
    option("max_tokens", Kind.INT, "at most this many tokens", "tokens"),
    option("min_tokens", Kind.INT, "no end of sequence or stop before", "tokens"),
    option("temperature", Kind.FLOAT, "below 1e-5 is greedy"),
    option("top_p", Kind.FLOAT, "smallest set of tokens with this much probability"),
    option("top_k", Kind.INT, "the k likeliest tokens; -1 is all"),
    option("min_p", Kind.FLOAT, "tokens at least this likely relative to the likeliest"),
    option("frequency_penalty", Kind.FLOAT, "subtracted per occurrence in the output"),
    option("presence_penalty", Kind.FLOAT, "subtracted once if in the output"),
    option("repetition_penalty", Kind.FLOAT, "divides scores of tokens seen before"),
    option("stop", Kind.TEXT, "strings that end it; they are not part of the text", is_list=True),
    option("stop_token_ids", Kind.INT, "token ids that end it", is_list=True),
    option("ignore_eos", Kind.BOOL, "continue after the end-of-sequence token"),
    option("seed", Kind.INT, "for this generation only; default: from the run's seed"),
    option("stop_regex", Kind.TEXT, "patterns that end it like stop strings", is_list=True),
    option("regex", Kind.TEXT, "the text must match this pattern as a whole"),
    option("json_schema", Kind.TEXT, "the text must be JSON of this schema"),
    option("ebnf", Kind.TEXT, "the text must be of this grammar"),
    option("dtype", Kind.TEXT, "int, float, str or bool: a pattern for each"),
    option("logit_bias", Kind.TEXT, "JSON: for token ids, the value added to their scores"),
    option("keep_stop", Kind.BOOL, "the stop string that ended it is part of the text"),
    option(
        "heal",
        Kind.BOOL,
        "re-decides the prompt's last tokens, if text ends it inside what could be one token",
    ),
    option("return_logprob", Kind.BOOL, "log-probabilities come with the text"),
    option("logprob_start_len", Kind.INT, "from this prompt position on, the prompt's too"),
    option("top_logprobs_num", Kind.INT, "likeliest alternatives at each position"),
    option("return_text_in_logprobs", Kind.BOOL, "each token's text as well"),
)
