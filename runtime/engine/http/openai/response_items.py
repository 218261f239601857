"""Writes a reply as a response: its items, and the events of a stream in OpenAI's order."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.errors import HttpError, Json
from sgc.runtime.engine.http.openai.replies import logprob_entry
from sgc.runtime.engine.http.openai.response_requests import Asked
from sgc.runtime.engine.http.token_texts import TokenTexts
from sgc.runtime.engine.http.turns.channels import BREAK
from sgc.runtime.engine.http.turns.harmony import turn_of

_PART = {"message": "output_text", "reasoning": "reasoning_text"}
_DELTA = {
    "message": "response.output_text",
    "reasoning": "response.reasoning_text",
    "function_call": "response.function_call_arguments",
}


class Response:
    """One response. `begin` returns its first request; `follow` takes each reply and may return
    another request; then `events` are what that reply added, and at the end `whole` is
    everything."""

    def __init__(self, asked: Asked, model: str, texts: TokenTexts) -> None:
        self._asked, self._texts = asked, texts
        completions = asked.completions
        has_rows = completions.stream and completions.logprobs is not None
        shown = texts.shown if has_rows else None
        self._turn = turn_of(completions.plan, completions.requests[0], shown)
        self._head: Json = {
            "id": _id("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "model": model,
            "background": False,
            "error": None,
            "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None},
            "store": False,
            "truncation": "disabled",
            **asked.echoed,
        }
        self._items: list[Json] = []
        self._text = ""  # of the open item
        self._n_told = 0  # generated texts whose log-probabilities an item has already
        self._is_open = False
        self._events: list[Json] = []
        self._n_events = 0
        self._emit("response.created", response=self._response("in_progress"))
        self._emit("response.in_progress", response=self._response("in_progress"))

    def begin(self) -> list[pb.Request]:
        return [self._turn.ask()]

    def follow(self, reply: pb.Reply) -> pb.Request | None:
        """Takes a reply, and returns the request that continues the response, if any."""
        more = self._turn.take(reply)
        for delta in self._turn.deltas():
            self._add(delta)
        if self._turn.finish is not None:
            self._end()
        return more

    def blame(self, error: HttpError) -> None:
        """Adds to an error of the engine the name of the field at fault, if known."""
        self._turn.blame(error)

    def events(self) -> list[Json]:
        """The new events; the first field of each is its type."""
        found, self._events = self._events, []
        return found

    def whole(self) -> Json:
        is_cut = self._turn.finish == "length"
        return self._response("incomplete" if is_cut else "completed", is_cut)

    def failed(self, error: HttpError) -> Json:
        """The event of an error in a stream."""
        what = {"code": error.code, "message": error.message, "param": error.param}
        return {"type": "error", **what, "sequence_number": self._n_events}

    def _response(self, status: str, is_cut: bool = False) -> Json:
        return {
            **self._head,
            "status": status,
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "output": [dict(item) for item in self._items],
            "usage": None if status == "in_progress" else self._usage(),
        }

    def _usage(self) -> Json:
        usage = self._turn.usage
        return {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": self._turn.n_reasoning},
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        }

    # Items.

    def _add(self, delta: Json) -> None:
        for name, kind in (("reasoning_content", "reasoning"), ("content", "message")):
            if name in delta:
                if not self._is_open or self._items[-1]["type"] != kind:
                    if delta[name] == BREAK and any(x["type"] == kind for x in self._items):
                        continue  # items are apart anyway
                    self._open(kind)
                self._grow(delta[name], self._turn.rows() if kind == "message" else ())
        for call in delta.get("tool_calls", ()):
            if "id" in call:
                named = {"call_id": call["id"], "name": call["function"]["name"]}
                self._open("function_call", **named)
            self._grow(call["function"]["arguments"])

    def _open(self, kind: str, **more: Any) -> None:
        self._close()
        self._items.append(_OPENED[kind](more))
        self._text, self._is_open = "", True
        self._emit("response.output_item.added", item=dict(self._items[-1]))
        if kind in _PART:
            self._emit_part("response.content_part.added", "")

    def _grow(self, text: str, rows: Iterable[pb.TokenLogprob] = ()) -> None:
        if not text:
            return
        self._text += text
        kind = self._items[-1]["type"]
        told = [logprob_entry(row, self._texts) for row in rows]
        more: Json = {"logprobs": told} if kind == "message" else {}
        self._emit_of_item(f"{_DELTA[kind]}.delta", delta=text, **more)

    def _close(self, status: str = "completed") -> None:
        if not self._is_open:
            return
        item, kind = self._items[-1], self._items[-1]["type"]
        item["status"] = status
        if kind == "function_call":
            item["arguments"] = self._text
            self._emit_of_item(f"{_DELTA[kind]}.done", arguments=self._text, name=item["name"])
        else:
            rows = self._logprobs() if kind == "message" else []
            more: Json = {"logprobs": rows} if kind == "message" else {}
            self._emit_of_item(f"{_DELTA[kind]}.done", text=self._text, **more)
            part = self._emit_part("response.content_part.done", self._text, rows)
            item["content"] = [part]
        self._emit("response.output_item.done", item=dict(item))
        self._is_open = False

    def _end(self) -> None:
        is_cut = self._turn.finish == "length"
        if not self._items:
            self._open("message")
        self._close("incomplete" if is_cut else "completed")
        name = "response.incomplete" if is_cut else "response.completed"
        self._emit(name, response=self.whole())

    def _logprobs(self) -> list[Json]:
        """The log-probabilities of a message that ends, those without a delta included."""
        self._turn.rows()
        texts, self._n_told = self._turn.texts[self._n_told :], len(self._turn.texts)
        if self._asked.completions.logprobs is None:
            return []
        rows = [row for generated in texts for row in self._texts.shown(generated)]
        return [logprob_entry(row, self._texts) for row in rows]

    # Events.

    def _emit(self, kind: str, **more: Any) -> None:
        at = {"output_index": len(self._items) - 1} if "item" in more else {}
        event = {"type": kind, "sequence_number": self._n_events, **at, **more}
        self._n_events += 1
        self._events.append(event)

    def _emit_of_item(self, event: str, **more: Any) -> None:
        item = self._items[-1]
        at: Json = {"item_id": item["id"], "output_index": len(self._items) - 1}
        if item["type"] in _PART:
            at["content_index"] = 0
        self._emit(event, **at, **more)

    def _emit_part(self, name: str, text: str, logprobs: Sequence[Json] = ()) -> Json:
        kind = self._items[-1]["type"]
        part: Json = {"type": _PART[kind], "text": text}
        if kind == "message":
            part |= {"annotations": [], "logprobs": list(logprobs) if text else []}
        self._emit_of_item(name, part=part)
        return part


def _message(more: Json) -> Json:
    named = {"type": "message", "id": _id("msg"), "role": "assistant"}
    return {**named, "status": "in_progress", "content": []}


def _reasoning(more: Json) -> Json:
    named = {"type": "reasoning", "id": _id("rs"), "summary": []}
    return {**named, "status": "in_progress", "content": []}


def _function_call(more: Json) -> Json:
    named = {"type": "function_call", "id": _id("fc"), **more}
    return {**named, "arguments": "", "status": "in_progress"}


_OPENED: dict[str, Callable[[Json], Json]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
}


def _id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(24)}"
