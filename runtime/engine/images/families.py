"""The families of vision-language models whose images this engine takes: a row each.

A row says how one processed image stands in a prompt. The rest is read off the model's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sgc.runtime.engine.text.json_files import Json

if TYPE_CHECKING:  # a server without images does no numerics
    import numpy.typing as npt

    Arrays = Mapping[str, npt.NDArray[Any]]

MAX_IMAGES = 64  # of one request
MAX_BYTES = 12 * 1024 * 1024  # of their files together


@dataclass(frozen=True, slots=True)
class Family:
    """text: what a prompt holds for an image, {} being the image token. shown: the text of one
    processed image, from its arrays, its settings and the image token. keeps: arrays that the
    vision encoder takes. grid: the array of the image's patches, by which its tokens get positions
    in time, height and width. is_nested: whether the processor takes a list of images for each
    prompt."""

    text: str
    shown: Callable[[Arrays, Json, str], str]
    keeps: tuple[str, ...] = ("pixel_values",)
    grid: str | None = None
    is_nested: bool = False


def _of_patches(arrays: Arrays, settings: Json, token: str) -> str:
    height, width = arrays["pixel_values"].shape[-2:]
    patch = int(settings["patch_size"])
    n_more = int(settings.get("num_additional_image_tokens") or 0)
    if settings.get("vision_feature_select_strategy") == "default":
        n_more -= 1
    return token * ((int(height) // patch) * (int(width) // patch) + n_more)


def _of_grid(arrays: Arrays, settings: Json, token: str) -> str:
    return token * (int(arrays["image_grid_thw"][0].prod()) // int(settings["merge_size"]) ** 2)


def _of_tiles(arrays: Arrays, settings: Json, token: str) -> str:
    """Rows of tiles, and then the whole image, each with a mark before it."""
    around, image = "<fake_token_around_image>", token * int(settings["image_seq_len"])
    rows, columns = int(arrays["rows"][0][0]), int(arrays["cols"][0][0])
    tiles = "".join(
        "".join(f"{around}<row_{y + 1}_col_{x + 1}>{image}" for x in range(columns)) + "\n"
        for y in range(rows)
    )
    end = "\n" if tiles else ""
    return f"{tiles}{end}{around}<global-img>{image}{around}"


_TILES = Family("{}", _of_tiles, ("pixel_values", "pixel_attention_mask"), is_nested=True)
_GRID = Family(
    "<|vision_start|>{}<|vision_end|>", _of_grid, ("pixel_values", "image_grid_thw"),
    "image_grid_thw",
)  # fmt: skip
FAMILIES: Mapping[str, Family] = {
    "llava": Family("{}\n", _of_patches),
    "qwen2_vl": _GRID,
    "qwen2_5_vl": _GRID,
    "idefics3": _TILES,
    "smolvlm": _TILES,
}
_BOTH_WAYS = "its image tokens attend to each other both ways, which this engine does not do"
_REFUSED = ("gemma3", "gemma3n", "gemma4", "paligemma", "colpali", "t5gemma2")
REFUSED: Mapping[str, str] = dict.fromkeys(_REFUSED, _BOTH_WAYS)


def why_none(config: Json) -> str:
    """Why a model of this configuration takes no images."""
    name = str(config.get("model_type"))[:80]
    if name in REFUSED:
        return f"images of {name} models are not supported: {REFUSED[name]}"
    if "vision_config" in config:
        known = ", ".join(FAMILIES)
        return f"images of {name} models are not supported; those of these models are: {known}"
    return f"this model takes no images: {name} is a family of models for text alone"
