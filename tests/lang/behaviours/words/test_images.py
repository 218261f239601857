"""Images and videos: every form they come in, and what a model gets of them."""

from __future__ import annotations

import base64
import sys
import types

import pytest
from lang.behaviours.shared import PNG
from tests_support import run_both

import sgc
from sgc import errors
from sgc.tracing.tracer import trace

JPEG = b"\xff\xd8\xff" + b"pixels"


@pytest.mark.parametrize("kind", ["path", "bytes", "data_url", "pathlib"])
def test_image_in_each_form(recorded, tmp_path, kind):
    (tmp_path / "i.png").write_bytes(PNG)
    value = {
        "path": str(tmp_path / "i.png"),
        "pathlib": tmp_path / "i.png",
        "bytes": PNG,
        "data_url": "data:image/png;base64," + base64.b64encode(PNG).decode(),
    }[kind]
    endpoint = recorded()

    @sgc.function
    def program(s):
        s += sgc.user(sgc.image(value) + "what?")
        s += sgc.assistant(sgc.gen("a"))

    state = program.run(backend=endpoint)
    assert state.text() == "<|user|><image>what?<|end|><|assistant|>reply<|end|>"
    media = [segment.media for segment in endpoint.asked[0].prompt if hasattr(segment, "media")]
    assert [(each.data, each.mime) for each in media] == [(PNG, "image/png")]


def test_image_by_url_is_refused_with_the_line(recorded):
    """SGLang fetches it; programs here never do on their own."""

    @sgc.function
    def program(s):
        s += sgc.image("https://example.com/a.png")

    with pytest.raises(errors.SgcError, match="not fetched by URL") as caught:
        program.run(backend=recorded())
    assert caught.value.where.startswith("test_images.py:")


def test_image_as_an_argument_of_the_program(recorded):
    endpoint = recorded()

    @sgc.function
    def program(s, picture):
        s += sgc.image(picture) + sgc.gen("a")

    assert program(PNG, backend=endpoint).text() == "<image>reply"
    assert program(JPEG, backend=endpoint).text() == "<image>reply"
    assert [each.prompt[0].media.mime for each in endpoint.asked] == ["image/png", "image/jpeg"]


@sgc.function
def of_a_list(s, paths: list[str]):
    for path in paths:
        s += sgc.image(path)
    s += sgc.gen("a")


@sgc.function
def of_json(s, page: dict):
    s += sgc.image(page["image"]) + sgc.gen("a")


@sgc.function
def of_a_model(s):
    s += sgc.gen("path")
    s += sgc.video(s["path"], 2) + sgc.gen("a")


@pytest.mark.parametrize(
    ("program", "what"),
    [(of_a_list, "an image"), (of_json, "an image"), (of_a_model, "a video")],
)
def test_a_file_known_only_at_run_time_is_refused_at_its_line(program, what):
    """It was an invalid graph, told in the verifier's words for each turn of a loop."""
    with pytest.raises(errors.TraceError, match=f"file of {what} is known only at run") as caught:
        trace(program, is_full=True)
    assert caught.value.where.startswith("test_images.py:")


@sgc.function
def with_its_name(s, path: str):
    s += "File " + path + ": " + sgc.image(path) + sgc.gen("a")


@sgc.function
def with_its_length(s, path: str):
    s += sgc.image(path) + sgc.gen("a")
    return len(path)


@sgc.function
def with_a_default(s, path: str = "a.png"):
    s += sgc.image(path) + sgc.gen("a")


@pytest.mark.parametrize(
    ("program", "what"),
    [
        (with_its_name, "path is an image's file, and is used as a text too"),
        (with_its_length, "path is an image's file, and is used as a text too"),
        (with_a_default, "path is an image's file, and has a path as its default"),
    ],
)
def test_a_path_that_is_a_text_too_is_refused_in_plain_words(program, what):
    with pytest.raises(errors.TraceError, match=what):
        program.compile()


def test_image_goes_to_a_server_as_base64(served, server):
    @sgc.function
    def program(s):
        s += sgc.image(PNG) + "what?" + sgc.gen("a")

    program.run(backend=served()).sync()
    (body,) = server.requests
    assert body["text"] == "<image>what?"
    assert body["image_data"] in (base64.b64encode(PNG).decode(), [base64.b64encode(PNG).decode()])


def test_several_images_of_a_program(served, server):
    """SGLang's front end asserts that there is exactly one."""

    @sgc.function
    def program(s):
        s += sgc.image(PNG) + "and" + sgc.image(JPEG) + sgc.gen("a")

    program.run(backend=served()).sync()
    assert server.requests[0]["image_data"] == [
        base64.b64encode(data).decode() for data in (PNG, JPEG)
    ]


def test_messages_with_images_are_in_openais_form(recorded):
    @sgc.function
    def program(s):
        s += sgc.user(sgc.image(PNG) + "what?")

    (message,) = run_both(program, recorded()).messages()
    text, image = message["content"]
    assert text["type"] == "text"
    assert "what?" in text["text"]
    url = "data:image/jpeg;base64," + base64.b64encode(PNG).decode()
    assert image == {"type": "image_url", "image_url": {"url": url}}


def test_image_on_a_model_that_takes_none_names_the_line(recorded):
    @sgc.function
    def program(s):
        s += sgc.image(PNG)

    with pytest.raises(errors.UnsupportedParameter, match="does not take images") as caught:
        program.run(backend=recorded(images=False)).sync()
    assert caught.value.where.startswith("test_images.py:")


class _Capture:
    """Ten frames of one grey each."""

    def __init__(self, path):
        self.at = 0

    def get(self, prop):
        return 10

    def read(self):
        import numpy as np

        self.at += 1
        return self.at <= 10, np.full((4, 4, 3), 20 * self.at, dtype="uint8")

    def release(self):
        pass


def test_video_is_frames_behind_one_image_token(recorded, monkeypatch, tmp_path):
    pytest.importorskip("PIL")
    pytest.importorskip("numpy")
    fake = types.ModuleType("cv2")
    fake.VideoCapture, fake.CAP_PROP_FRAME_COUNT, fake.COLOR_BGR2RGB = _Capture, 7, 4
    fake.cvtColor = lambda frame, code: frame
    monkeypatch.setitem(sys.modules, "cv2", fake)
    endpoint = recorded()

    @sgc.function
    def program(s):
        s += sgc.video(str(tmp_path / "v.mp4"), 3) + "what?" + sgc.gen("a")

    assert program.run(backend=endpoint).text() == "<image>what?reply"
    media = endpoint.asked[0].prompt[0].media
    assert media.n_frames == 3
    starts = (b"\xff\xd8\xff", b"\x89PNG")  # either coding of a frame
    assert sum(map(media.data.count, starts)) == 3


def test_video_without_opencv_says_what_to_install(recorded, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)

    @sgc.function
    def program(s):
        s += sgc.video("v.mp4", 3)

    with pytest.raises(errors.SgcError, match="needs OpenCV") as caught:
        program.run(backend=recorded())
    assert caught.value.where.startswith("test_images.py:")
