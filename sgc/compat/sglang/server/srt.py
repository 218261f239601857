"""Two helpers of SGLang's server package that scripts use: a tokenizer and an image."""

from __future__ import annotations

import base64
import io
import urllib.request
from pathlib import Path
from typing import Any

from sgc.errors import SgcError

IMAGE_TIMEOUT_S = 30.0


def get_tokenizer(
    tokenizer_name: str,
    *args: Any,
    tokenizer_mode: str = "auto",
    trust_remote_code: bool = False,
    tokenizer_revision: str | None = None,
    **kwargs: Any,
) -> Any:
    """A model's tokenizer; needs transformers. The model's code runs only if it is trusted."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise SgcError(
            "get_tokenizer needs transformers, which is not installed",
            hint="pip install 'sgc[engine]'",
        ) from error
    if tokenizer_mode == "slow":
        kwargs["use_fast"] = False
    if tokenizer_revision is not None:
        kwargs["revision"] = tokenizer_revision
    return AutoTokenizer.from_pretrained(
        tokenizer_name, *args, trust_remote_code=trust_remote_code, **kwargs
    )


def load_image(image_file: Any, *_: Any, **__: Any) -> tuple[Any, tuple[int, int] | None]:
    """An image from a path, bytes, a data URL, base64 or the web, and its size.

    A PIL image; if Pillow is not installed, the bytes, which `sgl.image` takes as well.
    """
    if callable(getattr(image_file, "save", None)):
        return image_file, image_file.size
    data = image_file if isinstance(image_file, bytes) else _read(str(image_file))
    try:
        from PIL import Image
    except ImportError:
        return data, None
    image = Image.open(io.BytesIO(data))
    return image, image.size


def _read(name: str) -> bytes:
    try:
        if name.startswith(("http://", "https://")):
            with urllib.request.urlopen(name, timeout=IMAGE_TIMEOUT_S) as reply:
                return bytes(reply.read())
        if name.startswith("data:"):
            return base64.b64decode(name.partition(",")[2], validate=True)
        path = Path(name.removeprefix("file://"))
        # A name of no file is base64.
        if len(name) < 4096 and path.is_file():
            return path.read_bytes()
        return base64.b64decode(name, validate=True)
    except (OSError, ValueError) as error:
        raise SgcError(f"cannot load the image {name[:200]!r}: {error}") from error
