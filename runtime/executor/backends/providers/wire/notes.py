"""Notes that tell a model about a constraint that its API does not enforce, and about replies that
violated it. They are only in the request, never in the program's text. Pure functions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from sgc.runtime.executor.backends.providers.wire.messages import Conversation
from sgc.runtime.executor.backends.providers.wire.schema import alternatives
from sgc.runtime.executor.interface.backend import Sampling
from sgc.runtime.executor.patterns.checked_constraints import EXCERPT, MAX_TRIES
from sgc.runtime.executor.run.options import DTYPES, REGEX_BOOL, REGEX_FLOAT, REGEX_INT

# Subjects of a constraint.
REPLY = "Your reply"
ADDED = "What you add to your last message"
VALUE = 'The "value" of your reply'
AFTER = "What comes after the text below"
_KINDS = {
    REGEX_INT: "a whole number in digits, such as -12",
    REGEX_FLOAT: "a number in digits, such as 3.5",
    REGEX_BOOL: "True or False",
    DTYPES["str"][0]: "a text in double quotes",
}


def of_constraint(sampling: Sampling, subject: str = REPLY) -> str:
    """A sentence on what a generation must be; "" without a constraint."""
    if sampling.regex is not None:
        kind = _KINDS.get(sampling.regex) or _words(sampling.regex) or "a text of the form below"
        form = f"As a whole it must match this regular expression:\n{sampling.regex}"
    elif sampling.json_schema is not None:
        kind, form = "JSON", f"It must be valid under this JSON schema:\n{sampling.json_schema}"
    else:
        return ""
    return f"{subject} must be {kind}, and nothing else. {form}{of_refused(sampling.refused)}"


def of_choices(choices: Sequence[str], subject: str, refused: Sequence[str] = ()) -> str:
    listed = json.dumps(list(choices), ensure_ascii=False)
    told = f"{subject} must be exactly one of these texts and nothing else: {listed}"
    if subject == REPLY:
        told = f"Reply with exactly one of these texts and nothing else: {listed}"
    return told + of_refused(refused)


def of_refused(refused: Sequence[str]) -> str:
    """A sentence with the last reply and the number of the try: no two requests are equal."""
    if not refused:
        return ""
    said = json.dumps(refused[-1], ensure_ascii=False)
    return f"\nTry {len(refused) + 1} of {MAX_TRIES}: before you said {said}, which is not that."


def with_note(asked: Conversation | str, note: str) -> Conversation | str:
    """Adds a note at the end of a chat, or at the start of a text, whose end must not change."""
    if isinstance(asked, str):
        return f"({note})\n\n{asked}"
    return asked.with_instruction(note)


# An upper bound; JSON writes a character with six bytes, or in UTF-8 with four.
LONGEST_REFUSED = len(of_refused([""] * (MAX_TRIES - 1))) + 6 * (EXCERPT + 1)


def longest_note(sampling: Sampling) -> int:
    """The most bytes that notes add to the prompt of a generation under a constraint."""
    said = max(len(of_constraint(sampling, each).encode()) for each in (REPLY, ADDED, VALUE, AFTER))
    return said + LONGEST_REFUSED + len(str(with_note("", "")))


def _words(pattern: str) -> str:
    words = alternatives(pattern)
    return "" if words is None else f"exactly one of {json.dumps(words, ensure_ascii=False)}"
