"""Framing and translation between the step process and the server process.

A frame is a 4-byte big-endian length and a protobuf message of `worker.proto`. Nothing is evaluated
or unpickled.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from functools import lru_cache
from operator import attrgetter

import numpy as np

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.images.image import Placed, with_ids
from sgc.runtime.engine.images.messages import placed_of
from sgc.runtime.engine.requests.joined import Join, Joins, Part
from sgc.runtime.engine.requests.logprobs import TokenLogprob
from sgc.runtime.engine.requests.request import (
    Commit,
    Embed,
    EngineRequest,
    Generate,
    LogprobsAsked,
    Prefetch,
    ProgramRun,
    SamplingParams,
    Score,
    Stops,
    Update,
    Usage,
)
from sgc.runtime.engine.requests.text_rules import Constraint
from sgc.runtime.engine.step.counts import Stats

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_READ_BYTES = 1 << 18


class Channel:
    """Length-prefixed messages over a connected socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray()
        self.is_open = True

    def receive(self, wait_s: float | None) -> list[wpb.StepInput]:
        """All complete messages that have arrived; waits up to `wait_s` for the first one or the
        end, or forever if None."""
        messages = self._complete()
        while self.is_open and self._is_readable(0 if messages else wait_s):
            wait_s = 0 if wait_s is not None else None
            data = self._sock.recv(_READ_BYTES)
            self.is_open = bool(data)
            self._buffer += data
            messages += self._complete()
        return messages

    def send(self, message: wpb.Ready | wpb.StepOutput) -> None:
        data = message.SerializeToString()
        if len(data) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of {len(data)} bytes; {MAX_MESSAGE_BYTES} are allowed")
        self._sock.sendall(len(data).to_bytes(4, "big") + data)

    def _is_readable(self, wait_s: float | None) -> bool:
        return bool(select.select([self._sock], [], [], wait_s)[0])

    def _complete(self) -> list[wpb.StepInput]:
        messages: list[wpb.StepInput] = []
        at = 0
        while len(self._buffer) - at >= 4:
            size = int.from_bytes(self._buffer[at : at + 4], "big")
            if size > MAX_MESSAGE_BYTES:
                raise ValueError(f"a message of {size} bytes; {MAX_MESSAGE_BYTES} are allowed")
            if len(self._buffer) - at - 4 < size:
                break
            messages.append(wpb.StepInput.FromString(bytes(self._buffer[at + 4 : at + 4 + size])))
            at += 4 + size
        del self._buffer[:at]
        return messages


def bounded(output: wpb.StepOutput) -> list[wpb.StepOutput]:
    """The output, split into messages of allowed size; [] if it is empty."""
    size, n = output.ByteSize(), len(output.updates)
    if size == 0:
        return []
    if size <= MAX_MESSAGE_BYTES or n < 2:
        return [output]
    first, second = wpb.StepOutput(), wpb.StepOutput()
    first.CopyFrom(output)
    del first.updates[n // 2 :]
    second.updates.extend(output.updates[n // 2 :])
    return bounded(first) + bounded(second)


def request_of(message: wpb.WorkerRequest, constraint: Constraint | None = None) -> EngineRequest:
    """The core's request. constraint: the message's compiled grammar."""
    kind: Generate | Score | Commit | Prefetch | Embed
    match message.WhichOneof("kind"):
        case "generate":
            kind = _read_sampling(message.generate.SerializeToString())
            if message.grammar:
                stop = replace(kind.stop, n_skipped=message.n_healed_chars)
                kind = replace(kind, constraint=constraint, stop=stop)
        case "score":
            kind = Score(tuple(tuple(choice.ids) for choice in message.score.choices))
        case "prefetch":
            kind = Prefetch()
        case "embed":
            kind = Embed(message.embed.pooling)
        case _:
            kind = Commit()
    tokens = np.fromiter(message.tokens, np.int64, len(message.tokens))
    images: tuple[Placed, ...] = ()
    if message.images:
        images = tuple(map(placed_of, message.images))
        tokens = with_ids(tokens, images)
    return EngineRequest(
        message.id,
        tokens,
        kind,
        message.namespace,
        message.n_reusable if message.HasField("n_reusable") else None,
        message.owner,
        _run_of(message.run) if message.HasField("run") else None,
        joins_of(message.joins) if message.joins else (),
        adapter=message.adapter,
        images=images,
        priority=message.priority,
    )


def joins_of(messages: Iterable[wpb.Join]) -> Joins:
    return tuple(
        Join(each.start, tuple(Part(part.end, joins_of(part.joins)) for part in each.parts))
        for each in messages
    )


def _run_of(message: pb.ProgramRun) -> ProgramRun:
    return ProgramRun(message.id, message.remaining if message.HasField("remaining") else None)


@lru_cache(maxsize=1024)  # many requests have equal sampling
def _read_sampling(data: bytes) -> Generate:
    sampling = pb.Sampling.FromString(data)
    given = {field.name: getattr(sampling, field.name) for field in fields(SamplingParams)}
    given["logit_bias"] = tuple((each.id, each.bias) for each in sampling.logit_bias)
    return Generate(
        max_tokens=sampling.max_tokens,
        params=SamplingParams(**given),
        min_tokens=sampling.min_tokens,
        stop=Stops(tuple(sampling.stop), tuple(sampling.stop_regex)),
        stop_ids=tuple(sampling.stop_token_ids),
        logprobs=_asked_of(sampling.logprobs) if sampling.HasField("logprobs") else None,
    )


def _asked_of(asked: pb.Logprobs) -> LogprobsAsked:
    start = asked.start if asked.HasField("start") else None
    return LogprobsAsked(start, asked.top, asked.stream)


_NO_ID = -1  # on the wire


def add_update(output: wpb.StepOutput, update: Update) -> None:
    """Adds an update in place, because protobuf copies a message that is added to another one."""
    if not update.final:
        message = output.updates.add(id=update.id, new_ids=update.new_ids, matched_id=_NO_ID)
        add_logprobs(message, update)
        return
    message = output.updates.add(
        id=update.id,
        new_ids=update.new_ids,
        final=True,
        finish_reason=update.finish_reason,
        matched=update.matched,
        matched_id=_NO_ID if update.matched_id is None else update.matched_id,
    )
    if update.gave_way:
        message.gave_way = True
    if update.n_over is not None:
        message.by_pattern, message.n_over = True, update.n_over
    for logprobs in update.choices:
        message.choices.add(logprobs=logprobs)
    add_logprobs(message, update)
    if update.embedding:
        message.embedding.extend(update.embedding)
    if update.usage is not None:
        _set_usage(message.usage, update.usage)
    if update.error is not None:
        message.error.code = update.error.code
        message.error.message = update.error.message


def add_logprobs(message: wpb.Update, update: Update) -> None:
    """Adds an update's log-probabilities to those of the message."""
    for each in update.logprobs:
        _set_logprob(message.logprobs.add(), each)
    for each in update.prompt_logprobs:
        _set_logprob(message.prompt_logprobs.add(), each)


def _set_logprob(message: pb.TokenLogprob, found: TokenLogprob) -> None:
    message.id = found.id
    if found.logprob is not None:
        message.logprob = found.logprob
    for token, logprob in found.top:
        message.top.add(id=token, logprob=logprob)


_USAGE = tuple(field.name for field in fields(Usage))
_usage_values = attrgetter(*_USAGE)


def _set_usage(message: pb.Usage, usage: Usage) -> None:
    message.SetInParent()  # present even if all fields are zero
    for name, value in zip(_USAGE, _usage_values(usage), strict=True):
        if value:
            setattr(message, name, value)


def stats_message(stats: Stats) -> pb.Stats:
    counts = asdict(stats)
    return pb.Stats(**counts.pop("counters"), **counts.pop("disk"), **counts)
