"""Programs for scripted providers, rows for them, and replies as a function of the prompt."""

from __future__ import annotations

import json
import random
import re
import zlib
from collections import Counter
from typing import Any

from providers.provider_server import Ask

import sgc
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.wire.lower import Lowered
from sgc.runtime.executor.backends.providers.wire.messages import Conversation
from sgc.runtime.executor.backends.providers.wire.reply import Replies, Reply, Spent
from sgc.runtime.executor.backends.stops import first_stop
from sgc.runtime.executor.interface.backend import FinishReason

NOTE = re.compile(r'\n\n(?:Your reply|The "value" of your reply) must be ')
WORDS = ["tea", "river", "stone", "lamp", "under", "green", "window", "seven", "walks", "slowly"]


@sgc.function
def straight(s, text: str):
    s += sgc.system("You are a careful reader.")
    s += sgc.user("Sum this up: " + text)
    s += sgc.assistant(sgc.gen("summary", max_tokens=48, stop="END"))
    s += sgc.user("Now a title for it.")
    s += sgc.assistant(sgc.gen("title", max_tokens=16))


@sgc.function
def branching(s, text: str):
    s += sgc.user("What is this about? " + text)
    s += sgc.assistant(sgc.select("kind", ["tea", "stone", "lamp"]))
    if s["kind"] == "tea":
        s += sgc.user("Tell more of it, at length.")
        s += sgc.assistant(sgc.gen("more", max_tokens=64))
    elif s["kind"] == "stone":
        for _ in sgc.turns(3):
            s += sgc.user("Go on.")
            s += sgc.assistant(sgc.gen("more", max_tokens=24))
            if "slowly" in s["more"]:
                break


@sgc.function
def checked(s, text: str):
    s += sgc.user("A year for: " + text)
    s += sgc.assistant(sgc.gen("year", regex="[12][0-9]{3}", max_tokens=24, temperature=0.5))
    s += sgc.user("As JSON.")
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    s += sgc.assistant(sgc.gen("json", json_schema=json.dumps(schema), max_tokens=40))


@sgc.function(num_api_spec_tokens=96)
def ahead(s, text: str):
    s += sgc.user("Fill in a form for: " + text)
    with s.assistant():
        s += "Name:" + sgc.gen("name", max_tokens=24, stop="\n")
        s += "\nJob:" + sgc.gen("job", max_tokens=24, stop="\n")


@sgc.function
def one(s, part: str):
    s += sgc.user("Sum up: " + part)
    s += sgc.assistant(sgc.gen("sum", max_tokens=24))
    return s["sum"].upper()


@sgc.function
def mapped(s, text: str):
    sums = sgc.map(one, text.split(" tea "))
    s += sgc.user("Put together: " + sgc.join(", ", sums.returns))
    group = s.fork(2)
    for child in group:
        child += sgc.assistant(sgc.gen("all", max_tokens=32))
    group.join()


PROGRAMS = {each.name: each for each in (straight, branching, checked, ahead, mapped)}


def rows(n: int, seed: int = 1) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [{"text": " ".join(rng.choices(WORDS, k=rng.randrange(2, 40)))} for _ in range(n)]


class Script:
    """Replies by what is said; asked the same again it may say something else. Now and then a reply
    is not as it was asked to be.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def reply(self, text: str, schema: Any, limit: int) -> str:
        """Within `limit` as the scripted providers count: four characters a token."""
        text = NOTE.split(text)[0]  # a further try is of the same
        self._counts[text] += 1
        drawn = zlib.crc32(f"{text}{self._counts[text]}".encode())
        is_wrong = drawn % 5 == 0 and self._counts[text] % 4 != 0  # never four times in a row
        if schema is not None and "value" in schema.get("properties", {}):
            return json.dumps({"value": "none" if is_wrong else "1987"})
        if schema is not None or "JSON" in text:
            return "nothing" if is_wrong else '{"a": "tea and lamps"}'
        if "A year for" in text:
            return "never" if is_wrong else "1987"
        if "form for" in text:
            return " Ada Stone\nJob: baker\n" if drawn % 4 else f" Ada {drawn % 7}\nand more\n"
        rng = random.Random(drawn)
        n_chars = 4 * limit * rng.uniform(0.5, 0.9)
        return " ".join(rng.choices(WORDS, k=limit))[: int(n_chars)]

    def prefer(self, text: str, choices: list[str]) -> str:
        return choices[zlib.crc32(text.encode()) % len(choices)]

    # For a scripted provider over HTTP.

    def answer(self, ask: Ask) -> str:
        limit = ask.body.get("max_tokens") or ask.body["max_completion_tokens"]
        return self.reply(ask.text, ask.schema, limit)

    def choose(self, ask: Ask, choices: list[str]) -> str:
        return self.prefer(ask.text, choices)


class ScriptedApi:
    """The same without HTTP: an `Api` of `ProviderBackend`, which counts as the server does."""

    base_url = "scripted"

    def __init__(self, script: Script) -> None:
        self._script = script

    async def send(self, lowered: Lowered, facts: Facts, on_text: Any) -> Replies:
        asked = lowered.asked
        assert isinstance(asked, Conversation)
        text = "".join(message.text for message in asked.messages) + asked.prefill
        schema = lowered.shape.schema if lowered.shape is not None else None
        replies = [self._reply(text, schema, lowered) for _ in range(lowered.n)]
        n_output = sum(len(each.text) // 4 + 1 for each in replies)
        if on_text is not None:
            on_text(replies[0].text)
        return Replies(tuple(replies), Spent(len(text) // 4 + 1, output=n_output))

    def _reply(self, text: str, schema: Any, lowered: Lowered) -> Reply:
        enum = (schema or {}).get("properties", {}).get("value", {}).get("enum")
        if enum:
            return Reply(json.dumps({"value": self._script.prefer(text, enum)}), FinishReason.STOP)
        said = self._script.reply(text, schema, lowered.max_tokens)
        found = first_stop(said, lowered.sent_stop)
        if found is None:
            return Reply(said, FinishReason.STOP)
        return Reply(said[: found[0]], FinishReason.STOP, found[1])

    async def close(self) -> None:
        return None
