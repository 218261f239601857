"""Who shares cached prefixes: the key of a token's domain and a client's salt, and token files."""

from __future__ import annotations

import asyncio
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgc.errors import UsageError
from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.preparing.bounds import ServerLimits
from sgc.runtime.engine.preparing.prepare import prepare_all
from sgc.runtime.engine.preparing.salts import cache_key, domain_of
from sgc.runtime.engine.server.accounts.tokens import MAX_TOKENS, Tokens
from sgc.runtime.engine.server.listen import read_security
from sgc.runtime.engine.text.tokenizer import Tokenizer
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Prompt, Sampling, TextRun

tokens = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
salts = st.binary(max_size=64)
domains = st.binary(min_size=1, max_size=40) | tokens.map(domain_of)
GREEDY = Sampling(max_tokens=4, temperature=0.0)
LONG: Prompt = (TextRun("The whole of a long story that all of them begin with. " * 8),)


@given(a=st.tuples(domains, salts), b=st.tuples(domains, salts))
def test_no_two_pairs_have_one_key(a: tuple[bytes, bytes], b: tuple[bytes, bytes]) -> None:
    assert (cache_key(*a) == cache_key(*b)) == (a == b)


@given(a=tokens, b=tokens, salt=salts, other=salts)
def test_no_salt_reaches_another_tokens_keys(a: str, b: str, salt: bytes, other: bytes) -> None:
    if a != b:
        assert cache_key(domain_of(a), salt) != cache_key(domain_of(b), other)
        moved = cache_key(domain_of(a), salt)  # and none that is made of one of those
        assert cache_key(domain_of(b), moved) != moved


@given(token=tokens, salt=salts)
def test_a_key_tells_nothing_of_the_token(token: str, salt: bytes) -> None:
    assert len(domain_of(token)) == 32
    assert token.encode() not in domain_of(token) or len(token) < 4


@given(salt=salts)
def test_with_one_token_the_key_is_the_clients_own_salt(salt: bytes) -> None:
    assert cache_key(Tokens(["one"]).find(b"Bearer one") or b"", salt) == salt


def test_a_token_file_holds_one_a_line(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# ours\n alpha \n\nbeta#1\r\n")
    found = read_security(str(file), None, None).tokens
    assert len(found) == 2
    alpha, beta = found.find(b"Bearer alpha"), found.find(b"Bearer beta#1")
    assert alpha == domain_of("alpha")
    assert beta == domain_of("beta#1")
    for wrong in (b"", b"Bearer ", b"Bearer # ours", b"Bearer beta", b"alpha", b"Bearer alpha "):
        assert found.find(wrong) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# nobody\n", "is empty"),
        ("a\n\nb\na\n", "lines 1 and 4 .* are one token"),
        ("ok\nsch\xf6n\n", "line 2 "),
        ("ok\n" + "x" * 5000, "line 2 "),
        ("\n".join(f"token{i}" for i in range(MAX_TOKENS + 1)), f"of at most {MAX_TOKENS}"),
        ("#" * 2_000_000, "more than"),
    ],
)
def test_token_files_that_cannot_be_used(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=words) as caught:
        read_security(str(file), None, None)
    assert "token5" not in str(caught.value)


def test_tokens_share_no_prefix_over_grpc(tmp_path: Path) -> None:
    async def cached(uri: str, token: str, salt: bytes = b"") -> int:
        async with EngineBackend(uri, token=token) as backend:
            if not salt:
                return (await backend.generate(LONG, GREEDY)).usage.cached_tokens
            stub = await backend._connected()
            call = stub.Session(metadata=(("authorization", f"Bearer {token}"),))
            sampling = pb.Sampling(max_tokens=4, top_p=1, top_k=-1, repetition_penalty=1)
            prompt = pb.Prompt(segments=[pb.Segment(text=pb.TextRun(text=LONG[0].text))])
            asked = pb.Request(prompt=prompt, cache_salt=salt)
            asked.generate.sampling.CopyFrom(sampling)
            await call.write(pb.ClientFrame(requests=[asked]))
            (reply,) = (await call.read()).replies
            call.cancel()
            return int(reply.generated.usage.cached_tokens)

    async def main(uri: str) -> None:
        assert await cached(uri, "alpha") == 0
        assert await cached(uri, "alpha") > 100
        assert await cached(uri, "beta") == 0
        assert await cached(uri, "alpha", b"x") == 0
        assert await cached(uri, "alpha", b"x") > 100
        assert await cached(uri, "beta", b"x") == 0
        for stolen in (domain_of("alpha"), cache_key(domain_of("alpha"), b"x")):
            assert await cached(uri, "beta", stolen) == 0

    file = tmp_path / "tokens"
    file.write_text("alpha\nbeta\n")
    arguments = ["--check", "--token-file", str(file), "--max-context", "4096"]
    with EmbeddedEngine("fake", arguments) as engine:
        asyncio.run(main(engine.uri))


def test_tokens_of_a_text_are_remembered_for_one_key_alone(shipped: Tokenizer) -> None:
    """How long tokenizing takes must not tell that another client has asked for the same text."""
    limits, n_encoded = ServerLimits(4096, 4096, 2048), []
    encode = shipped._encode_fresh

    def counted(run: Any, at_start: bool) -> tuple[int, ...]:
        n_encoded.append(run.text)
        return encode(run, at_start)

    shipped = copy(shipped)
    shipped._encode_fresh = counted  # type: ignore[method-assign]

    def ask(domain: bytes, salt: bytes) -> int:
        run = pb.TextRun(text="What only one of them has asked, at some length.")
        prompt = pb.Prompt(segments=[pb.Segment(text=run)])
        asked = pb.Request(prompt=prompt, commit=pb.Commit(heads=["x"]), cache_salt=salt)
        prepare_all([asked], shipped, limits, domain)
        found = len(n_encoded)
        n_encoded.clear()
        return found

    keys = [(domain_of("a"), b""), (domain_of("b"), b""), (domain_of("a"), b"s"), (b"", b"s")]
    assert all(ask(*key) for key in keys)
    assert not any(ask(*key) for key in keys)
