"""The engine's replies in OpenAI's JSON: whole ones and the chunks of a stream."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.errors import HttpError, Json
from sgc.runtime.engine.http.openai.requests import Completions
from sgc.runtime.engine.http.token_texts import TokenTexts, logprob_of
from sgc.runtime.engine.http.turns.harmony import turn_of
from sgc.runtime.engine.http.turns.turn import message_of

Offsets = Callable[[Iterable[int]], list[int]]


class Replies:
    """Writes the replies to one HTTP request; all carry the same id and creation time.

    `begin` returns the engine's first requests; `follow` takes each reply and may return another
    request; then `chunks` writes what that reply added, or at the end `whole` writes everything.
    """

    def __init__(self, asked: Completions, model: str, texts: TokenTexts) -> None:
        self._asked = asked
        self._texts = texts
        prefix = "chatcmpl-" if asked.is_chat else "cmpl-"
        self._head = {"id": prefix + secrets.token_hex(12), "created": int(time.time())}
        self._model = model
        shown = texts.shown if asked.stream and asked.logprobs is not None else None
        self._turns = [turn_of(asked.plan, request, shown) for request in asked.requests]
        self._said: list[list[Json]] = [[] for _ in self._turns]
        self._offsets: dict[int, Offsets] = {}  # of the completions that have begun

    def begin(self) -> list[pb.Request]:
        return [turn.ask() for turn in self._turns]

    def follow(self, reply: pb.Reply) -> pb.Request | None:
        """Takes a reply, and returns the request that continues its completion, if any."""
        turn = self._turns[reply.id]
        more = turn.take(reply)
        if not self._asked.stream:
            self._said[reply.id] += turn.deltas()
        return more

    def blame(self, error: HttpError) -> None:
        """Adds to an error of the engine the name of the field at fault, if known."""
        if error.request_id is not None:
            self._turns[error.request_id].blame(error)

    def whole(self) -> Json:
        choices = [self._choice(i) for i in range(len(self._turns))]
        if self._asked.n_best is not None:
            choices = self._best(choices, self._asked.n_best)
        kind = "chat.completion" if self._asked.is_chat else "text_completion"
        return {**self._reply(kind, choices), "usage": self.usage()}

    def chunks(self, reply: pb.Reply) -> list[Json]:
        """The chunks of a stream for one reply of the engine."""
        turn = self._turns[reply.id]
        made = [] if reply.id in self._offsets else self._beginning(reply)
        for delta in turn.deltas():
            rows = turn.rows() if "content" in delta else []
            made.append(self._chunk(reply.id, delta, self._told(reply.id, rows), None))
        if turn.finish is None:
            return made
        return [*made, self._chunk(reply.id, {}, self._told(reply.id, turn.rows()), turn.finish)]

    def _best(self, choices: list[Json], n: int) -> list[Json]:
        """For each prompt, the n completions with the highest mean log-probability per token."""
        n_draws, found = self._asked.asks[0].n, []
        for first in range(0, len(choices), n_draws):
            of_prompt = range(first, first + n_draws)
            best = sorted(of_prompt, key=lambda i: -_likelihood(self._turns[i].texts))[:n]
            found += [choices[i] for i in best]
        return [{**choice, "index": i} for i, choice in enumerate(found)]

    def usage_chunk(self) -> Json:
        """The last chunk, if the client asked for usage."""
        return {**self._stream_reply([]), "usage": self.usage()}

    def usage(self) -> Json:
        """A prompt counts once, however many completions it has."""
        n_prompt = n_cached = first = 0
        usages = [turn.usage for turn in self._turns]
        for ask in self._asked.asks:
            n_prompt += usages[first].prompt_tokens
            n_cached += usages[first].cached_tokens
            first += ask.n
        n_completion = sum(usage.completion_tokens for usage in usages)
        return {
            "prompt_tokens": n_prompt,
            "completion_tokens": n_completion,
            "total_tokens": n_prompt + n_completion,
            "prompt_tokens_details": {"cached_tokens": n_cached},
            **self._details(),
        }

    def _details(self) -> Json:
        if not self._asked.plan.tag:
            return {}
        n_reasoning = sum(turn.n_reasoning for turn in self._turns)
        return {"completion_tokens_details": {"reasoning_tokens": n_reasoning}}

    # Parts.

    def _reply(self, kind: str, choices: list[Json]) -> Json:
        return {**self._head, "object": kind, "model": self._model, "choices": choices}

    def _stream_reply(self, choices: list[Json]) -> Json:
        kind = "chat.completion.chunk" if self._asked.is_chat else "text_completion"
        return self._reply(kind, choices)

    def _choice(self, index: int) -> Json:
        shared = {
            "index": index,
            "logprobs": self._logprobs(index),
            "finish_reason": self._turns[index].finish,
        }
        message = message_of(self._said[index])
        if not self._asked.is_chat:
            return {**shared, "text": self._echo(index) + message["content"]}
        return {**shared, "message": message}

    def _beginning(self, reply: pb.Reply) -> list[Json]:
        """The chunks before a completion's first text: its role, or its echoed prompt."""
        index = reply.id
        self._offsets[index] = self._texts.offsets_from(len(self._echo(index)))
        if self._asked.is_chat:
            delta = {"role": "assistant", "content": ""}
            choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
            return [self._with_usage(self._stream_reply([choice]))]
        found = reply.delta if reply.HasField("delta") else reply.generated
        echo, rows = self._echo(index), self._of_prompt(index, found)
        return [self._chunk(index, {"content": echo}, rows, None)] if echo or rows else []

    def _chunk(self, index: int, delta: Json, logprobs: Json | None, finish: str | None) -> Json:
        choice: Json = {"index": index, "logprobs": logprobs, "finish_reason": finish}
        if self._asked.is_chat:
            choice["delta"] = delta
        else:
            choice["text"] = delta.get("content", "")
        return self._with_usage(self._stream_reply([choice]))

    def _with_usage(self, chunk: Json) -> Json:
        return {**chunk, "usage": None} if self._asked.include_usage else chunk

    def _echo(self, index: int) -> str:
        if not self._asked.prompts:
            return ""
        prompt = self._asked.prompts[index // self._asked.asks[0].n]
        return prompt if isinstance(prompt, str) else self._texts.decoded(prompt)

    # Log-probabilities.

    def _logprobs(self, index: int) -> Json | None:
        """The log-probabilities of a whole completion."""
        if self._asked.logprobs is None:
            return None
        texts = self._turns[index].texts
        shown = [row for generated in texts for row in self._texts.shown(generated)]
        if self._asked.is_chat:
            return self._entries(shown)
        n_echoed = len(self._echo(index))
        prompt = [row for generated in texts for row in generated.prompt_logprobs]
        offsets = [
            *self._texts.prompt_offsets([each.id for each in prompt], n_echoed),
            *self._texts.offsets([each.id for each in shown], n_echoed),
        ]
        return self._columns([*prompt, *shown], offsets)

    def _told(self, index: int, rows: list[pb.TokenLogprob]) -> Json | None:
        """The log-probabilities of a chunk's text."""
        if self._asked.logprobs is None or not rows:
            return None
        if self._asked.is_chat:
            return self._entries(rows)
        return self._columns(rows, self._offsets[index]([row.id for row in rows]))

    def _of_prompt(self, index: int, found: pb.Delta | pb.Generated) -> Json | None:
        """The log-probabilities of a chunk that echoes the prompt; an empty one has a token."""
        rows = list(found.prompt_logprobs)
        if not rows:
            return None
        ids = [row.id for row in rows]
        return self._columns(rows, self._texts.prompt_offsets(ids, len(self._echo(index))))

    def _entries(self, rows: list[pb.TokenLogprob]) -> Json:
        return {"content": [logprob_entry(each, self._texts) for each in rows], "refusal": None}

    def _columns(self, rows: list[pb.TokenLogprob], offsets: list[int]) -> Json:
        return {
            "tokens": [self._texts.text_of(each) for each in rows],
            "token_logprobs": [_logprob(each) for each in rows],
            "top_logprobs": [self._tops(each) for each in rows] if self._asked.logprobs else None,
            "text_offset": offsets,
        }

    def _tops(self, found: pb.TokenLogprob) -> Json | None:
        """Top log-probabilities by text, the likeliest of equal texts; None for the first token."""
        tops: Json = {}
        for each in found.top:
            tops.setdefault(self._texts.text_of(each), _logprob(each))
        return tops or None


def logprob_entry(found: pb.TokenLogprob, texts: TokenTexts) -> Json:
    """A token's log-probability as chats and responses have it."""

    def one(each: pb.TokenLogprob) -> Json:
        return {
            "token": texts.text_of(each),
            "logprob": _logprob(each),
            "bytes": list(texts.bytes_of(each)),
        }

    return {**one(found), "top_logprobs": [one(each) for each in found.top]}


def _likelihood(texts: list[pb.Generated]) -> float:
    rows = [row.logprob for generated in texts for row in generated.logprobs]
    return sum(rows) / max(1, len(rows))


def _logprob(found: pb.TokenLogprob) -> float | None:
    return logprob_of(found.logprob) if found.HasField("logprob") else None
