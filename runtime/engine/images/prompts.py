"""Where the images of a tokenized prompt are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sgc.runtime.engine.images.decoding import ImageError
from sgc.runtime.engine.images.image import Placed
from sgc.runtime.engine.images.pictures import Pictures
from sgc.runtime.engine.images.reader import ImageReader


def placed(tokens: Sequence[int], segments: Iterable[object], reader: ImageReader) -> list[Placed]:
    """Where a tokenized prompt has its images; raises `ImageError` if it holds more or fewer image
    tokens than they have."""
    images = [each.image for s in segments if isinstance(s, Pictures) for each in s.images]
    at = np.flatnonzero(np.asarray(tokens, np.int64) == reader.token_id)
    n = sum(image.n_tokens for image in images)
    if len(at) != n:
        raise ImageError(
            f"the prompt's {len(images)} images are {n} tokens {reader.token!r}, but it holds "
            f"{len(at)} of them: an image takes the place of that token, which must not stand "
            "in the text beside it"
        )
    found, done = [], 0
    for image in images:
        own = at[done : done + image.n_tokens]
        ends = np.flatnonzero(np.diff(own) != 1) + 1
        runs = tuple((int(run[0]), len(run)) for run in np.split(own, ends))
        found.append(Placed(image, runs))
        done += image.n_tokens
    return found
