"""Images and videos as values: bytes with a MIME type, identified by the hash of their content.

Files are read by the caller's own process and only when the caller names them; nothing is
fetched by URL, here or in an engine.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import os
import stat
from dataclasses import dataclass, field
from typing import Any

from sgc.errors import ArgumentError, UnsupportedParameter

MAX_MEDIA_BYTES = 32 * 1024 * 1024

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
)


@dataclass(frozen=True, slots=True)
class Media:
    """An image, or a video as concatenated frames (each a PNG).

    digest: SHA-256 of the content, in hex; two media are equal when it is.
    """

    data: bytes = field(repr=False, compare=False)
    mime: str
    digest: str
    n_frames: int = 0  # of a video; 0: an image

    def base64(self) -> str:
        return base64.b64encode(self.data).decode("ascii")

    def data_url(self) -> str:
        return f"data:{self.mime};base64,{self.base64()}"


def media(data: bytes, mime: str | None = None, n_frames: int = 0) -> Media:
    """Returns media with the given bytes; without a MIME type, their signature decides it."""
    if not data:
        raise ArgumentError("an image is empty")
    if len(data) > MAX_MEDIA_BYTES:
        raise ArgumentError(f"an image has {len(data)} bytes; at most {MAX_MEDIA_BYTES} are taken")
    return Media(data, mime or _mime_of(data), hashlib.sha256(data).hexdigest(), n_frames)


def load_media(value: Any) -> Media:
    """Loads an image: a path, bytes, a data URL or a PIL image.

    Raises ArgumentError for anything else, for files that cannot be read, and for URLs.
    """
    if isinstance(value, Media):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return media(bytes(value))
    if isinstance(value, str) and value.startswith("data:"):
        return _of_data_url(value)
    if isinstance(value, (str, os.PathLike)):
        return _of_file(os.fsdecode(value))
    if callable(getattr(value, "save", None)):  # a PIL image
        buffer = io.BytesIO()
        value.save(buffer, format="PNG")
        return media(buffer.getvalue(), "image/png")
    raise ArgumentError(
        f"an image must be a path, bytes, a data URL or a PIL image, found {type(value).__name__}"
    )


def load_video(value: Any, n_frames: int) -> Media:
    """Loads `n_frames` frames of a video file, evenly spaced; needs OpenCV and Pillow."""
    if isinstance(value, Media):
        return value
    if not isinstance(value, (str, os.PathLike)) or "://" in os.fsdecode(value):
        raise ArgumentError(f"a video must be a path, found {value!r}")
    path = os.fsdecode(value)
    if os.path.exists(path):  # else OpenCV decides whether it can read it
        _check_file(path)
    try:
        import cv2  # optional packages, both
        import PIL  # noqa: F401
    except ImportError as error:
        raise ArgumentError(
            "reading a video needs OpenCV and Pillow, which are not installed",
            hint="pip install opencv-python-headless pillow",
        ) from error
    capture = cv2.VideoCapture(path)
    try:
        frames = _frames(cv2, capture, n_frames)
    finally:
        capture.release()
    if not frames:
        raise ArgumentError(f"no frame of {path} could be read as a video")
    return media(b"".join(frames), "video/png-frames", len(frames))


def _frames(cv2: Any, capture: Any, n_frames: int) -> list[bytes]:
    """Frames at evenly spaced positions; if there are too few, the last one is repeated."""
    total = max(int(capture.get(cv2.CAP_PROP_FRAME_COUNT)), 1)
    step = (total - 1) / max(n_frames - 1, 1)
    # Positions are truncated, not rounded, as in SGLang; the last is that of the last frame.
    wanted = [int(i * step) if i < n_frames - 1 or i == 0 else total - 1 for i in range(n_frames)]
    found: dict[int, bytes] = {}
    n_read = 0  # frames that cannot be read do not count
    for _ in range(total if wanted else 0):
        ok, frame = capture.read()
        if ok and n_read in wanted:
            found[n_read] = _png(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB))
        n_read += bool(ok)
        if n_read > wanted[-1]:
            break
    last = b""
    frames = []
    for index in wanted:
        last = found.get(index, last)
        frames.append(last)
    return [frame for frame in frames if frame]


def _png(pixels: Any) -> bytes:
    from PIL import Image  # `load_video` has checked that it is installed

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()


def _of_data_url(url: str) -> Media:
    head, comma, body = url.partition(",")
    mime, _, encoding = head.removeprefix("data:").partition(";")
    if not comma or encoding != "base64":
        raise ArgumentError("a data URL must be data:MIME;base64,…")
    try:
        return media(base64.b64decode(body, validate=True), mime or None)
    except binascii.Error as error:
        raise ArgumentError(f"a data URL holds broken base64: {error}") from error


def _of_file(path: str) -> Media:
    if "://" in path:
        raise ArgumentError(
            f"images are not fetched by URL, found {path[:80]!r}",
            hint="download it yourself and pass its path or bytes",
        )
    return media(_read_file(path))


def _read_file(path: str) -> bytes:
    """Reads a regular file, if it is not too large."""
    _check_file(path)
    try:
        with open(path, "rb", opener=_open) as file:
            _check_mode(path, os.fstat(file.fileno()).st_mode)  # the file may have been replaced
            data = file.read(MAX_MEDIA_BYTES + 1)
    except OSError as error:
        raise ArgumentError(f"cannot read the image {path}: {error.strerror}") from error
    if len(data) > MAX_MEDIA_BYTES:
        raise ArgumentError(f"{path} has over {MAX_MEDIA_BYTES} bytes, the most that are taken")
    return data


def _open(path: str, flags: int) -> int:
    """Opens a file without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _check_file(path: str) -> None:
    """Raises ArgumentError unless it is a regular file: pipes and devices may never end."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise ArgumentError(f"cannot read the image {path}: {error.strerror}") from error
    except ValueError as error:  # an invalid path, such as one with a null byte
        raise ArgumentError(f"cannot read {path[:80]!r}: {error}") from error
    _check_mode(path, mode)


def _check_mode(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise ArgumentError(
            f"cannot read {path}: it is {kind}", hint="name a regular file, or pass the bytes"
        )


_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _mime_of(data: bytes) -> str:
    for signature, mime in _SIGNATURES:
        if data.startswith(signature):
            return mime
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "application/octet-stream"


def frames_of(media: Media) -> list[Media]:
    """An image itself, or the frames of a video, each a PNG."""
    if not media.n_frames:
        return [media]
    found, start = [], 0
    while start < len(media.data):
        end = _end_of_png(media.data, start)
        found.append(Media(media.data[start:end], "image/png", f"{media.digest}:{start}"))
        start = end
    return found


def _end_of_png(data: bytes, start: int) -> int:
    """The end of a PNG: a signature of 8 bytes, then chunks of length, name, content, checksum."""
    at = start + 8
    while at + 12 <= len(data):
        length, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        at += 12 + length
        if name == b"IEND":
            return min(at, len(data))
    raise UnsupportedParameter("a video's frames are no PNG images", hint="use sgc.video(path, n)")
