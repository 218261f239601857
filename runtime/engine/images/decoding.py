"""The bytes of an image file as pixels. Files may be hostile: an image's size is read before
anything is decoded, and every error of the library becomes one of ours."""

from __future__ import annotations

import io
import warnings
from typing import Any

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
MAX_PIXELS = 2**25
MAX_SIDE = 2**14
_MOST_RATIO = 200


class ImageError(ValueError):
    """Why an image is refused."""


def decoded(data: bytes) -> Any:
    """The image as an RGB `PIL.Image`, upright, on white. Raises `ImageError`."""
    import PIL.Image
    import PIL.ImageOps

    # The library would warn of images that are refused below.
    warnings.filterwarnings("ignore", category=PIL.Image.DecompressionBombWarning)
    try:
        with PIL.Image.open(io.BytesIO(data), formats=FORMATS) as image:
            _check(image)
            image.load()
            return _in_rgb(PIL.ImageOps.exif_transpose(image))
    except ImageError:
        raise
    except PIL.UnidentifiedImageError as error:
        known = ", ".join(FORMATS)
        raise ImageError(
            f"its {len(data)} bytes are no image of a kind that is taken: {known}"
        ) from error
    except MemoryError:
        raise
    except Exception as error:  # of the library: files that are cut off or damaged
        raise ImageError(f"it cannot be decoded: {str(error)[:200]}") from error


def _check(image: Any) -> None:
    width, height = image.size
    if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE:
        raise ImageError(
            f"it has {width} x {height} pixels; at most {MAX_PIXELS} are taken, {MAX_SIDE} a side: "
            "make it smaller"
        )
    if max(width, height) > _MOST_RATIO * min(width, height):
        raise ImageError(f"it has {width} x {height} pixels, too long for its width")
    if getattr(image, "n_frames", 1) > 1:
        raise ImageError(f"it is animated, of {image.n_frames} frames: send those you mean")


def _in_rgb(image: Any) -> Any:
    import PIL.Image

    if image.mode.startswith("I"):  # 16 bits of grey, which the library would cut off at 255
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        white = PIL.Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = PIL.Image.alpha_composite(white, image)
    return image.convert("RGB")
