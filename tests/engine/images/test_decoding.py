"""Image files of every kind become pixels, or errors that say what is wrong."""

from __future__ import annotations

import contextlib
import io
import struct
import zlib

import numpy as np
import PIL.Image
import pytest
from vision_folders import picture, png

from sgc.runtime.engine.images import reader as reading
from sgc.runtime.engine.images.decoding import FORMATS, ImageError, decoded


def _file(image, kind: str = "PNG", **more) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **more)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", FORMATS)
def test_formats(kind: str) -> None:
    found = decoded(_file(picture(1), kind))
    assert (found.mode, found.size) == ("RGB", (60, 44))


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "CMYK", "YCbCr", "I;16", "RGB"])
def test_modes_become_rgb(mode: str) -> None:
    if mode == "I;16":
        grey = np.linspace(0, 65535, 64 * 8).reshape(8, 64).astype(np.uint16)
        found = decoded(_file(PIL.Image.fromarray(grey)))
        assert np.asarray(found)[-1, -1].tolist() == [255] * 3
        assert abs(int(np.asarray(found)[4, 0, 0]) - 128) < 2
        return
    image = picture(1).convert(mode)
    kind = "JPEG" if mode in ("CMYK", "YCbCr") else "PNG"
    found = decoded(_file(image, kind))
    assert (found.mode, found.size) == ("RGB", (60, 44))


def test_transparent_parts_are_white() -> None:
    found = decoded(_file(PIL.Image.new("RGBA", (4, 4), (0, 0, 0, 0))))
    assert found.getpixel((0, 0)) == (255, 255, 255)


def test_orientation_is_followed() -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    assert decoded(_file(picture(1), "JPEG", exif=exif)).size == (44, 60)


def _png_header(width: int, height: int) -> bytes:
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [body, b"IDAT" + zlib.compress(bytes(1000))]
    chunks = [
        struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part))
        for part in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("size", [(10_000, 10_000), (65_000, 10), (2**31 - 1, 2**31 - 1)])
def test_large_images_are_refused_by_their_header(size: tuple[int, int]) -> None:
    with pytest.raises(ImageError):
        decoded(_png_header(*size))


def test_the_error_says_how_large() -> None:
    with pytest.raises(ImageError, match="10000 x 10000 pixels; at most 33554432"):
        decoded(_png_header(10_000, 10_000))


def test_animated_images_are_refused() -> None:
    frames = [picture(i) for i in range(3)]
    for kind in ("GIF", "WEBP", "PNG"):
        data = _file(frames[0], kind, save_all=True, append_images=frames[1:])
        with pytest.raises(ImageError, match="animated, of 3 frames"):
            decoded(data)


def test_damaged_files_are_errors_of_ours() -> None:
    rng = np.random.default_rng(0)
    for kind in FORMATS:
        whole = _file(picture(1), kind)
        for _ in range(60):
            data = bytearray(whole[: rng.integers(1, len(whole))])
            for at in rng.integers(0, len(data), 3):
                data[at] = rng.integers(0, 256)
            with contextlib.suppress(ImageError):
                assert decoded(bytes(data)).mode == "RGB"


@pytest.mark.parametrize("kind", ["TIFF", "ICO", "PPM", "SGI", "PCX"])
def test_other_formats_are_not_opened(kind: str) -> None:
    with pytest.raises(ImageError, match="no image of a kind that is taken"):
        decoded(_file(picture(1), kind))


def test_bounds_of_a_request(engine_of, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = engine_of("llava").reader
    one = png(picture(1))
    with pytest.raises(ImageError, match="65 images are given, of at most 64"):
        reader.read([one] * 65)
    monkeypatch.setattr(reading, "MAX_BYTES", 2 * len(one))
    with pytest.raises(ImageError, match="bytes, of at most"):
        reader.read([one] * 3)
    monkeypatch.setattr(reading, "MAX_ARRAY_BYTES", 3 * 28 * 28 * 4)
    reader.read([one, one])
    with pytest.raises(ImageError, match="send fewer or smaller"):
        reader.read([one, png(picture(2))])


def test_what_was_read_is_kept_within_bounds(engine_of, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = engine_of("llava").reader
    files = [png(picture(i)) for i in range(4)]
    first = reader.read(files[:1])[0]
    assert reader.read(files[:1])[0] is first
    monkeypatch.setattr(reading, "KEPT_BYTES", 2 * first.image.n_bytes)
    reader.read(files[1:])
    again = reader.read(files[:1])[0]
    assert again is not first
    assert again.image.digest == first.image.digest


def test_the_same_pixels_are_the_same_image(engine_of) -> None:
    reader = engine_of("llava").reader
    one = picture(1)
    files = [png(one), _file(one, "BMP"), _file(one, "WEBP", lossless=True)]
    assert len({each.image.digest for each in reader.read(files)}) == 1


def test_thin_images(engine_of) -> None:
    for name in ("llava", "qwen2_vl", "smolvlm"):
        reader = engine_of(name).reader
        for size in ((1, 1), (1, 150), (150, 1), (3, 500)):
            with contextlib.suppress(ImageError):
                assert reader.read([png(picture(1, *size))])[0].image.n_tokens > 0
