"""Replies in gpt-oss's form (harmony): messages, each with a channel, marked by special tokens.

    <|channel|>analysis<|message|>…<|end|><|start|>assistant            reasoning
    <|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}   a call
    <|channel|>final<|message|>…<|return|>                              the text

Generated text does not show those tokens. So the marks are put into the prompt, and the model
generates what is between them: the channel, one of those that the request allows, and then the
message.
"""

from __future__ import annotations

import re

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.turns.call_text import Arguments, Begun
from sgc.runtime.engine.http.turns.channels import (
    ANALYSIS,
    BREAK,
    CHANNEL,
    COMMENTARY,
    CONSTRAIN,
    END,
    ENDS,
    FINAL,
    MESSAGE,
    NEXT,
)
from sgc.runtime.engine.http.turns.tools import Function
from sgc.runtime.engine.http.turns.turn import Harmony, Part, Plan, Shown, Turn, call_delta

TO = " to=functions."
MAX_MESSAGES = 16  # after so many messages, the next is the text or a call
_NOT_OF_TEXT = ("regex", "json_schema", "grammar", "logprobs", "stop", "stop_regex", "min_tokens")


def turn_of(plan: Plan, request: pb.Request, shown: Shown | None = None) -> Turn:
    """The state of a reply, in the form of the model's family."""
    if plan.harmony is not None:
        return HarmonyTurn(plan, plan.harmony, request, shown)
    return Turn(plan, request, shown)


class HarmonyTurn(Turn):
    def __init__(
        self, plan: Plan, harmony: Harmony, request: pb.Request, shown: Shown | None
    ) -> None:
        super().__init__(plan, request, shown)
        self._harmony = harmony
        self._is_constrained = self._sampling.WhichOneof("constraint") is not None
        self._channel = FINAL
        self._function: Function | None = None
        self._n_messages = 0
        self._said_in: set[Part] = set()

    def ask(self) -> pb.Request:
        if not self._harmony.continues:
            self._begin_header(CHANNEL)
        return self._asked()

    # Reading.

    def _read(self, text: str) -> None:
        if self._part is not Part.CALLS:
            super()._read(text)
        elif text and self._plan.form is not None:
            self._deltas.append(call_delta(Arguments(0, text), self._plan.form))

    # From part to part.

    def _after(self, generated: pb.Generated) -> pb.Request | None:
        is_cut = generated.finish_reason == pb.FINISH_REASON_LENGTH
        if self._part is Part.TEXT:
            self._take_rows(generated)
        if self._part is Part.CALLS:
            return self._over("length" if is_cut else "tool_calls")
        if is_cut:
            return self._over("length")
        if self._part is Part.HEADER:
            return self._after_header(generated)
        is_end = generated.matched_id in [self._harmony.ids[mark] for mark in ENDS]
        must_go_on = self._part is Part.THINKING and (self._plan.must_call or self._is_constrained)
        if self._channel == FINAL or not (is_end or must_go_on):
            return self._over("stop")
        self._said.rest()
        self._thought.rest()
        self._extend(generated)
        self._begin_header(END + NEXT + CHANNEL)
        return self._next()

    def _over(self, finish: str) -> pb.Request | None:
        self._tell("content", self._said.rest())
        self.finish = finish
        return None

    def _begin_header(self, marks: str) -> None:
        self._add(marks)
        self._part = Part.HEADER

    def _after_header(self, generated: pb.Generated) -> pb.Request | None:
        self._extend(generated)
        self._n_messages += 1
        self._channel, _, name = generated.text.partition(TO)
        self._function = next((x for x in self._harmony.functions if x.name == name), None)
        if self._function is not None:
            self._begin_call(self._function)
            return self._next()
        self._add(MESSAGE)
        is_thought = self._channel == ANALYSIS and self._plan.tag
        self._part = Part.THINKING if is_thought else Part.TEXT
        if self._part in self._said_in:
            kind = "content" if self._part is Part.TEXT else "reasoning_content"
            self._tell(kind, BREAK)
        self._said_in.add(self._part)
        return self._next()

    def _begin_call(self, function: Function) -> None:
        assert self._plan.form is not None
        mark = CONSTRAIN if CONSTRAIN in self._harmony.ids else ""
        self._add(f" {mark}json{MESSAGE}")
        self._part = Part.CALLS
        self._deltas.append(call_delta(Begun(0, function.name), self._plan.form))

    # Requests.

    def _asked(self) -> pb.Request:
        asked = self._request_left()
        sampling, ids = asked.generate.sampling, self._harmony.ids
        if self._channel != FINAL or self._part is Part.HEADER:
            sampling.ignore_eos = False
        if self._part is not Part.TEXT:
            for name in _NOT_OF_TEXT:
                sampling.ClearField(name)
        if self._part is Part.HEADER:
            sampling.regex = "|".join(self._headers())
            sampling.stop_token_ids.extend(ids[x] for x in (MESSAGE, CONSTRAIN) if x in ids)
        elif self._part is Part.CALLS:
            assert self._function is not None
            sampling.json_schema = self._function.schema
        else:
            sampling.stop_token_ids.extend(ids[mark] for mark in ENDS)
        return asked

    def _headers(self) -> list[str]:
        """The patterns of the headers that may come next."""
        is_last, functions = self._n_messages >= MAX_MESSAGES, self._harmony.functions
        is_free = self._plan.tag or not (self._plan.must_call or self._is_constrained)
        found = [ANALYSIS] if is_free and not is_last else []
        if not self._plan.must_call:
            found.append(FINAL)
            if functions and not is_last and not self._is_constrained:
                found.append(COMMENTARY)
        names = "|".join(re.escape(each.name) for each in functions)
        return [*found, f"{COMMENTARY}{re.escape(TO)}({names})"] if names else found
