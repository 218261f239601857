"""Lowers a `select` for a model that does not score choices to requests. Pure functions.

The table lists the ways that a model supports, best first:

choice       the server generates one of some texts
regex        the same by a pattern
structured   a JSON object with an enum
logit_bias   token by token, with only the choices' tokens allowed (`choice_walk.py`)
echo         log-probabilities of the choices after the prompt; the only way that returns scores
check        the prompt lists the choices; the reply is checked, and requested again if it is none
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from sgc.runtime.executor.backends.providers.models.models import Facts, refusal
from sgc.runtime.executor.backends.providers.wire import notes
from sgc.runtime.executor.backends.providers.wire.lower import (
    ROOM_FOR_JSON,
    Lowered,
    asked_of,
    lower,
)
from sgc.runtime.executor.backends.providers.wire.messages import Conversation
from sgc.runtime.executor.backends.providers.wire.schema import of_choices
from sgc.runtime.executor.interface.backend import Prompt, Sampling

# The tokens that a reasoning model may use before it takes a choice.
ROOM_TO_REASON = 4096


def select_method(prompt: Prompt, choices: tuple[str, ...], facts: Facts) -> str:
    """The first way that fits; raises UnsupportedParameter if none does."""
    for way in facts.select:
        if _fits(way, prompt, choices, facts):
            return way
    raise refusal(facts, "has no way to take one of these choices", "use gen and check its text")


def _fits(way: str, prompt: Prompt, choices: tuple[str, ...], facts: Facts) -> bool:
    if way == "structured":
        if facts.api == "completions":
            return False
        asked = asked_of(prompt, facts)
        has_begun = isinstance(asked, Conversation) and bool(asked.prefill.strip())
        return facts.structured and not (has_begun and facts.prefill in ("trailing", "rewrite"))
    if way in ("echo", "logit_bias"):
        return facts.api == "completions"
    return True


def lowered_select(
    way: str,
    prompt: Prompt,
    choices: tuple[str, ...],
    facts: Facts,
    sampling: Sampling,
) -> Lowered:
    """The request for a choice, for ways that generate it. A note lists the choices if the API does
    not get them in a field, and tells the reply of the last try.
    """
    found = lower(prompt, sampling, facts)
    is_held = way != "check"
    if way == "choice":
        found = replace(found, params={**found.params, facts.choice: list(choices)})
    elif way == "regex":
        pattern = "|".join(map(re.escape, choices))
        found = replace(found, params={**found.params, facts.regex: f"({pattern})"})
    elif way == "structured":
        found = replace(found, shape=of_choices(choices))
    is_text = isinstance(found.asked, str)
    if not sampling.refused and (is_held or is_text):
        return found
    subject = notes.AFTER if is_text else notes.VALUE if way == "structured" else notes.REPLY
    note = notes.of_choices(choices, subject, sampling.refused)
    return replace(found, asked=notes.with_note(found.asked, note))


def select_sampling(
    choices: tuple[str, ...], facts: Facts, refused: tuple[str, ...] = ()
) -> Sampling:
    """The sampling of a choice, greedy on the first try, with room for the longest choice."""
    seed = len(refused)
    longest = max(len(json.dumps(choice)) for choice in choices)
    room = ROOM_FOR_JSON + (ROOM_TO_REASON if facts.reasoning else 0)
    temperature = 0.0 if "temperature" in facts.params and seed == 0 else 1.0
    return Sampling(
        max_tokens=min(longest + room, facts.max_output),
        temperature=temperature,
        seed=seed,
        refused=refused,
    )


def index_of(reply: str, choices: tuple[str, ...], is_completed: bool = False) -> int | None:
    """The index of the choice that a reply equals but for white space around it, or None.

    is_completed: text may follow the choice, so the longest choice that begins the reply counts.
    """
    if reply in choices:
        return choices.index(reply)
    said, stripped = reply.strip(), [choice.strip() for choice in choices]
    if is_completed:
        begun = [each for each in stripped if each and said.startswith(each)]
        said = max(begun, key=len, default="")
    return stripped.index(said) if said and stripped.count(said) == 1 else None
