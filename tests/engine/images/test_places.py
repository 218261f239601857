"""Images in the bodies of HTTP requests, without an engine: test_http.py asks one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from sgc.runtime.engine.http.errors import HttpError
from sgc.runtime.engine.http.images.places import file_of, image_prompt
from sgc.runtime.engine.preparing.bounds import ServerLimits
from sgc.runtime.engine.text.tokenizer import Tokenizer

TOKEN = "<image>"
READER: Any = SimpleNamespace(token=TOKEN)
REFUSED = [
    ("http://example.com/a.png", "Nothing is fetched by URL"),
    ("file:///etc/passwd", "Nothing is fetched by URL"),
    ("/etc/passwd", "must be a data URL"),
    ("data:image/png;base64,@@@", "no valid base64"),
    (7, "must be a text"),
]


def test_a_data_url_holds_a_file() -> None:
    assert file_of("data:image/png;base64,aGVsbG8=", "image") == b"hello"
    assert file_of("aGVsbG8=", "image", bare=True) == b"hello"


@pytest.mark.parametrize(("given", "words"), REFUSED)
def test_refused_images(given: Any, words: str) -> None:
    with pytest.raises(HttpError, match=words):
        file_of(given, "image")


@pytest.mark.parametrize("given", ["http://example.com/a.png", "file:///etc/passwd"])
def test_no_url_is_taken_for_base64(given: str) -> None:
    with pytest.raises(HttpError, match="Nothing is fetched by URL"):
        file_of(given, "image", bare=True)


@pytest.fixture
def facts_of(shipped: Tokenizer) -> Callable[[Any], Any]:
    def made(images: Any) -> Any:
        limits = ServerLimits(4096, 4096, shipped.vocab_size, images=images)
        return SimpleNamespace(tokenizer=shipped, limits=limits)

    return made


def test_a_user_cannot_write_an_image(facts_of: Callable[[Any], Any]) -> None:
    """The image token in a user's text is text."""
    text = f"what is {TOKEN}? {TOKEN}"
    prompt = image_prompt(text, facts_of(READER), [b"one"], literal=[(0, len(text) - len(TOKEN))])
    first, second = prompt.segments
    assert first.text.text == f"what is {TOKEN}? "
    assert [*second.images.images] == [b"one"]


@pytest.mark.parametrize("text", ["no place", TOKEN * 2])
def test_places_and_images_are_as_many(facts_of: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(HttpError, match="1 images are given, and the prompt's text has"):
        image_prompt(text, facts_of(READER), [b"one"])


def test_a_model_of_text_refuses_them_by_name(facts_of: Callable[[Any], Any]) -> None:
    with pytest.raises(HttpError, match="it takes no images"):
        image_prompt(TOKEN, facts_of("it takes no images"), [b"one"])
