"""The error for a request that is not in a recording: the closest recorded request, and how the two
differ.
"""

from __future__ import annotations

import json
from itertools import islice

from sgc.errors import NotRecorded
from sgc.runtime.executor.interface.log import Json
from sgc.runtime.executor.interface.plain import canonical
from sgc.runtime.executor.log.file import LogFile

MAX_COMPARED = 2000  # recorded requests that one error is compared with
N_BEFORE, N_AFTER = 20, 40  # characters that are shown around a difference
_DEFAULT = "the default"
_WHAT = {"generate": "a generation", "score": "a choice"}


def not_recorded(file: LogFile, of: str, prompt: str, asked: Json) -> NotRecorded:
    """of: generate or score; asked: the fields of the request but its prompt, as recorded."""
    closest = _closest(file, of, prompt)
    if closest is None:
        how = "it has none"
    else:
        how = "the closest one " + _difference(closest, prompt, asked)
    return NotRecorded(
        f"the recording {file.path} does not have {_WHAT[of]} that the run asks for: {how}",
        hint="record it again, or undo the change of the program, its arguments or its options",
    )


def _closest(file: LogFile, of: str, prompt: str) -> Json | None:
    """Returns the recorded request whose prompt shares the longest prefix."""
    best, length = None, -1
    replies = (place for place in file.places() if place[0] == "reply")
    for place in islice(replies, MAX_COMPARED):
        record = file.find(place) or {}
        n_alike = _n_alike(str(record.get("prompt")), prompt)
        if record.get("of") == of and n_alike > length:
            best, length = record, n_alike
    return best


def _n_alike(one: str, other: str) -> int:
    """Returns the length of the common prefix of two texts."""
    if one.startswith(other) or other.startswith(one):
        return min(len(one), len(other))
    return next(n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])


def _difference(record: Json, prompt: str, asked: Json) -> str:
    recorded = str(record.get("prompt"))
    if recorded != prompt:
        at = _n_alike(recorded, prompt)
        return (
            f"differs from character {at} of its prompt on: recorded {_around(recorded, at)}, "
            f"asked {_around(prompt, at)}"
        )
    before, now = _flat(record, asked), _flat(json.loads(canonical(asked)), asked)
    names = [name for name in sorted(before | now) if before.get(name) != now.get(name)]
    names = [name for name in names if name != "seed"]  # replay accepts any seed
    if not names:
        return "was requested fewer times, or has other roles or tokens in its prompt"
    pairs = ((name, before.get(name, _DEFAULT), now.get(name, _DEFAULT)) for name in names)
    found = [f"{name} recorded {one}, asked {other}" for name, one, other in pairs]
    return f"has the same prompt, but: {'; '.join(found)}"


def _flat(record: Json, asked: Json) -> Json:
    """Returns the fields of a request but its prompt, by name; those of a sampling flattened."""
    found: Json = {}
    for name in asked:
        value = record.get(name)
        parts = value if isinstance(value, dict) else {name: value}
        found |= {part: repr(value) for part, value in parts.items()}
    return found


def _around(text: str, at: int) -> str:
    before = "…" if at > N_BEFORE else ""
    after = "…" if at + N_AFTER < len(text) else ""
    return repr(before + text[max(at - N_BEFORE, 0) : at + N_AFTER] + after)
