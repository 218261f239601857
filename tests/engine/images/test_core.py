"""Images in the core: what is encoded, shared, cut into chunks and refused."""

from __future__ import annotations

import numpy as np
import pytest
from vision_engine import Engine, ids_of
from vision_folders import SHOWN, picture, png

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.images.image import Image, Placed, digest_of, positions_of, with_ids
from sgc.runtime.engine.preparing.bounds import RequestError
from sgc.runtime.engine.worker.wire import request_of

ONE, TWO = png(picture(1)), png(picture(2))


@pytest.fixture(scope="module")
def llava(engine_of) -> Engine:
    return engine_of("llava")


def test_an_image_is_encoded_once(engine_of) -> None:
    engine = engine_of("llava", pool_tokens=64)
    first = engine.ask("see ", ONE, " what?")
    counts = engine.core.stats
    assert (counts().counters.encoded_images, counts().counters.reused_images) == (1, 0)
    assert engine.ask("see ", ONE, " what?") == first
    assert (counts().counters.encoded_images, counts().counters.reused_images) == (1, 0)
    assert counts().counters.cached_tokens > 16
    # Its prefix is gone, and what the encoder gave is not.
    engine.core.flush_cache()
    assert engine.ask("see ", ONE, " what?") == first
    assert (counts().counters.encoded_images, counts().counters.reused_images) == (1, 1)
    assert counts().encoded_images_bytes == 16 * 48 * 4
    assert engine.ask("see ", TWO, " what?") != first
    assert counts().counters.encoded_images == 2


def test_questions_about_one_image_share_its_tokens(llava: Engine) -> None:
    llava.core.flush_cache()
    before = llava.core.stats().counters
    numbers = [llava.start(llava.prepared("look: ", ONE, f"question {i}?")) for i in range(6)]
    found = llava.finish()
    together = [ids_of(found[number]) for number in numbers]
    after = llava.core.stats().counters
    usage = [found[number][-1].usage for number in numbers]
    shared = min(each.cached_tokens for each in usage[1:])
    assert shared >= 16
    assert sum(each.cached_tokens == 0 for each in usage) == 1
    assert after.encoded_images - before.encoded_images <= 1
    alone = []
    for i in range(6):
        llava.core.flush_cache()
        alone.append(llava.ask("look: ", ONE, f"question {i}?"))
    assert together == alone
    assert len(set(map(tuple, alone))) > 1


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["llava", "qwen2_vl", "smolvlm"])
def test_answers_do_not_depend_on_batches_or_chunks(name: str, engine_of) -> None:
    text = SHOWN[name]
    prompts = [("a ", ONE, " b ", TWO, " c"), (TWO, "x"), ("text alone",), (ONE, ONE, " twice")]
    alone = []
    whole = engine_of(name)
    for parts in prompts:
        whole.core.flush_cache()
        alone.append(whole.ask(*parts, text=text))
    small = engine_of(name, chunk_tokens=5, pool_tokens=220)
    numbers = [small.start(small.prepared(*parts, text=text)) for parts in prompts]
    found = small.finish()
    assert [ids_of(found[number]) for number in numbers] == alone


def test_choices_after_an_image(engine_of) -> None:
    """Positions of what follows an image with three positions a token are the same in choices."""
    engine = engine_of("qwen2_vl")
    asked = pb.Request(score=pb.Score(choices=["cat", "dog and", "dog or"]))
    number = engine.start(engine.prepared(ONE, " shows a ", request=asked, text=SHOWN["qwen2_vl"]))
    (update,) = engine.finish()[number]
    assert update.error is None
    # The same by prompts of their own.
    for choice, logprobs in zip(asked.score.choices, update.choices, strict=True):
        engine.core.flush_cache()
        prompt = engine.prepared(ONE, f" shows a {choice}", n=1, text=SHOWN["qwen2_vl"])
        n = len(prompt.work.tokens) - len(logprobs)
        prompt.work.generate.logprobs.start = n
        own = engine.finish_all(prompt)[-1].prompt_logprobs
        assert [each.logprob for each in own] == pytest.approx(list(logprobs), abs=1e-4)


def test_penalties_and_logit_bias_beside_images(llava: Engine) -> None:
    prepared = llava.prepared("a ", ONE, " b b b b")
    prepared.work.generate.repetition_penalty = 1.3
    prepared.work.generate.frequency_penalty = 0.5
    assert len(ids_of(llava.finish_all(prepared))) == 8


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (("<image>", "x", ONE), "holds 17 of them"),
        ((b"GIF89a",), "image 0"),
        ((ONE[:200],), "image 0: it cannot be decoded"),
        ((b"%PDF-1.4 no image",), "no image of a kind"),
    ],
)
def test_refused(llava: Engine, parts, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        llava.prepared(*parts)


def test_log_probabilities_of_images_are_refused(llava: Engine) -> None:
    asked = pb.Request(
        generate=pb.Generate(sampling=pb.Sampling(max_tokens=1, top_p=1, repetition_penalty=1))
    )
    asked.generate.sampling.top_k = -1
    asked.generate.sampling.logprobs.start = 2
    with pytest.raises(RequestError, match="tokens of images have none; start from 18"):
        llava.prepared("a ", ONE, " b", request=asked)


def test_the_text_of_an_image_holds_its_token_once(llava: Engine) -> None:
    for text in ("no token", "<image><image>"):
        with pytest.raises(RequestError, match="once"):
            llava.prepared(ONE, text=text)


def test_an_image_token_in_an_argument_is_text(llava: Engine) -> None:
    asked = pb.Request(generate=pb.Generate(sampling=pb.Sampling(max_tokens=1, top_p=1)))
    asked.generate.sampling.top_k, asked.generate.sampling.repetition_penalty = -1, 1
    run = asked.prompt.segments.add().text
    run.text = "the user wrote <image> here "
    run.literal.add(start=0, end=len(run.text))
    prepared = llava.prepared(ONE, request=asked)
    assert len(prepared.work.images) == 1
    assert request_of(prepared.work).tokens.min() < 0


def test_ids_of_images() -> None:
    def image(n: int, seed: int = 0) -> Image:
        arrays = {"pixel_values": np.full((1, 3), seed, np.float32)}
        return Image(digest_of(arrays), arrays, n)

    ids = image(40).ids
    assert (ids < 0).all()
    assert len(set(ids.tolist())) == 40
    assert (image(40).ids == ids).all()
    assert not set(image(40, 1).ids) & set(ids)
    tokens = np.arange(9)
    found = with_ids(tokens, [Placed(image(4), ((1, 2), (5, 2)))])
    assert (found[[0, 3, 4, 7, 8]] == tokens[[0, 3, 4, 7, 8]]).all()
    assert found[[1, 2, 5, 6]].tolist() == image(4).ids.tolist()


def test_positions_of_images() -> None:
    arrays = {"pixel_values": np.zeros(1, np.float32)}
    placed = Placed(Image(b"", arrays, 6, (1, 2, 3)), ((2, 6),))
    assert positions_of(10, [placed]).tolist() == [
        [0, 1, 2, 2, 2, 2, 2, 2, 5, 6],
        [0, 1, 2, 2, 2, 3, 3, 3, 5, 6],
        [0, 1, 2, 3, 4, 2, 3, 4, 5, 6],
    ]
