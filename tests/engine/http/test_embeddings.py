"""Embeddings, scores and ranks over HTTP: through OpenAI's own client, and clients' mistakes."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import openai
import pytest
from openai import OpenAI

from sgc.runtime.engine.model.fake_model import FakeModel
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.text.tokenizer import Text, Tokenizer

TEXTS = ["a cat", "a dog sleeps", "the sea is blue", "a cat"]
WIDTH = 16


def right(tokenizer: Tokenizer, text: str) -> np.ndarray:
    """What the fake model's last token says, of length one."""
    ids = np.array(tokenizer.encode_whole([Text(text)]), np.int64)
    n = len(ids)
    batch = flatten([Row(ids, 0, np.arange(n), np.array([n - 1]))])
    vector = FakeModel(n, tokenizer.vocab_size).hidden(batch)[0].astype(np.float64)
    return vector / np.linalg.norm(vector)


def n_tokens(tokenizer: Tokenizer, *texts: str) -> int:
    return sum(len(tokenizer.encode_whole([Text(text)])) for text in texts)


def test_openais_client_gets_vectors_in_order(client: OpenAI, tokenizer: Tokenizer) -> None:
    found = client.embeddings.create(model="fake", input=TEXTS, user="me")  # in base64
    plain = client.embeddings.create(model="fake", input=TEXTS, encoding_format="float")
    assert [each.index for each in found.data] == [0, 1, 2, 3]
    for text, one, two in zip(TEXTS, found.data, plain.data, strict=True):
        np.testing.assert_allclose(one.embedding, right(tokenizer, text), atol=1e-6)
        np.testing.assert_array_equal(one.embedding, two.embedding)
    assert found.data[0].embedding == found.data[3].embedding
    assert found.usage.prompt_tokens == found.usage.total_tokens == n_tokens(tokenizer, *TEXTS)
    assert (found.object, found.model, found.data[0].object) == ("list", "fake", "embedding")


def test_a_text_its_ids_and_lists_of_them_are_the_same(
    client: OpenAI, tokenizer: Tokenizer
) -> None:
    ids = tokenizer.encode_whole([Text("a dog sleeps")])
    inputs: list[Any] = ["a dog sleeps", ["a dog sleeps"], ids, [ids]]
    found = [client.embeddings.create(model="fake", input=each).data for each in inputs]
    assert [len(data) for data in found] == [1] * 4
    assert all(data[0].embedding == found[0][0].embedding for data in found)


def test_as_many_texts_as_openai_takes(client: OpenAI) -> None:
    texts = [f"{i}" for i in range(2048)]
    found = client.embeddings.create(model="fake", input=texts).data
    assert [each.index for each in found] == list(range(2048))
    for at in (0, 1023, 1024, 2047):
        (alone,) = client.embeddings.create(model="fake", input=texts[at]).data
        assert found[at].embedding == alone.embedding


def test_dimensions_are_cut_and_the_rest_is_of_length_one(
    client: OpenAI, tokenizer: Tokenizer
) -> None:
    found = client.embeddings.create(model="fake", input="a cat", dimensions=5).data[0].embedding
    cut = right(tokenizer, "a cat")[:5]
    np.testing.assert_allclose(found, cut / np.linalg.norm(cut), atol=1e-6)


def test_vectors_as_the_model_gives_them(ask: Callable[..., Any], tokenizer: Tokenizer) -> None:
    body = {"model": "fake", "input": "a cat", "normalize": False}
    found = ask("/v1/embeddings", body).json["data"][0]["embedding"]
    assert np.linalg.norm(found) > 1.01
    np.testing.assert_allclose(found / np.linalg.norm(found), right(tokenizer, "a cat"), atol=1e-6)
    packed = ask("/v1/embeddings", {**body, "encoding_format": "base64"}).json["data"][0]
    np.testing.assert_array_equal(
        np.frombuffer(base64.b64decode(packed["embedding"]), "<f4"), np.array(found, np.float32)
    )


def test_a_text_that_is_too_long_is_refused_or_cut(
    ask: Callable[..., Any], tokenizer: Tokenizer
) -> None:
    long = "a cat and a dog. " * 1200
    body = {"model": "fake", "input": ["short", long]}
    for text in (long, "x y " * 2000):
        refused = ask("/v1/embeddings", {**body, "input": ["short", text]})
        assert (refused.status, refused.error["param"]) == (400, "input[1]")
        assert refused.error["code"] == "context_length_exceeded"
    for last, n in ((-1, 4096), (7, 7)):
        found = ask("/v1/embeddings", {**body, "input": long, "truncate_prompt_tokens": last}).json
        assert found["usage"]["prompt_tokens"] == n
    ids = tokenizer.encode_whole([Text(long)], 7)
    same = ask("/v1/embeddings", {**body, "input": ids}).json
    assert same["data"] == found["data"]


def test_models_say_how_they_pool(client: OpenAI) -> None:
    found = client.models.retrieve("fake").model_dump()
    assert (found["pooling"], found["embedding_size"]) == ("last", WIDTH)


def test_scores_are_cosines(ask: Callable[..., Any], tokenizer: Tokenizer) -> None:
    vectors = [right(tokenizer, text) for text in TEXTS]
    body = {"model": "fake", "text_1": TEXTS[0], "text_2": TEXTS}
    found = ask("/v1/score", body).json
    scores = [each["score"] for each in found["data"]]
    np.testing.assert_allclose(scores, [vectors[0] @ each for each in vectors], atol=1e-6)
    assert [each["index"] for each in found["data"]] == [0, 1, 2, 3]
    assert (found["object"], found["data"][0]["object"]) == ("list", "score")
    assert found["scored_by"] == "cosine of embeddings (pooling: last)"
    assert found["usage"]["prompt_tokens"] == n_tokens(tokenizer, TEXTS[0], *TEXTS)
    pairwise = ask("/v1/score", {**body, "text_1": TEXTS, "text_2": TEXTS[::-1]}).json["data"]
    np.testing.assert_allclose(
        [each["score"] for each in pairwise],
        [one @ two for one, two in zip(vectors, vectors[::-1], strict=True)], atol=1e-6,
    )  # fmt: skip
    (one,) = ask("/v1/score", {**body, "text_2": "a cat"}).json["data"]
    assert one["score"] == pytest.approx(1.0)


def test_documents_are_ranked(ask: Callable[..., Any], tokenizer: Tokenizer) -> None:
    body = {"model": "fake", "query": "a cat", "documents": [*TEXTS[1:], {"text": "rain"}]}
    found = ask("/v1/rerank", body).json
    scores = [each["relevance_score"] for each in found["results"]]
    assert scores == sorted(scores, reverse=True)
    assert sorted(each["index"] for each in found["results"]) == [0, 1, 2, 3]
    assert found["results"][0] == {
        "index": 2, "relevance_score": pytest.approx(1.0), "document": {"text": "a cat"}
    }  # fmt: skip
    vectors = [right(tokenizer, text) for text in (*TEXTS[1:], "rain")]
    for each in found["results"]:
        expected = right(tokenizer, "a cat") @ vectors[each["index"]]
        assert each["relevance_score"] == pytest.approx(expected, abs=1e-6)
    two = ask("/v1/rerank", {**body, "top_n": 2, "return_documents": False}).json
    assert two["results"] == [
        {name: each[name] for name in ("index", "relevance_score")} for each in found["results"][:2]
    ]
    assert two["usage"]["total_tokens"] == n_tokens(tokenizer, "a cat", *TEXTS[1:], "rain")


EMBED, SCORE, RERANK = "/v1/embeddings", "/v1/score", "/v1/rerank"
SOME: dict[str, dict[str, Any]] = {
    EMBED: {"input": "x"},
    SCORE: {"text_1": "x", "text_2": "y"},
    RERANK: {"query": "x", "documents": ["y"]},
}


@pytest.mark.parametrize(
    ("path", "wrong", "param", "said"),
    [
        (EMBED, {"input": None}, "input", "input must be a text"),
        (EMBED, {"input": []}, "input", "input must be a text"),
        (EMBED, {"input": [["x"]]}, "input", "input must be a text"),
        (EMBED, {"input": ["x", [1]], "dimensions": 0}, "dimensions", "from 1 to 16"),
        (EMBED, {"input": {"text": "x"}}, "input", "input must be a text"),
        (EMBED, {"input": [1, -1]}, "input", "input must be a text"),
        (EMBED, {"input": ["x", [99999]]}, "input[1]", "token id 99999"),
        (EMBED, {"input": [99999]}, "input", "token id 99999"),
        (EMBED, {"input": ["x"] * 2049}, "input", "2049 texts, of at most 2048"),
        (EMBED, {"encoding_format": "int8"}, "encoding_format", "float or base64"),
        (EMBED, {"encoding_format": 1}, "encoding_format", "must be a text"),
        (EMBED, {"dimensions": 17}, "dimensions", "from 1 to 16"),
        (EMBED, {"dimensions": "5"}, "dimensions", "an integer"),
        (EMBED, {"normalize": "yes"}, "normalize", "true or false"),
        (EMBED, {"truncate_prompt_tokens": 0}, "truncate_prompt_tokens", "from 1 to 4096, or -1"),
        (EMBED, {"truncate_prompt_tokens": 4097}, "truncate_prompt_tokens", "from -1 to 4096"),
        (EMBED, {"add_special_tokens": False}, "add_special_tokens", "send token ids"),
        (EMBED, {"cache_salt": "s" * 65}, "cache_salt", "65 bytes, of at most 64"),
        (EMBED, {"messages": []}, None, ""),
        (EMBED, {"messages": [{}]}, "messages", "chat template"),
        (EMBED, {"temperature": 1}, "temperature", "not a parameter"),
        (EMBED, {"model": None}, "model", "model is missing"),
        (SCORE, {"text_1": []}, "text_1", "text_1 must be a text"),
        (SCORE, {"text_2": [3]}, "text_2", "text_2 must be a text"),
        (SCORE, {"text_1": ["a", "b"], "text_2": ["c"] * 3}, "text_1", "there are 2 and 3"),
        (SCORE, {"input": "x"}, "input", "not a parameter"),
        (RERANK, {"query": None}, "query", "query is missing"),
        (RERANK, {"query": ["x"]}, "query", "must be a text"),
        (RERANK, {"documents": "y"}, "documents", "a list of at least one"),
        (RERANK, {"documents": []}, "documents", "a list of at least one"),
        (RERANK, {"documents": ["y", {"title": "z"}]}, "documents[1]", "documents[1] must be"),
        (RERANK, {"documents": ["y", "z " * 9000]}, "documents[1]", "this engine holds at most"),
        (RERANK, {"top_n": -1}, "top_n", "an integer from 0"),
        (RERANK, {"return_documents": 1}, "return_documents", "true or false"),
    ],
)
def test_bad_fields_are_named(
    ask: Callable[..., Any], path: str, wrong: dict[str, Any], param: str | None, said: str
) -> None:
    found = ask(path, {"model": "fake", **SOME[path], **wrong})
    if param is None:
        assert found.status == 200
        return
    assert (found.status, found.error["param"]) == (400, param)
    assert said in found.error["message"]


@pytest.mark.parametrize("path", SOME)
def test_another_model_is_not_found(ask: Callable[..., Any], path: str) -> None:
    found = ask(path, {**SOME[path], "model": "other"})
    assert (found.status, found.error["code"]) == (404, "model_not_found")


def test_openais_client_raises_its_own_error(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="from 1 to 16"):
        client.embeddings.create(model="fake", input="x", dimensions=99)
