"""Images through OpenAI's API and SGLang's. What needs no engine is in test_places.py."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vision_engine import Reference
from vision_folders import SHOWN, picture, png

from sgc.runtime.engine.launch import EmbeddedEngine

pytestmark = pytest.mark.slow  # each of the engine's processes imports transformers

ONE, TWO = picture(1), picture(2, 90, 30)


@pytest.fixture(scope="module")
def url(folder_of: Callable[[str], Path]) -> Iterator[str]:
    with EmbeddedEngine(str(folder_of("smolvlm")), ["--check", "--http", "0"]) as engine:
        yield _url(engine)


def _url(engine: EmbeddedEngine) -> str:
    said = engine.stderr_tail.splitlines()
    return next(x.removeprefix("HTTP on ") for x in said if x.startswith("HTTP on "))


@pytest.fixture(scope="module")
def reference(folder_of: Callable[[str], Path]) -> Reference:
    return Reference("smolvlm", folder_of("smolvlm"))


def _post(url: str, path: str, body: Any) -> Any:
    data = json.dumps(body).encode()
    request = urllib.request.Request(
        f"{url}{path}", data, {"Content-Type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        return {"status": error.code, **json.loads(error.read())}


def _base64(image: Any) -> str:
    return base64.b64encode(png(image)).decode()


def _part(image: Any) -> Any:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_base64(image)}"}}


def _said(text: str) -> Any:
    return {"type": "text", "text": text}


def _chat(url: str, content: Any, **more: Any) -> Any:
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 8, "temperature": 0,
            "ignore_eos": True, "model": "smolvlm", **more}  # fmt: skip
    return _post(url, "/v1/chat/completions", body)


def test_chats_with_images_are_those_of_transformers(url: str, reference: Reference) -> None:
    content = [_said("first "), _part(ONE), _said(" second "), _part(TWO), _said(" which?")]
    reply = _chat(url, content)
    text = (
        "<|im_start|>user\nfirst <image> second <image> which?<|im_end|>\n<|im_start|>assistant\n"
    )
    ids = reference.ask(text, [ONE, TWO])
    expected = reference.tokenizer.decode(ids, skip_special_tokens=True)
    assert reply["choices"][0]["message"]["content"] == expected
    assert reply["usage"]["prompt_tokens"] > 40
    again = _chat(url, content)
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > 40


def test_a_user_cannot_write_an_image(url: str) -> None:
    """The image token in a user's text is text."""
    reply = _chat(url, [_said("what is <image>? "), _part(ONE)])
    assert reply["choices"][0]["message"]["content"]


@pytest.mark.parametrize("shape", ["one", "list", "batch", "nested"])
def test_generate_with_image_data(url: str, reference: Reference, shape: str) -> None:
    text = f"see {SHOWN['smolvlm']} and say"
    body: Any = {
        "text": text,
        "image_data": _base64(ONE),
        "sampling_params": {"max_new_tokens": 8, "temperature": 0, "ignore_eos": True},
    }
    if shape == "list":
        body["image_data"] = [f"data:image/png;base64,{_base64(ONE)}"]
    elif shape == "batch":
        body |= {"text": [text, "no image"], "image_data": [[_base64(ONE)], None]}
    elif shape == "nested":
        body |= {"text": [text], "image_data": [[_base64(ONE)]]}
    reply = _post(url, "/generate", body)
    first = reply[0] if isinstance(reply, list) else reply
    ids = reference.ask(text, [ONE])
    assert first["text"] == reference.tokenizer.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("http://example.com/a.png", "Nothing is fetched by URL"),
        ("file:///etc/passwd", "Nothing is fetched by URL"),
        ("/etc/passwd", "must be a data URL"),
        ("data:image/png;base64,@@@", "no valid base64"),
        ("data:image/png;base64,aGVsbG8=", "no image of a kind that is taken"),
        (7, "must be a text"),
    ],
)
def test_refused_images(url: str, given: Any, words: str) -> None:
    part = {"type": "image_url", "image_url": {"url": given}}
    reply = _chat(url, [part])
    assert reply["status"] == 400
    assert words in reply["error"]["message"]


def test_places_and_images_are_as_many(url: str) -> None:
    reply = _post(url, "/generate", {"text": "no place", "image_data": _base64(ONE)})
    assert "1 images are given, and the prompt's text has 0 places" in json.dumps(reply)
    info = json.load(urllib.request.urlopen(f"{url}/get_model_info", timeout=30))
    assert info["has_image_understanding"] is True


def test_images_are_of_users(url: str) -> None:
    messages = [{"role": "assistant", "content": [_part(ONE)]}, {"role": "user", "content": "?"}]
    reply = _post(url, "/v1/chat/completions", {"messages": messages, "model": "smolvlm"})
    assert "images are in users' messages" in reply["error"]["message"]


def test_a_model_of_text_refuses_them_by_name() -> None:
    with EmbeddedEngine("default", ["--http", "0"]) as engine:
        url = _url(engine)
        for reply in (
            _chat(url, [_part(ONE)], model="sgc-tiny"),
            _post(url, "/generate", {"text": "a", "image_data": _base64(ONE)}),
        ):
            assert reply["status"] == 400
            assert "takes no images: llama is a family of models for text" in json.dumps(reply)
