"""Each chunk of a stream has the log-probabilities of the tokens whose text it is, and together all
are those of the reply that is not streamed."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, cast

import pytest
from openai import OpenAI
from scripted_turns import LIMITS

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.http.openai.replies import Replies
from sgc.runtime.engine.http.openai.requests import text_completions
from sgc.runtime.engine.http.token_texts import TokenTexts
from sgc.runtime.engine.http.turns.turn import Part, Plan, Turn
from sgc.runtime.engine.preparing.streamed_logprobs import StreamedLogprobs
from sgc.runtime.engine.server.server import EngineFacts
from sgc.runtime.engine.text.template import Chat
from sgc.runtime.engine.text.tokenizer import Tokenizer

CHAT = {"model": "fake", "messages": [{"role": "user", "content": "Tell me more."}], "seed": 5}
TEXT = {"model": "fake", "prompt": "Once upon a time", "seed": 5}
# Random texts of bytes: characters of several tokens, and stops that hold text back.
SAMPLED: list[dict[str, Any]] = [
    {"temperature": 1.0, "max_tokens": 40, "n": 2},
    {"temperature": 1.0, "max_tokens": 40, "stop": ["e", "a b"]},
    {"temperature": 0.0, "max_tokens": 1},
]


def rows_of(entries: Any) -> list[tuple[str, float, int]]:
    return [(each.token, each.logprob, len(each.top_logprobs)) for each in entries]


@pytest.mark.parametrize("sampled", SAMPLED, ids=["long", "stopped", "one token"])
def test_chats(client: OpenAI, sampled: dict[str, Any]) -> None:
    asked = {**CHAT, **sampled, "logprobs": True, "top_logprobs": 2}
    whole = client.chat.completions.create(**asked)
    chunks = [x.choices[0] for x in client.chat.completions.create(**asked, stream=True)]
    for choice in whole.choices:
        own = [each for each in chunks if each.index == choice.index]
        told = [x for each in own if each.logprobs for x in rows_of(each.logprobs.content)]
        assert told == rows_of(choice.logprobs.content)
        n_chars = n_told = 0
        starts = [0, *accumulate(len(x[0]) for x in told)]  # at most: a character may be cut
        for each in own[:-1]:
            n_chars += len(each.delta.content or "")
            n_told += len(each.logprobs.content) if each.logprobs else 0
            assert n_told == 0 or n_chars
            assert starts[n_told] >= n_chars
        assert n_chars == len(choice.message.content)
        assert len({each.logprobs is None for each in own[1:-1]}) <= 1


@pytest.mark.parametrize("sampled", SAMPLED, ids=["long", "stopped", "one token"])
@pytest.mark.parametrize("echo", [False, True])
def test_completions(client: OpenAI, sampled: dict[str, Any], echo: bool) -> None:
    asked = {**TEXT, **sampled, "logprobs": 2, "echo": echo}
    whole = client.completions.create(**asked)
    chunks = [x.choices[0] for x in client.completions.create(**asked, stream=True)]
    for choice in whole.choices:
        own = [each for each in chunks if each.index == choice.index]
        assert "".join(each.text for each in own) == choice.text
        for name in ("tokens", "token_logprobs", "text_offset", "top_logprobs"):
            told = [x for each in own if each.logprobs for x in getattr(each.logprobs, name)]
            assert told == getattr(choice.logprobs, name), name
        assert own[0].logprobs is not None
        n_chars = 0
        for each in own[:-1]:  # the tokens that begin in its text
            begins = each.logprobs.text_offset if each.logprobs else []
            assert all(n_chars <= at < n_chars + len(each.text) for at in begins)
            n_chars += len(each.text)
        if echo:
            assert own[0].text == TEXT["prompt"]
            assert "".join(own[0].logprobs.tokens) == TEXT["prompt"]


def test_a_prompt_alone(client: OpenAI) -> None:
    asked = {**TEXT, "max_tokens": 0, "echo": True, "logprobs": 0}
    whole = client.completions.create(**asked).choices[0].logprobs
    first, last = [x.choices[0] for x in client.completions.create(**asked, stream=True)]
    assert first.logprobs.token_logprobs == whole.token_logprobs
    assert (last.logprobs, last.finish_reason) == (None, "length")


def test_an_empty_prompt_has_a_token(tokenizer: Tokenizer) -> None:
    """The beginning of a sequence, in models that have one."""
    facts = EngineFacts("m", wpb.Ready(), cast(Chat, None), tokenizer, LIMITS)
    body = {"model": "m", "prompt": "", "echo": True, "logprobs": 0, "max_tokens": 0}
    replies = Replies(text_completions({**body, "stream": True}, facts), "m", TokenTexts(tokenizer))
    generated = pb.Generated(prompt_logprobs=[row(0)], finish_reason=pb.FINISH_REASON_LENGTH)
    reply = pb.Reply(generated=generated)
    replies.follow(reply)
    first, _ = [each["choices"][0] for each in replies.chunks(reply)]
    assert (first["text"], first["logprobs"]["text_offset"]) == ("", [0])


def test_responses(client: OpenAI) -> None:
    asked = {"model": "fake", "input": "Tell me.", "max_output_tokens": 20, "top_logprobs": 1}
    events = list(client.responses.create(**asked, temperature=0.0, stream=True))
    deltas = [each for each in events if each.type == "response.output_text.delta"]
    (done,) = [each for each in events if each.type == "response.output_text.done"]
    told = [row.token for each in deltas for row in each.logprobs]
    assert told == [row.token for row in done.logprobs][: len(told)]
    assert len(told) >= len(done.logprobs) - 1  # of the end, no text
    assert all(each.logprobs for each in deltas)


def row(number: int) -> pb.TokenLogprob:
    return pb.TokenLogprob(id=number, logprob=-number)


def test_what_waits_for_its_text_waits(tokenizer: Tokenizer) -> None:
    """A token's row comes with the first character of its text; of a cut one, with the whole."""
    ids = [token for text in "aé z" for token in tokenizer.encode_continuation(text)]
    rows = StreamedLogprobs(tokenizer)
    rows.add(wpb.Update(logprobs=map(row, ids), prompt_logprobs=[row(7)]))
    told = [[each.id for each in rows.up_to(n)] for n in range(5)]
    assert [len(each) for each in told] == [0, 1, len(ids) - 3, 1, 1]
    assert [token for each in told for token in each] == ids
    assert [len(rows.of_prompt()), len(rows.of_prompt())] == [1, 0]


@pytest.mark.parametrize("begins", ["<think>", "<b>"])
def test_reasoning_has_none(begins: str) -> None:
    """What may be reasoning is held back, with its tokens, until that is clear."""
    turn = Turn(Plan(Part.OPEN, "think"), pb.Request(id=0), lambda found: list(found.logprobs))
    turn.ask()
    texts = [begins[0], begins[1:], "some"]
    for number, text in enumerate(texts):
        turn.take(pb.Reply(delta=pb.Delta(text=text, logprobs=[row(number)])))
    told = [] if begins == "<think>" else [0, 1, 2]
    assert [each.id for each in turn.rows()] == told
    generated = pb.Generated(text="".join(texts), logprobs=map(row, range(4)), matched_id=-1)
    turn.take(pb.Reply(generated=generated))
    assert [each.id for each in turn.rows()] == told[3:] + [3] * bool(told)
