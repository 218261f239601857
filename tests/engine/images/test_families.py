"""Each family's generations are those of transformers' own classes, processors and `generate`."""

from __future__ import annotations

import pytest
from vision_engine import Reference
from vision_folders import MAKERS, SHOWN, picture, png

FAMILIES = list(MAKERS)


@pytest.mark.sweep
@pytest.mark.parametrize("name", FAMILIES)
def test_generations_are_those_of_transformers(name: str, folder_of, engine_of) -> None:

    reference, image = Reference(name, folder_of(name)), SHOWN[name]
    engine = engine_of(name, chunk_tokens=16)  # so that images are cut into chunks
    one, two = picture(1), picture(2, 90, 30)
    cases = [
        (["What is it? ", one, " Say:"], 12),
        ([one, two, "the dog and the cat"], 12),
        (["a ", two, "b ", one, "c ", two, " d"], 12),
    ]
    for parts, n in cases:
        text = "".join(image if not isinstance(part, str) else part for part in parts)
        pictures = [part for part in parts if not isinstance(part, str)]
        given = [part if isinstance(part, str) else png(part) for part in parts]
        assert engine.ask(*given, n=n, text=image) == reference.ask(text, pictures, n), parts
