"""Images between the server process and the step process."""

from __future__ import annotations

from weakref import WeakValueDictionary

import numpy as np

from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.images.image import Image, Placed

_in_use: WeakValueDictionary[bytes, Image] = WeakValueDictionary()


def add_image(message: wpb.WorkerRequest, placed: Placed) -> None:
    """Adds an image to a request for the step process."""
    image = placed.image
    found = message.images.add(digest=image.digest, grid=image.grid or ())
    for start, n in placed.runs:
        found.starts.append(start)
        found.lengths.append(n)
    for name, array in image.arrays.items():
        found.arrays.add(name=name, dtype=str(array.dtype), shape=array.shape, data=array.tobytes())


def placed_of(message: wpb.PlacedImage) -> Placed:
    """The image of a message. Equal images in use share one object."""
    if (known := _in_use.get(message.digest)) is not None:
        return Placed(known, tuple(zip(message.starts, message.lengths, strict=True)))
    arrays = {
        each.name: np.frombuffer(each.data, each.dtype).reshape(tuple(each.shape))
        for each in message.arrays
    }
    grid = (message.grid[0], message.grid[1], message.grid[2]) if message.grid else None
    image = Image(message.digest, arrays, sum(message.lengths), grid)
    _in_use[message.digest] = image
    return Placed(image, tuple(zip(message.starts, message.lengths, strict=True)))
