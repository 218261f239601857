"""Joined contexts over gRPC: their tokens, what is cached, and what is refused."""

from __future__ import annotations

import asyncio

import pytest

import sgc
from sgc.errors import BackendError
from sgc.proto import engine_pb2 as pb
from sgc.runs.endpoint import Endpoint
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.preparing.bounds import RequestError, ServerLimits
from sgc.runtime.engine.preparing.joining import Parts, plain_segments
from sgc.runtime.engine.preparing.prepare import prepare_all
from sgc.runtime.engine.requests.joined import Joins
from sgc.runtime.engine.text.tokenizer import Ids, Text, Tokenizer, always
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Joined, Prompt, Sampling, TextRun
from sgc.runtime.executor.run.options import RunOptions

LIMITS = ServerLimits(max_context=4096, pool_tokens=20000, vocab_size=4096)
WORDS = "The story of a fox who went to the sea, and of what it found there. "


def tokens_of(tokenizer: Tokenizer, *segments: Text | Ids | Parts) -> tuple[list[int], Joins]:
    plain, joins = plain_segments(segments, tokenizer, always)
    return tokenizer.encode_prompt(plain), joins


def test_a_part_has_the_tokens_of_its_own_stream(shipped: Tokenizer) -> None:
    trunk, parts, after = WORDS, ["Once there was", " nothing at all", "\n\nand then"], " The end."
    ids, joins = tokens_of(
        shipped, Text(trunk), Parts(tuple((Text(part),) for part in parts)), Text(after)
    )
    (join,) = joins
    for (start, part), text in zip(join.spans(), parts, strict=True):
        alone = shipped.encode_prompt([Text(trunk + text)])
        assert ids[: join.start] + ids[start : part.end] == alone
    assert ids[join.end :] == shipped.encode_continuation(after)


def test_tokens_across_the_border_belong_to_the_parts(shipped: Tokenizer) -> None:
    """Where a part's first characters change the last token before it."""
    ids, (join,) = tokens_of(shipped, Text("a sto"), Parts(((Text("ry"),), (Text("ne"),))))
    assert ids[: join.start] + ids[join.start : join.parts[0].end] == shipped.encode_prompt(
        [Text("a story")]
    )
    assert ids[: join.start] + ids[join.parts[0].end :] == shipped.encode_prompt([Text("a stone")])


def test_joins_in_parts_and_joins_that_follow_each_other(shipped: Tokenizer) -> None:
    inner = Parts(((Text(" x y"),), (Text(" z"),)))
    first = Parts(((Text(" one"), inner, Text(" end")), (Ids((9, 8, 7)),), ()))
    ids, joins = tokens_of(
        shipped, Text(WORDS), first, Text(" and"), Parts(((Text(" p"),), (Text(" q"),)))
    )
    assert [len(join.parts) for join in joins] == [2, 2]  # an empty part is none
    (nested,) = joins[0].parts[0].joins
    assert joins[0].start < nested.start < nested.end < joins[0].parts[0].end
    assert ids[joins[0].parts[0].end : joins[0].parts[1].end] == [9, 8, 7]
    assert joins[0].end < joins[1].start
    assert shipped.backend.decode(ids[joins[1].start :]) == " p q"


def test_one_part_has_nothing_beside_it(shipped: Tokenizer) -> None:
    inner = Parts(((Text(" x y"),), (Text(" z"),)))
    ids, joins = tokens_of(shipped, Text(WORDS), Parts(((Text(" one"), inner),)), Text("x"))
    (join,) = joins  # the one within it
    assert len(join.parts) == 2
    assert shipped.backend.decode(ids[join.start : join.end]) == " x y z"
    assert tokens_of(shipped, Text(WORDS), Parts(((Text(" one"),),)))[1] == ()


def test_parts_without_tokens_are_no_join(shipped: Tokenizer) -> None:
    ids, joins = tokens_of(shipped, Text(WORDS), Parts(((), (Text(""),))), Text("x"))
    assert joins == ()
    assert ids == shipped.encode_prompt([Text(WORDS)]) + shipped.encode_continuation("x")


@sgc.function
def windows(s, kv: str, n: int):
    s += WORDS * 6
    forks = s.fork(n)
    for i, fork in enumerate(forks):
        fork += f"Window {i}: " + WORDS * 5 + sgc.gen("note", max_tokens=6, ignore_eos=True)
    forks.join("concate_and_append", kv=kv)
    s += " Now say: " + sgc.gen("said", max_tokens=8, temperature=0, ignore_eos=True)


def test_a_program_computes_joined_parts_once(engine: EmbeddedEngine) -> None:
    with Endpoint(EngineBackend(engine.uri)) as endpoint:
        exact, approximate, again = (
            windows.run_once({"kv": kv, "n": 4}, RunOptions(seed=1), endpoint)
            for kv in ("exact", "approximate", "approximate")
        )
    assert approximate.stats.joined_tokens > 4 * 50
    assert exact.stats.joined_tokens == 0
    said = [next(r for r in run.requests if r.name == "said").usage for run in (exact, approximate)]
    assert said[0].computed_tokens > 3 * 50
    # The last token of each part was never run, and what follows the join.
    assert said[1].computed_tokens < 4 * 2 + 12
    assert again.stats.computed_tokens < approximate.stats.computed_tokens
    assert again.text() == approximate.text()


def prompt_of(depth: int, n_parts: int = 1, text: str = "x") -> pb.Prompt:
    prompt = pb.Prompt()
    prompt.segments.add().text.text = text
    if depth:
        joined = prompt.segments.add().joined
        for _ in range(n_parts):
            joined.parts.add().CopyFrom(prompt_of(depth - 1))
    return prompt


BAD = {
    "levels of joins in a prompt: 9, of at most 8": pb.Request(
        prompt=prompt_of(9), commit=pb.Commit()
    ),
    "joined parts in a prompt: 257, of at most 256": pb.Request(
        prompt=prompt_of(1, 257), commit=pb.Commit()
    ),
    "characters to tokenize (each joined part": pb.Request(
        prompt=prompt_of(1, 250, "a" * 200_000), commit=pb.Commit()
    ),
    "prompt segments: 20002": pb.Request(prompt=prompt_of(1, 10_000), commit=pb.Commit()),
    "without joined parts": pb.Request(prompt=prompt_of(1, 2), embed=pb.Embed()),
    "offset 1 into joined parts": pb.Request(
        prompt=prompt_of(1), commit=pb.Commit(), reusable=pb.Position(segment=1, offset=1)
    ),
}


@pytest.mark.parametrize("words", BAD)
def test_what_cannot_be_joined_is_refused(words: str, shipped: Tokenizer) -> None:
    (found,) = prepare_all([BAD[words]], shipped, LIMITS)
    assert isinstance(found, RequestError)
    assert found.code == pb.ERROR_CODE_INVALID_ARGUMENT
    assert words in found.message


@pytest.mark.parametrize(("segment", "n"), [(0, 0), (1, 0), (2, "all"), (3, "all")])
def test_how_much_of_a_joined_prompt_later_ones_may_begin_with(segment, n, shipped) -> None:
    """What is before the end of the join is cached elsewhere without it."""
    prompt = prompt_of(1, 2, WORDS)
    prompt.segments.add().text.text = " so"
    request = pb.Request(prompt=prompt, commit=pb.Commit(heads=["", " a"]))
    request.reusable.segment = segment
    (found,) = prepare_all([request], shipped, LIMITS)
    end = found.work.joins[0].parts[-1].end
    expected = n if n == 0 else end if segment == 2 else len(found.work.tokens)
    assert found.work.n_reusable == expected


def test_a_prompt_that_is_too_long_with_its_parts_is_refused(engine: EmbeddedEngine) -> None:
    long: Prompt = (TextRun(WORDS), Joined(((TextRun(WORDS * 150),), (TextRun(WORDS * 150),))))

    async def main() -> None:
        async with EngineBackend(engine.uri) as backend:
            await backend.generate(long, Sampling(max_tokens=1))

    with pytest.raises(BackendError, match="tokens; this engine holds at most"):
        asyncio.run(main())
