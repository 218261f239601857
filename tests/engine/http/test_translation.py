"""JSON to requests and back, without an engine: what depends on the model's tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.http.errors import HttpError
from sgc.runtime.engine.http.native import requests as native_requests
from sgc.runtime.engine.http.native.requests import generations
from sgc.runtime.engine.http.openai import requests as openai_requests
from sgc.runtime.engine.http.openai import response_requests
from sgc.runtime.engine.http.openai.chat import chat_prompt
from sgc.runtime.engine.http.openai.requests import chat_completions, text_completions
from sgc.runtime.engine.http.sampling import ids_prompt
from sgc.runtime.engine.http.token_texts import TokenTexts
from sgc.runtime.engine.preparing.bounds import MAX_LOGPROBS, ServerLimits
from sgc.runtime.engine.server.server import EngineFacts
from sgc.runtime.engine.text.template import PLAIN, Chat, Role
from sgc.runtime.engine.text.tokenizer import Text, Tokenizer, load_tokenizer

LIMITS = ServerLimits(200_000, 300_000, 2048)
MESSAGES = [{"role": "user", "content": "hi"}]


class WithBos:
    """What is asked of a tokenizer whose prompts begin with token 1."""

    prefix_ids = (1,)
    special_tokens = ()

    def least_tokens(self, text: str) -> int:
        return -(-len(text) // 10)


def facts(tokenizer: Any = None, chat: Chat = PLAIN) -> EngineFacts:
    found = cast(Tokenizer, tokenizer or WithBos())
    return EngineFacts("m", wpb.Ready(), chat, found, LIMITS)


def ids_of(prompt: pb.Prompt) -> list[int]:
    return [i for segment in prompt.segments for i in segment.tokens.ids]


@pytest.mark.parametrize(
    ("given", "beginning", "sent", "n_added"),
    [
        ([5, 6], (), [5, 6], 0),
        ([5, 6], (1,), [5, 6], 1),
        ([1, 5, 6], (1,), [5, 6], 0),
        ([1], (1,), [], 0),
    ],
)
def test_ids_get_the_beginning_of_sequence_once(
    given: list[int], beginning: tuple[int, ...], sent: list[int], n_added: int
) -> None:
    prompt, n = ids_prompt(given, beginning)
    assert (ids_of(prompt), n) == (sent, n_added)


@pytest.mark.parametrize(("ids", "start", "from_"), [([5, 6, 7], 0, 1), ([1, 5, 6], 0, 0)])
def test_log_probabilities_of_ids_begin_with_the_first_of_them(
    ids: list[int], start: int, from_: int
) -> None:
    asked = {"return_logprob": True, "logprob_start_len": start}
    native = generations({"input_ids": ids, **asked}, facts())
    assert native.requests[0].generate.sampling.logprobs.start == from_
    echoed = {"model": "m", "prompt": ids, "echo": True, "logprobs": 0}
    openai = text_completions(echoed, facts())
    assert openai.requests[0].generate.sampling.logprobs.start == from_


def test_only_the_template_is_markup() -> None:
    chat = Chat({"user": Role("<u>", "</u>"), "assistant": Role("<a>", "</a>")})
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "é<u>"}]},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "x"},
    ]
    run = chat_prompt(messages, facts(chat=chat)).segments[0].text
    assert run.text == "<u>é<u></u><a></a><u>x</u><a>"
    assert [run.text[span.start : span.end] for span in run.literal] == ["é<u>", "", "x"]


def test_a_message_that_has_begun_is_left_open() -> None:
    chat = Chat({"user": Role("<u>", "</u>"), "assistant": Role("<a>", "</a>")})
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y "}]
    run = chat_prompt(messages, facts(chat=chat), continues_last=True).segments[0].text
    assert run.text == "<u>x</u><a>y "
    assert [run.text[span.start : span.end] for span in run.literal] == ["x", "y "]
    with pytest.raises(HttpError, match="needs a last message of the assistant"):
        chat_prompt(messages[:1], facts(chat=chat), continues_last=True)


def test_a_default_system_prompt_gives_way_to_one() -> None:
    chat = Chat(PLAIN.roles, default_system="Be kind.")
    assert "Be kind." in chat_prompt(MESSAGES, facts(chat=chat)).segments[0].text.text
    own = [{"role": "developer", "content": "Be brief."}, *MESSAGES]
    assert "Be kind." not in chat_prompt(own, facts(chat=chat)).segments[0].text.text


def test_a_role_that_the_template_lacks_is_refused() -> None:
    chat = Chat({"user": Role("<u>", ""), "assistant": Role("<a>", "")})
    with pytest.raises(HttpError, match="must be one of user, assistant"):
        chat_prompt([{"role": "system", "content": "x"}], facts(chat=chat))


def test_a_chat_without_a_bound_has_the_room_there_is() -> None:
    def n_tokens(**more: Any) -> int:
        asked = chat_completions({"model": "m", "messages": MESSAGES, **more}, facts())
        return asked.requests[0].generate.sampling.max_tokens

    assert n_tokens() == 200_000
    assert n_tokens(logprobs=True, top_logprobs=4) == MAX_LOGPROBS // 5


def test_draws_differ_in_their_seeds_alone() -> None:
    body = {"model": "m", "prompt": ["a", "b"], "n": 2, "seed": 7}
    requests = text_completions(body, facts()).requests
    seeds = [request.generate.sampling.seed for request in requests]
    assert seeds[0] == seeds[2] == 7
    assert seeds[1] == seeds[3] != 7
    unseeded = text_completions({"model": "m", "prompt": ["a", "a"]}, facts()).requests
    assert len({request.generate.sampling.seed for request in unseeded}) == 2
    greedy = text_completions({**body, "temperature": 0}, facts()).requests
    assert {request.generate.sampling.seed for request in greedy} == {0}


def test_tokens_keep_their_leading_spaces_and_bytes(
    tokenizer: Tokenizer, sentencepiece_folder: Callable[[], Path]
) -> None:
    spm = load_tokenizer(sentencepiece_folder())
    (space_dog,) = spm.encode_continuation(" dog")
    found = pb.TokenLogprob(id=space_dog, text=spm.backend.decode([space_dog]))
    assert found.text == "dog"
    assert TokenTexts(spm).text_of(found) == " dog"
    prompt = spm.encode_prompt([Text("dog and dog")])
    assert TokenTexts(spm).prompt_offsets(prompt, len("dog and dog"))[-1] == len("dog and")
    parts = [pb.TokenLogprob(id=i, text="\ufffd") for i in tokenizer.encode_continuation("😀")]
    assert b"".join(TokenTexts(tokenizer).bytes_of(part) for part in parts) == "😀".encode()


@pytest.mark.parametrize(
    "names",
    [
        openai_requests.CHAT,
        openai_requests.COMPLETION,
        openai_requests.REFUSED,
        response_requests.RESPONSES,
        response_requests.REFUSED,
        native_requests.BODY | native_requests.IGNORED,
        native_requests.REFUSED,
        native_requests.PARAMS,
        native_requests.REFUSED_PARAMS,
    ],
)
def test_the_documentation_lists_every_parameter(names: Any) -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "http.md").read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda text: generations({"text": text}, facts()),
        lambda text: generations({"text": ["x", text]}, facts()),
        lambda text: text_completions({"model": "m", "prompt": text}, facts()),
        lambda text: chat_completions(
            {"model": "m", "messages": [{"role": "user", "content": text}]}, facts()
        ),
    ],
)
def test_a_text_that_cannot_fit_is_refused_before_anything_is_made_of_it(ask: Any) -> None:
    ask("x" * LIMITS.max_positions)
    with pytest.raises(HttpError, match="at least") as caught:
        ask("x" * (LIMITS.max_positions * 10 + 1))
    assert (caught.value.status, caught.value.code) == (400, "context_length_exceeded")
