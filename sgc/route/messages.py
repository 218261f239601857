"""The parts of a request over gRPC that decide which engine gets it; and its errors."""

from __future__ import annotations

from array import array

from sgc.proto import engine_pb2 as pb
from sgc.runtime.executor.routing.blocks import CHARACTERS

_LOOKED_AT = 64 * 1024  # bytes of an image


def text_of(prompt: pb.Prompt) -> str:
    """The prompt as one text; an id is as long as a token, and an image a short name."""
    parts: list[str] = []
    for segment in prompt.segments:
        kind = segment.WhichOneof("content")
        if kind == "text":
            parts.append(segment.text.text)
        elif kind == "tokens":
            parts.append(array("I", segment.tokens.ids).tobytes().decode("latin-1"))
        elif kind == "joined":
            parts += map(text_of, segment.joined.parts)
        elif kind == "images":
            parts.append(segment.images.text)
            parts += [f"{len(each)} {hash(each[:_LOOKED_AT])}" for each in segment.images.images]
    return "".join(parts)


def salt_of(request: pb.Request, domain: bytes) -> str:
    """What keeps prompts apart: the client's token, the adapter, the request's own salt."""
    return repr((domain, request.adapter, request.cache_salt))


def n_out_of(request: pb.Request, expected: float) -> float:
    """How many tokens the request generates: as expected, but at most as many as it allows."""
    kind = request.WhichOneof("kind")
    if kind == "generate":
        return min(expected, request.generate.sampling.max_tokens)
    return sum(map(len, request.score.choices)) / CHARACTERS if kind == "score" else 0.0


def found_of(reply: pb.Reply, n_blocks: int) -> int | None:
    """How many of a prompt's blocks were cached; None if the reply does not say."""
    kind = reply.WhichOneof("kind")
    if kind not in ("generated", "scored", "committed") or reply.committed.gave_way:
        return None
    usage: pb.Usage = getattr(reply, kind).usage
    if not usage.prompt_tokens:
        return None
    return round(n_blocks * usage.cached_tokens / usage.prompt_tokens)


def error(code: pb.ErrorCode, message: str) -> pb.Reply:
    reply = pb.Reply()
    reply.error.code, reply.error.message = code, message
    return reply
