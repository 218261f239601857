"""Lowers a generation to a model's abilities: what is sent, what is done here, or a refusal.

It makes no requests. A refusal is an UnsupportedParameter, to which the run adds the node's line.
No parameter is dropped, except `seed`, which changes only the draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sgc.runtime.executor.backends.providers.models.models import Facts, refusal
from sgc.runtime.executor.backends.providers.wire import notes
from sgc.runtime.executor.backends.providers.wire.messages import (
    Conversation,
    Message,
    Text,
    conversation_of,
    plain_text,
)
from sgc.runtime.executor.backends.providers.wire.schema import Shape, of_regex, of_schema
from sgc.runtime.executor.interface.backend import Prompt, Sampling
from sgc.runtime.executor.interface.capabilities import OPTIONAL_SAMPLING

# Longer generations are streamed, so that no connection is idle for minutes.
STREAMED_ABOVE = 8192
ROOM_FOR_JSON = 24
SEEDS = 2**63
REWRITE = "Go on with your last message exactly where it stopped. Do not repeat any of it."
_TUNED = (
    "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty",
    "repetition_penalty", "min_tokens", "stop_token_ids", "ignore_eos",
)  # fmt: skip
_NEUTRAL = {name: getattr(Sampling(max_tokens=1), name) for name in _TUNED}


@dataclass(frozen=True, slots=True)
class Lowered:
    """A request. asked: the conversation, or the text to complete.

    params: fields of the request, by the API's names; a path with dots for nested ones. sent_stop:
    stop strings for the API; local_stop: those searched here. shape: of structured output. cut:
    white space at the prompt's end that was not sent, and that the reply may begin with.
    """

    asked: Conversation | str
    max_tokens: int
    params: Mapping[str, Any] = field(default_factory=dict)
    sent_stop: tuple[str, ...] = ()
    local_stop: tuple[str, ...] = ()
    shape: Shape | None = None
    cut: str = ""
    n: int = 1
    is_streamed: bool = False
    top_logprobs: int | None = None


def refused_fields(facts: Facts) -> frozenset[str]:
    """Fields of `Sampling` that no request to the model can have."""
    taken: dict[str, object] = {
        "ebnf": facts.ebnf,
        "logit_bias": facts.logit_bias,
        "logprobs": facts.top_logprobs,
        "seed": facts.seed,
    }
    refused = {name for name in _TUNED if name not in facts.params}
    refused |= {"stop_regex", "heal"} | {name for name, is_taken in taken.items() if not is_taken}
    assert refused <= OPTIONAL_SAMPLING | {"temperature", "top_p"}
    return frozenset(refused)


def lower(prompt: Prompt, sampling: Sampling, facts: Facts, n: int = 1) -> Lowered:
    """The request for a generation; raises UnsupportedParameter."""
    found = Lowered(asked_of(prompt, facts), sampling.max_tokens, n=n)
    is_begun = isinstance(found.asked, Conversation) and bool(found.asked.prefill.strip())
    found = _with_constraint(found, sampling, facts)
    found = _with_prefill(found, facts)
    found = _with_note(found, sampling, facts, is_begun)
    found = _with_stops(found, sampling.stop, facts)
    return replace(
        found,
        params={**found.params, **_params(sampling, facts)},
        max_tokens=_max_tokens(sampling.max_tokens, found, facts),
        top_logprobs=_top_logprobs(sampling, facts),
        is_streamed=n == 1 and (facts.streams or sampling.max_tokens > STREAMED_ABOVE),
    )


def asked_of(prompt: Prompt, facts: Facts) -> Conversation | str:
    if facts.api == "completions":
        return plain_text(prompt, facts.model)
    conversation = conversation_of(prompt, facts.model)
    _check_roles(conversation, facts)
    return conversation


def _check_roles(conversation: Conversation, facts: Facts) -> None:
    has_user = False
    for message in conversation.messages:
        has_user = has_user or message.role != "system"
        if message.media and message.role != "user":
            raise refusal(facts, f"takes images of the user only, not in {message.role!r}")
        if facts.api == "messages" and message.role == "system" and has_user:
            raise refusal(facts, "takes system messages at the beginning only", "move it there")
    if facts.api == "messages" and not has_user:
        raise refusal(facts, "needs a user message first", "s += sgc.user(...)")


def _with_constraint(found: Lowered, sampling: Sampling, facts: Facts) -> Lowered:
    """Sends a constraint that the API supports; the executor checks all of them."""
    if sampling.ebnf is not None:
        return replace(found, params={facts.ebnf: sampling.ebnf})
    if sampling.regex is not None and facts.regex:
        return replace(found, params={facts.regex: sampling.regex})
    if not facts.structured or found.n > 1:
        return found
    shape = None
    if sampling.regex is not None:
        shape = of_regex(sampling.regex, facts)
    elif sampling.json_schema is not None:
        shape = of_schema(sampling.json_schema, facts)
    return found if shape is None else replace(found, shape=shape)


def _with_prefill(found: Lowered, facts: Facts) -> Lowered:
    """Continues a begun assistant message in the way that the API supports, or refuses it."""
    if isinstance(found.asked, str) or not found.asked.prefill:
        return found
    asked, begun = found.asked, found.asked.prefill
    if not begun.strip():
        # Only white space: the reply may repeat it or not.
        return replace(found, asked=replace(asked, prefill=""), cut=begun)
    if facts.prefill == "none":
        raise refusal(
            facts,
            f"cannot continue a begun assistant message ({begun.strip()[-40:]!r})",
            "let the generation begin the message, or use ?prefill=rewrite, which asks it to go on",
        )
    if facts.prefill == "rewrite":
        said = Message("assistant", (Text(begun),))
        asked = Conversation((*asked.messages, said)).with_instruction(REWRITE)
        return replace(found, asked=asked, shape=None)
    if facts.prefill == "continue":
        more = {"continue_final_message": True, "add_generation_prompt": False}
        return replace(found, params={**found.params, **more})
    if facts.provider != "anthropic":
        return found
    # This API refuses a last message that ends with white space, and accepts either structured
    # output or a begun message: structured output is dropped, as replies are checked anyway.
    kept = begun.rstrip()
    return replace(found, asked=replace(asked, prefill=kept), cut=begun[len(kept) :], shape=None)


def _with_note(found: Lowered, sampling: Sampling, facts: Facts, is_begun: bool) -> Lowered:
    """Adds a note about a constraint that the API does not enforce fully, and in further tries the
    last reply. A completions prompt gets no note on the first try.
    """
    shape, is_text = found.shape, isinstance(found.asked, str)
    is_held = shape.is_whole if shape is not None else facts.regex in found.params
    if not sampling.refused and (is_held or is_text):
        return found
    is_wrapped = shape is not None and shape.unwrap is not None
    chat = notes.ADDED if is_begun else notes.VALUE if is_wrapped else notes.REPLY
    note = notes.of_constraint(sampling, notes.AFTER if is_text else chat)
    return replace(found, asked=notes.with_note(found.asked, note)) if note else found


def _with_stops(found: Lowered, stop: tuple[str, ...], facts: Facts) -> Lowered:
    """Stop strings that an API refuses or may ignore are searched here, in the whole reply."""
    if found.shape is not None and found.shape.unwrap is not None:
        return replace(found, local_stop=stop)  # the reply is JSON, not the text
    sent = [each for each in stop if facts.blank_stops or each.strip()]
    sent = sent if facts.max_stops is None else sent[: facts.max_stops]
    local = stop if len(sent) < len(stop) or not facts.is_known else ()
    return replace(found, sent_stop=tuple(sent), local_stop=local)


def _params(sampling: Sampling, facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _TUNED:
        value = getattr(sampling, name)
        is_neutral = value == _NEUTRAL[name]
        if is_neutral and name not in facts.sends_neutral:
            continue
        if name not in facts.params:
            raise refusal(facts, f"cannot honour {name}={value!r}")
        _check_range(name, value, facts)
        found[facts.params[name]] = list(value) if isinstance(value, tuple) else value
    both = [name for name in facts.one_of if facts.params.get(name) in found]
    if len(both) > 1:
        raise refusal(facts, f"takes only one of {' and '.join(both)}")
    if sampling.logit_bias:
        if not facts.logit_bias:
            raise refusal(facts, "cannot honour logit_bias")
        found["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias}
    seed = _seed(sampling, facts)
    if seed is not None:
        found["seed"] = seed
    if facts.effort:
        name = "output_config.effort" if facts.api == "messages" else "reasoning_effort"
        found[name] = facts.effort
    return found


def _seed(sampling: Sampling, facts: Facts) -> int | None:
    """The program's own seed; a derived one only if the model is known to accept seeds."""
    own = sampling.own_seed
    if own is not None and (facts.seed or facts.own_seed):
        if not -SEEDS <= own < SEEDS:
            raise refusal(facts, f"takes a seed of 64 bits, found {own!r}", "give a smaller one")
        return own
    return sampling.seed if facts.seed and sampling.seed else None


def _check_range(name: str, value: Any, facts: Facts) -> None:
    if name in facts.ranges:
        low, high = facts.ranges[name]
        if not low <= value <= high:
            raise refusal(facts, f"takes a {name} from {low:g} to {high:g}, found {value!r}")


def _max_tokens(wanted: int, found: Lowered, facts: Facts) -> int:
    """max_tokens, with extra room for the JSON around a wrapped text."""
    if wanted > facts.max_output:
        raise refusal(facts, f"generates at most {facts.max_output} tokens, max_tokens={wanted}")
    is_wrapped = found.shape is not None and found.shape.unwrap is not None
    return min(wanted + ROOM_FOR_JSON, facts.max_output) if is_wrapped else wanted


def _top_logprobs(sampling: Sampling, facts: Facts) -> int | None:
    if sampling.logprobs is None:
        return None
    if not facts.top_logprobs:
        raise refusal(facts, "cannot honour return_logprob")
    if sampling.logprobs.start is not None:
        raise refusal(facts, "returns no log-probabilities of prompts (logprob_start_len)")
    if sampling.logprobs.top > facts.top_logprobs:
        raise refusal(facts, f"tells at most {facts.top_logprobs} alternatives a token")
    return sampling.logprobs.top
