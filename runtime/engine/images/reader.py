"""Turns image files into the vision encoder's input, and the text that stands for each image.

The arrays are made by transformers' own image processor of the model's folder, in its variant that
needs no torchvision. The results of the last files are kept, so that a repeated image is not
decoded again.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sgc.errors import LoadError
from sgc.runtime.engine.images.decoding import ImageError, decoded
from sgc.runtime.engine.images.families import FAMILIES, MAX_BYTES, MAX_IMAGES, Family
from sgc.runtime.engine.images.image import Image, digest_of
from sgc.runtime.engine.text.json_files import Json, read_json

MAX_ARRAY_BYTES = 48 * 1024 * 1024  # of the results
KEPT_BYTES = 128 * 1024 * 1024
_SETTINGS = ("preprocessor_config.json", "processor_config.json")


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """An image, and the text that stands for it in a prompt."""

    image: Image
    text: str


class ImageReader:
    """token: the text of the image token, and its id. text: what a prompt usually holds for an
    image. Safe to use from several threads."""

    def __init__(
        self, family: Family, processor: Any, settings: Json, token: str, token_id: int
    ) -> None:
        self._family, self._processor, self._settings = family, processor, settings
        self.token, self.token_id = token, token_id
        self.text = family.text.format(token)
        self._kept: OrderedDict[bytes, Read] = OrderedDict()
        self._n_kept_bytes = 0
        self._lock = threading.Lock()

    def read(self, files: Sequence[bytes]) -> list[Read]:
        """Each file's image; raises `ImageError`, which names the file by its number."""
        if len(files) > MAX_IMAGES:
            raise ImageError(f"{len(files)} images are given, of at most {MAX_IMAGES}")
        n_bytes = sum(map(len, files))
        if n_bytes > MAX_BYTES:
            raise ImageError(f"the images have {n_bytes} bytes, of at most {MAX_BYTES}")
        found = [self._read(i, data) for i, data in enumerate(files)]
        n_bytes = sum({each.image.digest: each.image.n_bytes for each in found}.values())
        if n_bytes > MAX_ARRAY_BYTES:
            raise ImageError(
                f"the images are {n_bytes} bytes for the vision encoder, of at most "
                f"{MAX_ARRAY_BYTES}: send fewer or smaller ones"
            )
        return found

    def of_pixels(self, pixels: Any) -> Read:
        """pixels: an RGB `PIL.Image`."""
        given = [[pixels]] if self._family.is_nested else pixels
        asked = {"return_row_col_info": True} if self._family.is_nested else {}
        arrays = dict(self._processor(given, return_tensors="np", **asked))
        text = self._family.shown(arrays, self._settings, self.token)
        kept = {name: np.asarray(arrays[name]) for name in self._family.keeps if name in arrays}
        image = Image(digest_of(kept), kept, text.count(self.token), self._grid(kept))
        return Read(image, text)

    def _grid(self, arrays: dict[str, Any]) -> tuple[int, int, int] | None:
        if self._family.grid is None:
            return None
        time, height, width = arrays[self._family.grid][0].tolist()
        merged = int(self._settings["merge_size"])
        return time, height // merged, width // merged

    def _read(self, index: int, data: bytes) -> Read:
        key = hashlib.sha256(data).digest()
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return kept
        try:
            made = self.of_pixels(decoded(data))
        except ImageError as error:
            raise ImageError(f"image {index}: {error}") from error
        except ValueError as error:  # of the processor, such as for a height of one pixel
            raise ImageError(f"image {index} is not fit for the model: {error!s:.200}") from error
        if made.image.n_tokens == 0:
            raise ImageError(f"image {index} is too small for the model: it becomes no token")
        self._keep(key, made)
        return made

    def _keep(self, key: bytes, made: Read) -> None:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._n_kept_bytes += made.image.n_bytes
            while self._n_kept_bytes > KEPT_BYTES:
                self._n_kept_bytes -= self._kept.popitem(last=False)[1].image.n_bytes


def load_reader(folder: Path, token: str | None = None) -> ImageReader | None:
    """The reader of a model's folder; None if its family takes no images here. token: the text of
    the image token; None where texts do not matter. Raises `LoadError`."""
    config = read_json(folder / "config.json")
    family = FAMILIES.get(str(config.get("model_type")))
    if family is None:
        return None
    token_id = image_token_id(folder, config)
    settings: Json = {}
    for name in _SETTINGS:
        found = read_json(folder / name)
        settings |= found.pop("image_processor", None) or {}
        settings |= found
    try:
        from transformers import AutoImageProcessor

        auto: Any = AutoImageProcessor
        processor = auto.from_pretrained(
            str(folder), backend="pil", local_files_only=True, trust_remote_code=False
        )
        reader = ImageReader(family, processor, settings, token or "<image>", token_id)
        reader.of_pixels(_probe())
    except Exception as error:  # each processor raises its own
        raise LoadError(
            f"the image processor of {folder} cannot be used: {type(error).__name__}: "
            f"{error!s:.300}",
            hint="save the model's processor there with transformers' save_pretrained; images need "
            "pillow, no torchvision",
        ) from error
    return reader


def image_token_id(folder: Path, config: Json) -> int:
    found = config.get("image_token_id", config.get("image_token_index"))
    if not isinstance(found, int):
        raise LoadError(f"{folder / 'config.json'} names no image_token_id")
    return found


def _probe() -> Any:
    import PIL.Image

    pixels = np.random.default_rng(0).integers(0, 256, (56, 84, 3), np.uint8)
    return PIL.Image.fromarray(pixels)
