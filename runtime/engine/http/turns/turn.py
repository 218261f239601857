"""One reply to a chat: reasoning, text, calls, each a generation of its own in one context.

A part ends where its text says so (`</think>`, a trigger of calls). The next part's request has the
prompt, the text so far, and its own constraint. So reasoning and text are free while calls follow
their schemas, and the engine computes no token twice: the prefix is in the radix tree.
"""

from __future__ import annotations

import enum
import secrets
import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.errors import HttpError, Json
from sgc.runtime.engine.http.turns.call_text import Arguments, Begun, CallText
from sgc.runtime.engine.http.turns.edges import Edges
from sgc.runtime.engine.http.turns.formats import CallFormat, Trigger
from sgc.runtime.engine.http.turns.tools import Function

Shown = Callable[[pb.Generated], list[pb.TokenLogprob]]
_ALPHABET = string.ascii_letters + string.digits


class Part(enum.Enum):
    """THINKING is certainly reasoning; OPEN may begin with it. HEADER is not part of the reply: it
    says what follows (`harmony.py`)."""

    OPEN = enum.auto()
    THINKING = enum.auto()
    TEXT = enum.auto()
    CALLS = enum.auto()
    HEADER = enum.auto()


@dataclass(frozen=True, slots=True)
class Harmony:
    """ids: of gpt-oss's special tokens, by their texts. functions: those that may be called.
    continues: whether the reply continues a text that has begun."""

    ids: dict[str, int]
    functions: tuple[Function, ...] = ()
    continues: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of every reply to one request.

    begins: the first part. tag: around reasoning, or its channel; "" without reasoning. form: of
    calls, if calls are allowed. grammar: of the calls. must_call: whether calls follow the
    reasoning at once. text_grammar: of a constrained text, or the first trigger in its place.
    special_ids: of triggers that are special tokens. harmony: of a model whose replies are messages
    in channels.
    """

    begins: Part = Part.TEXT
    tag: str = ""
    form: CallFormat | None = None
    grammar: str = ""
    must_call: bool = False
    text_grammar: str = ""
    special_ids: dict[str, int] = field(default_factory=dict)
    harmony: Harmony | None = None

    @property
    def is_plain(self) -> bool:
        return self.begins is Part.TEXT and self.form is None

    @property
    def opens(self) -> str:
        return f"<{self.tag}>"

    @property
    def closes(self) -> str:
        return f"</{self.tag}>"


PLAIN = Plan()


class Turn:
    """The state of one reply. `ask` returns its first request; `take` returns each later one."""

    def __init__(self, plan: Plan, request: pb.Request, shown: Shown | None = None) -> None:
        """shown: if log-probabilities are streamed, returns those of a generated text without the
        part that a stop cut off."""
        self._plan = plan
        self._shown = shown
        self._part = plan.begins
        self._request = request
        self._sampling = request.generate.sampling
        self._n_parts = self._n_read = 0
        self._maybe = ""
        self._past: set[str] = set()  # triggers and tags that turned out to be text
        self._stops: list[str] = []  # our own stops, of the running request
        self._thought = Edges(starts_bare=True, ends_bare=True)
        self._said = Edges(ends_bare=plan.form is not None)
        self._has_said = False
        self._calls: CallText | None = None
        self._deltas: list[Json] = []
        self.finish: str | None = None
        self.usage = pb.Usage()
        self.n_reasoning = 0  # tokens
        self.texts: list[pb.Generated] = []  # tokens generated as text, for log-probabilities
        self._rows: list[pb.TokenLogprob] = []  # log-probabilities of text, not taken yet
        self._maybe_rows: list[pb.TokenLogprob] = []  # log-probabilities of what may be reasoning
        self._n_rows = 0  # the part's log-probabilities that came with its text

    def ask(self) -> pb.Request:
        """The first request."""
        if self._part is Part.CALLS:
            assert self._plan.form is not None
            self._begin_calls(self._plan.form.triggers[0])
        return self._asked()

    def take(self, reply: pb.Reply) -> pb.Request | None:
        """Reads a reply of the engine; returns the request of the next part, if there is one."""
        if reply.HasField("delta"):
            self._n_read += len(reply.delta.text)
            self._read(reply.delta.text)
            self._hear(reply.delta.logprobs)
            return None
        generated = reply.generated
        self._read(generated.text[self._n_read :])
        self._n_read = 0
        self._count(generated)
        return self._after(generated)

    def blame(self, error: HttpError) -> None:
        """Adds to an error of the running request the name of the field at fault, if known."""
        if self._part is Part.CALLS and error.status == 400 and error.param is None:
            error.param = "tools"

    def deltas(self) -> list[Json]:
        """The new parts of the reply, as OpenAI's deltas."""
        found, self._deltas = self._deltas, []
        return found

    def rows(self) -> list[pb.TokenLogprob]:
        """The new log-probabilities of text: if they are streamed, those that come with the text,
        and the others at the text's end."""
        found, self._rows = self._rows, []
        return found

    # Reading.

    def _hear(self, rows: Iterable[pb.TokenLogprob]) -> None:
        """Takes log-probabilities that came with text."""
        self._maybe_rows += rows
        if self._part is Part.OPEN:
            return
        if self._part is Part.TEXT:
            self._n_rows += len(self._maybe_rows)
            self._rows += self._maybe_rows
        self._maybe_rows = []

    def _take_rows(self, generated: pb.Generated) -> None:
        """Takes the log-probabilities of a text that has ended."""
        self._hear(())
        self.texts.append(generated)
        if self._shown is not None:
            self._rows += self._shown(generated)[self._n_rows :]
        self._n_rows = 0

    def _read(self, text: str) -> None:
        if self._part is Part.OPEN:
            text = self._decide(text)
        if self._part is Part.THINKING:
            self._tell("reasoning_content", self._thought.feed(text))
        elif self._part is Part.TEXT:
            self._say(text)
        elif self._calls is not None:
            self._deltas += [call_delta(each, self._calls.form) for each in self._calls.feed(text)]

    def _decide(self, text: str) -> str:
        """Leaves OPEN once the beginning tells whether it is reasoning."""
        self._maybe += text
        bare, opens = self._maybe.lstrip(), self._plan.opens
        if opens.startswith(bare) and bare != opens:
            return ""
        text, self._maybe = self._maybe, ""
        is_reasoning = bare.startswith(opens)
        self._part = Part.THINKING if is_reasoning else Part.TEXT
        return bare[len(opens) :] if is_reasoning else text

    def _say(self, text: str) -> None:
        if self._plan.text_grammar and not self._has_said:  # it may be the trigger
            text, self._maybe = self._maybe + text, ""
            if self._trigger_text.startswith(text):
                self._maybe = text
                return
        self._has_said = self._has_said or bool(text.strip())
        self._tell("content", self._said.feed(text))

    def _tell(self, name: str, text: str) -> None:
        if text:
            self._deltas.append({name: text})

    def _count(self, generated: pb.Generated) -> None:
        usage = generated.usage
        if self._part is Part.THINKING:
            self.n_reasoning += usage.completion_tokens
        if not self._n_parts:
            self.usage.CopyFrom(usage)
        else:
            self.usage.completion_tokens += usage.completion_tokens
        self._n_parts += 1

    # From part to part.

    def _after(self, generated: pb.Generated) -> pb.Request | None:
        plan, stop = self._plan, self._stop(generated)
        if self._part is Part.OPEN:  # the part ended before it was clear
            self._part, text, self._maybe = Part.TEXT, self._maybe, ""
            self._say(text)
        trigger = self._trigger(stop) if self._part is Part.TEXT else None
        if trigger is not None and plan.text_grammar:  # the whole text is the trigger
            self._rows = []
        elif self._part is Part.TEXT:
            self._take_rows(generated)
        if self._part is Part.THINKING and (stop == plan.closes or self._must_go_on(generated)):
            return self._after_reasoning(generated)
        if trigger is not None:
            self._extend(generated)
            self._begin_calls(trigger, is_written=bool(plan.text_grammar))
            return self._next()
        if stop:
            self._extend(generated, stop)
            self._past.add(stop)
            self._read(stop)
            return self._next()
        self._tell("content", self._said.rest() + self._maybe)
        is_cut = generated.finish_reason == pb.FINISH_REASON_LENGTH
        has_called = self._calls is not None and self._calls.n_calls > 0
        self.finish = "length" if is_cut else "tool_calls" if has_called else "stop"
        return None

    def _must_go_on(self, generated: pb.Generated) -> bool:
        """Whether the model ended its reply within its reasoning, although a constrained text or
        call must follow."""
        is_over = generated.finish_reason == pb.FINISH_REASON_STOP and not generated.matched
        must = self._plan.must_call or self._plan.text_grammar
        return is_over and bool(must or self._sampling.WhichOneof("constraint"))

    def _stop(self, generated: pb.Generated) -> str:
        """Which of our own stops ended the part; "" for none."""
        for text, token in self._plan.special_ids.items():
            if generated.matched_id == token and text not in self._past:
                return text
        if generated.matched in self._stops:
            return generated.matched
        is_text = self._part is Part.TEXT and self._plan.text_grammar
        return self._trigger_text if is_text and generated.text == self._trigger_text else ""

    @property
    def _trigger_text(self) -> str:
        return self._plan.form.triggers[0].text if self._plan.form else ""

    def _trigger(self, stop: str) -> Trigger | None:
        form = self._plan.form
        if form is None or not stop or (form.only_first and self._has_said):
            return None
        return next((each for each in form.triggers if each.text == stop), None)

    def _after_reasoning(self, generated: pb.Generated) -> pb.Request | None:
        self._extend(generated, self._plan.closes, is_literal=False)
        self._said.starts_bare = True
        self._part, self._past, self._maybe = Part.TEXT, set(), ""
        if self._plan.must_call:
            assert self._plan.form is not None
            self._add("\n\n")
            self._begin_calls(self._plan.form.triggers[0])
        return self._next()

    def _begin_calls(self, trigger: Trigger, is_written: bool = False) -> None:
        """is_written: whether the prompt ends with the trigger."""
        assert self._plan.form is not None
        self._add(trigger.opens.removeprefix(trigger.text) if is_written else trigger.opens)
        self._maybe = ""
        self._said.rest()  # white space before calls is not part of the text
        self._part = Part.CALLS
        self._calls = CallText(self._plan.form)

    def _next(self) -> pb.Request | None:
        if self.usage.completion_tokens >= self._sampling.max_tokens:
            self._tell("content", self._said.rest())
            self.finish = "length"
            return None
        return self._asked()

    # Requests.

    def _asked(self) -> pb.Request:
        if self._plan.is_plain:
            return self._request
        asked = self._request_left()
        sampling = asked.generate.sampling
        self._stops = self._own_stops()
        if self._part is Part.CALLS:
            for name in ("stop", "stop_regex", "min_tokens", "logprobs"):
                sampling.ClearField(name)
            sampling.grammar = self._plan.grammar
            return asked
        if self._part is Part.TEXT and self._plan.text_grammar:
            sampling.grammar = self._plan.text_grammar
            return asked
        if self._part is Part.THINKING:
            for name in ("regex", "json_schema", "grammar", "logprobs"):
                sampling.ClearField(name)
            sampling.stop.extend(self._stops)
            return asked
        sampling.stop.extend(self._stops)
        special = self._plan.special_ids
        sampling.stop_token_ids.extend(i for text, i in special.items() if text not in self._past)
        return asked

    def _request_left(self) -> pb.Request:
        """The request, with the remaining tokens."""
        asked = pb.Request()
        asked.CopyFrom(self._request)
        sampling = asked.generate.sampling
        sampling.max_tokens -= self.usage.completion_tokens
        sampling.min_tokens = max(0, sampling.min_tokens - self.usage.completion_tokens)
        sampling.seed = _seed(sampling.seed, self._n_parts)
        return asked

    def _own_stops(self) -> list[str]:
        """The texts that end this part."""
        plan, found = self._plan, []
        if self._part in (Part.OPEN, Part.THINKING):
            found.append(plan.closes)
        if self._part in (Part.OPEN, Part.TEXT) and plan.form and not plan.text_grammar:
            found += [x.text for x in plan.form.triggers if x.text not in plan.special_ids]
        return [text for text in found if text not in self._past]

    def _extend(self, generated: pb.Generated, text: str = "", is_literal: bool = True) -> None:
        """Adds what was generated to the prompt, and a text after it."""
        kept = generated.ids[generated.healed : generated.kept]
        if kept:
            self._request.prompt.segments.add().tokens.ids.extend(kept)
        self._add(generated.tail, is_literal=True)
        self._add(text, is_literal)

    def _add(self, text: str, is_literal: bool = False) -> None:
        """Adds a text to the prompt's last run of text."""
        if not text:
            return
        segments = self._request.prompt.segments
        if not segments or not segments[-1].HasField("text"):
            segments.add().text.SetInParent()
        run = segments[-1].text
        start = len(run.text)
        run.text += text
        if is_literal:
            run.literal.add(start=start, end=start + len(text))


def _seed(seed: int, part: int) -> int:
    if not seed or not part:
        return seed
    data = seed.to_bytes(8, "big") + part.to_bytes(4, "big")
    return int.from_bytes(blake2b(data, digest_size=8, person=b"part").digest(), "big")


def call_delta(event: Begun | Arguments, form: CallFormat) -> Json:
    """The delta that tells a client of a call."""
    if isinstance(event, Begun):
        function = {"name": event.name, "arguments": ""}
        call = {"index": event.index, "id": _call_id(form), "type": "function"}
        return {"tool_calls": [{**call, "function": function}]}
    return {"tool_calls": [{"index": event.index, "function": {"arguments": event.text}}]}


def _call_id(form: CallFormat) -> str:
    if form.name == "mistral":  # whose templates accept nothing else
        return "".join(secrets.choice(_ALPHABET) for _ in range(9))
    return "call_" + secrets.token_hex(12)


def message_of(deltas: list[Json]) -> Json:
    """The deltas of a reply as one message."""
    message: Json = {"role": "assistant", "content": "", "refusal": None}
    calls: list[Json] = []
    for delta in deltas:
        for call in delta.get("tool_calls", ()):
            if call["index"] == len(calls):
                calls.append({"id": call["id"], "type": "function", "function": {}})
            function = calls[call["index"]]["function"]
            for name, text in call["function"].items():
                function[name] = function.get(name, "") + text
        for name in ("content", "reasoning_content"):
            if name in delta:
                message[name] = message.get(name, "") + delta[name]
    if calls:
        message |= {"content": message["content"] or None, "tool_calls": calls}
    return message
