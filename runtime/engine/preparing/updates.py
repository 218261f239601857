"""Turns the worker's updates of one request into replies to its client.

Called by `session.py`; holds the text of a generation while it grows.
"""

from __future__ import annotations

from typing import Any, Protocol

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.guides.stop_patterns import PatternError
from sgc.runtime.engine.preparing.generated_text import GeneratedText
from sgc.runtime.engine.preparing.prepare import Prepared
from sgc.runtime.engine.preparing.streamed_logprobs import StreamedLogprobs
from sgc.runtime.engine.text.tokenizer import Tokenizer
from sgc.runtime.engine.worker.link import OnUpdate

_INVALID = pb.ERROR_CODE_INVALID_ARGUMENT
_Logprobs = Any  # protobuf's repeated field of TokenLogprob


class Replies(Protocol):
    """Where replies go."""

    def send_delta(self, request_id: int, text: str) -> pb.Delta: ...

    def finish(self, request_id: int, kind: str, update: wpb.Update) -> pb.Reply: ...

    def fail(self, request_id: int, error: pb.Error) -> None: ...


class _Handler:
    """Handles a commit's updates; the base of the other handlers."""

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
            committed = self._replies.finish(self._id, self.kind, update).committed
            committed.usage.CopyFrom(update.usage)
            committed.gave_way = update.gave_way


class _PrefetchHandler(_Handler):
    kind = "prefetch"


class _EmbedHandler(_Handler):
    kind = "embed"

    def _progress(self, update: wpb.Update) -> None:
        if update.final:
            embedded = self._replies.finish(self._id, self.kind, update).embedded
            embedded.vector.extend(update.embedding)
            embedded.usage.CopyFrom(update.usage)


class _ScoreHandler(_Handler):
    kind = "score"

    def __init__(self, replies: Replies, prepared: Prepared, tokenizer: Tokenizer) -> None:
        super().__init__(replies, prepared)
        self._tokenizer = tokenizer

    def _progress(self, update: wpb.Update) -> None:
        if not update.final:
            return
        choices = list(zip(self._work.score.choices, update.choices, strict=True))
        scored = self._replies.finish(self._id, self.kind, update).scored
        scored.usage.CopyFrom(update.usage)
        last = self._work.tokens[-1]
        before = pb.TokenLogprob(id=last, text=_text(self._tokenizer, last))
        for asked, found in choices:
            texts = [_text(self._tokenizer, token) for token in asked.ids]
            scored.choices.add(ids=asked.ids, logprobs=found.logprobs, texts=texts, before=before)


class _GenerateHandler(_Handler):
    kind = "generate"

    def __init__(self, replies: Replies, prepared: Prepared, tokenizer: Tokenizer) -> None:
        super().__init__(replies, prepared)
        self._streams = prepared.request.generate.stream
        self._tokenizer = tokenizer
        self._asked = prepared.request.generate.sampling
        self._text = GeneratedText(
            tokenizer,
            self._asked.stop if self._streams else (),
            tuple(self._asked.stop_regex),
            n_skipped=prepared.work.n_healed_chars,
        )
        self._n_sent = 0
        streams_rows = self._streams and self._asked.logprobs.stream
        self._rows = StreamedLogprobs(tokenizer) if streams_rows else None

    def _progress(self, update: wpb.Update) -> None:
        is_stop = update.final and update.finish_reason == pb.FINISH_REASON_STOP
        ended_by_id = is_stop and not update.matched and update.matched_id >= 0
        if not self._streams or ended_by_id:
            self._text.collect(update.new_ids)
        else:
            delta = self._text.feed(update.new_ids)
            if self._rows is not None and not update.final:
                self._rows.add(update)
            if delta and not update.final:
                self._send(delta)
        if update.final:
            self._finish(update, ended_by_id)

    def _send(self, text: str) -> None:
        self._n_sent += len(text)
        delta = self._replies.send_delta(self._id, text)
        if self._rows is not None:
            self._tell(delta.prompt_logprobs, self._rows.of_prompt())
            self._tell(delta.logprobs, self._rows.up_to(self._n_sent))

    def _finish(self, update: wpb.Update, ended_by_id: bool) -> None:
        n_over = update.n_over if update.by_pattern else None
        try:
            final = self._text.finish(update.matched, ended_by_id, n_over)
        except PatternError as error:
            self._replies.fail(
                self._id, pb.Error(code=_INVALID, message=f"{error.message}; {error.hint}")
            )
            return
        if self._streams and len(final.text) > self._n_sent:
            if self._rows is not None:
                self._rows.add_last(update)
            self._send(final.text[self._n_sent :])
        generated = self._replies.finish(self._id, self.kind, update).generated
        generated.text = final.text
        generated.ids.extend(self._text.ids)
        generated.healed, generated.kept = final.n_healed, final.n_kept
        generated.head = final.head
        generated.tail = final.tail
        generated.finish_reason = update.finish_reason
        generated.matched = final.matched
        generated.matched_id = update.matched_id if ended_by_id else -1
        generated.usage.CopyFrom(update.usage)
        n_healed = final.n_healed if update.logprobs else 0
        self._tell(generated.prompt_logprobs, update.prompt_logprobs)
        if self._asked.logprobs.HasField("start"):  # healed tokens repeat the prompt's text
            self._tell(generated.prompt_logprobs, update.logprobs[:n_healed])
        self._tell(generated.logprobs, update.logprobs[n_healed:])

    def _tell(self, replies: _Logprobs, found: _Logprobs) -> None:
        """Copies log-probabilities, with the tokens' texts where asked for."""
        for each in found:
            reply = replies.add()
            reply.CopyFrom(each)
            if self._asked.logprobs.text:
                for token in (reply, *reply.top):
                    token.text = _text(self._tokenizer, token.id)


def handler(replies: Replies, prepared: Prepared, tokenizer: Tokenizer) -> OnUpdate:
    """The handler of the worker's updates of a prepared request."""
    kind = prepared.request.WhichOneof("kind")
    if kind == "generate":
        return _GenerateHandler(replies, prepared, tokenizer)
    if kind == "score":
        return _ScoreHandler(replies, prepared, tokenizer)
    if kind == "prefetch":
        return _PrefetchHandler(replies, prepared)
    if kind == "embed":
        return _EmbedHandler(replies, prepared)
    return _Handler(replies, prepared)


def _text(tokenizer: Tokenizer, token: int) -> str:
    """A token's text by itself."""
    text: str = tokenizer.backend.decode([token], skip_special_tokens=False)
    return text
