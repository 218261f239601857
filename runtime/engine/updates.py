"""Turns the worker's updates of one request into the replies its client gets.

Called by `session.py`; holds the text of a generation while it grows.
"""

from __future__ import annotations

from typing import Protocol

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.generated_text import GeneratedText
from sgc.runtime.engine.prepare import Prepared
from sgc.runtime.engine.tokenizer import Tokenizer
from sgc.runtime.engine.worker_link import OnUpdate


class Replies(Protocol):
    """Where replies go."""

    def send_delta(self, request_id: int, text: str) -> None: ...

    def finish(self, request_id: int, kind: str, update: wpb.Update) -> pb.Reply: ...

    def fail(self, request_id: int, error: pb.Error) -> None: ...


class _Handler:
    """A commit's updates; the base of the others."""

    kind = "commit"

    def __init__(self, replies: Replies, prepared: Prepared) -> None:
        self._replies = replies
        self._id = prepared.request.id
        self._work = prepared.work

    def __call__(self, update: wpb.Update) -> None:
        if update.HasField("error"):
            self._replies.fail(self._id, update.error)
        else:
            self._progress(update)

    def _progress(self, update: wpb.Update) -> None:
        if update.final:
            self._replies.finish(self._id, self.kind, update).committed.usage.CopyFrom(update.usage)


class _ScoreHandler(_Handler):
    kind = "score"

    def _progress(self, update: wpb.Update) -> None:
        if not update.final:
            return
        choices = list(zip(self._work.score.choices, update.choices, strict=True))
        scored = self._replies.finish(self._id, self.kind, update).scored
        scored.usage.CopyFrom(update.usage)
        for asked, found in choices:
            scored.choices.add(ids=asked.ids, logprobs=found.logprobs)


class _GenerateHandler(_Handler):
    kind = "generate"

    def __init__(self, replies: Replies, prepared: Prepared, tokenizer: Tokenizer) -> None:
        super().__init__(replies, prepared)
        self._streams = prepared.request.generate.stream
        self._text = GeneratedText(tokenizer, prepared.work.generate.stop if self._streams else ())
        self._n_sent = 0

    def _progress(self, update: wpb.Update) -> None:
        is_stop = update.final and update.finish_reason == pb.FINISH_REASON_STOP
        ended_by_id = is_stop and not update.matched and update.matched_id >= 0
        if not self._streams or ended_by_id:
            self._text.collect(update.new_ids)
        else:
            delta = self._text.feed(update.new_ids)
            if delta and not update.final:
                self._n_sent += len(delta)
                self._replies.send_delta(self._id, delta)
        if update.final:
            self._finish(update, ended_by_id)

    def _finish(self, update: wpb.Update, ended_by_id: bool) -> None:
        final = self._text.finish(update.matched, ended_by_id)
        if self._streams and len(final.text) > self._n_sent:
            self._replies.send_delta(self._id, final.text[self._n_sent :])
        generated = self._replies.finish(self._id, self.kind, update).generated
        generated.text = final.text
        generated.ids.extend(self._text.ids)
        generated.kept = final.n_kept
        generated.tail = final.tail
        generated.finish_reason = update.finish_reason
        generated.matched = update.matched
        generated.matched_id = update.matched_id if ended_by_id else -1
        generated.usage.CopyFrom(update.usage)


def handler(replies: Replies, prepared: Prepared, tokenizer: Tokenizer) -> OnUpdate:
    """What takes the worker's updates of a prepared request."""
    kind = prepared.request.WhichOneof("kind")
    if kind == "generate":
        return _GenerateHandler(replies, prepared, tokenizer)
    return (_ScoreHandler if kind == "score" else _Handler)(replies, prepared)
