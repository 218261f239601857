"""The bounds of a client's request, checked before anything is computed for it.

Every violation is a `RequestError`, which becomes an Error reply to that request alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.images.decoding import ImageError
from sgc.runtime.engine.images.pictures import Pictures, as_texts, pictures
from sgc.runtime.engine.names import DEFAULT_POOLING, Pooling, ServedAdapter
from sgc.runtime.engine.preparing.joining import Parts, chars_again, kinds_of
from sgc.runtime.engine.preparing.joining import Segment as TextSegment
from sgc.runtime.engine.requests.sampling_ranges import (
    BIAS,
    RANGES,
    Range,
    problem_with,
    problem_with_top_k,
)
from sgc.runtime.engine.text.literal import Spans
from sgc.runtime.engine.text.tokenizer import Ids, Text, Tokenizer

if TYPE_CHECKING:  # a server without images does no numerics
    from sgc.runtime.engine.images.reader import ImageReader, Read


Segment = TextSegment | Pictures

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
BESIDE_PROMPT_BYTES = 5 * 1024 * 1024  # choices, schemas, and other requests of the frame
MAX_SEGMENTS = 16_384
MAX_SPANS = 65_536
MAX_SALT_BYTES = 64
MAX_CHOICES = 4096
MAX_HEADS = 4096
MAX_JOINT_CHARS = 32 * 1024 * 1024  # of choices or heads, each counted with the last text run
MAX_STOP_STRINGS = 64
MAX_STOP_BYTES = 4096
MAX_STOP_IDS = 1024
MAX_BIASES = 1024
MAX_TOP_LOGPROBS = 100
MAX_LOGPROBS = 200_000  # of one request, alternatives included
MAX_JOIN_LEVELS = 8
MAX_PARTS = 256  # of all joins of a prompt: each is a sequence with all that comes before it
MAX_REMAINING = 1 << 24  # tokens of a program


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits of one engine; max_context and pool_tokens come from the loaded model,
    and pooling from its folder. adapters: the first is the step process's number 1."""

    max_context: int
    pool_tokens: int
    vocab_size: int
    max_in_flight: int = 1024  # unfinished requests of one session
    max_total_in_flight: int = 8192
    max_sessions: int = 256
    max_sessions_of_token: int = 128  # if the server has several tokens
    max_request_s: float = math.inf  # of one request, its wait included
    max_silence_s: float = 300.0  # of a session without unfinished requests
    max_outbox: int = 4096  # a session's reading pauses at so many unsent replies
    max_frame_bytes: int = MAX_MESSAGE_BYTES  # larger ones are not read; see `most_frame_bytes`
    pooling: Pooling = DEFAULT_POOLING
    adapters: tuple[ServedAdapter, ...] = ()
    images: ImageReader | str = "this engine takes no images"  # or why there is none

    @property
    def max_positions(self) -> int:
        return min(self.max_context, self.pool_tokens) if self.pool_tokens else self.max_context


def most_frame_bytes(tokenizer: Tokenizer, n_tokens: int) -> int:
    """The largest frame whose prompts can fit the context, in bytes.

    A larger frame is refused by its header: reading it would delay all other clients.
    """
    most_prompt_bytes = tokenizer.most_bytes(n_tokens)
    if most_prompt_bytes is None:
        return MAX_MESSAGE_BYTES
    return min(MAX_MESSAGE_BYTES, BESIDE_PROMPT_BYTES + most_prompt_bytes)


class RequestError(Exception):
    """Why one request is refused. param: the sampling parameter at fault, if it is one."""

    param = ""

    def __init__(
        self, code: pb.ErrorCode, message: str, retry_after_s: float = 0.0, quota: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s
        self.quota = quota

    def to_message(self) -> pb.Error:
        return pb.Error(
            code=self.code,
            message=self.message,
            retry_after_s=self.retry_after_s,
            quota=self.quota,
        )


def invalid(message: str, param: str = "") -> RequestError:
    error = RequestError(pb.ERROR_CODE_INVALID_ARGUMENT, message)
    error.param = param
    return error


def check_positions(
    n_tokens: int, limits: ServerLimits, what: str = "the prompt", is_least: bool = False
) -> None:
    """Raises CONTEXT_EXCEEDED if `n_tokens` positions can never fit.

    is_least: `n_tokens` is a lower bound.
    """
    if n_tokens > limits.max_positions:
        at_least = "at least " if is_least else ""
        raise RequestError(
            pb.ERROR_CODE_CONTEXT_EXCEEDED,
            f"{what} is {at_least}{n_tokens} tokens; this engine holds at most "
            f"{limits.max_positions} (context {limits.max_context}, pool {limits.pool_tokens})",
        )


def checked_segments(prompt: pb.Prompt, limits: ServerLimits) -> list[Segment]:
    """The prompt's segments; raises `RequestError` for anything out of bounds."""
    kinds = kinds_of(prompt)
    _check_count("prompt segments", len(kinds), MAX_SEGMENTS)
    if "joined" in kinds:
        _check_joins(prompt)
    images = _read_images(prompt, limits) if "images" in kinds else iter(())
    return [_checked_segment(segment, limits, images) for segment in prompt.segments]


def _check_joins(prompt: pb.Prompt) -> None:
    _check_count("prompt segments", n_segments(prompt), MAX_SEGMENTS)
    _check_count("levels of joins in a prompt", depth_of(prompt), MAX_JOIN_LEVELS)
    _check_count("joined parts in a prompt", n_parts(prompt), MAX_PARTS)
    what = "characters to tokenize (each joined part with what comes before it)"
    _check_count(what, chars_again(prompt), MAX_JOINT_CHARS)


def text_segments(segments: Sequence[Segment]) -> list[TextSegment]:
    """The segments with images as texts, in which the image token stands for each of their
    tokens."""
    found: list[TextSegment] = as_texts(segments)
    return found


def _part(prompt: pb.Prompt, limits: ServerLimits) -> tuple[TextSegment, ...]:
    found: list[TextSegment] = []
    for segment in prompt.segments:
        each = _checked_segment(segment, limits, iter(()))
        if isinstance(each, Pictures):
            raise invalid("images cannot be in joined parts")
        found.append(each)
    return tuple(found)


def _read_images(prompt: pb.Prompt, limits: ServerLimits) -> Iterator[Read]:
    files = [file for segment in prompt.segments for file in segment.images.images]
    if not files:
        return iter(())
    if isinstance(limits.images, str):
        raise invalid(limits.images)
    if any(segment.HasField("joined") for segment in prompt.segments):
        raise invalid("a prompt with joined parts can have no images")
    try:
        return iter(limits.images.read(files))
    except ImageError as error:
        raise invalid(str(error)) from error


def n_segments(prompt: pb.Prompt) -> int:
    """The number of segments, including those in parts, and counting each part as one."""
    return sum(
        1 + sum(1 + n_segments(part) for part in segment.joined.parts)
        for segment in prompt.segments
    )


def n_parts(prompt: pb.Prompt) -> int:
    """The number of parts, including nested ones."""
    parts = [part for segment in prompt.segments for part in segment.joined.parts]
    return len(parts) + sum(map(n_parts, parts))


def depth_of(prompt: pb.Prompt) -> int:
    """How deeply joins are nested."""
    parts = (part for segment in prompt.segments for part in segment.joined.parts)
    return max((1 + depth_of(part) for part in parts), default=0)


def check_salt(salt: bytes) -> None:
    """Raises `RequestError` for one that is too long."""
    _check_count("bytes in a cache salt", len(salt), MAX_SALT_BYTES)


def checked_adapter(name: str, limits: ServerLimits) -> tuple[int, bytes]:
    """The number and the digest of an adapter, 0 and b"" of none; raises `RequestError`."""
    if not name:
        return 0, b""
    for number, adapter in enumerate(limits.adapters, 1):
        if adapter.name == name:
            return number, adapter.digest
    served = ", ".join(adapter.name for adapter in limits.adapters) or "none"
    raise invalid(f"there is no adapter {name[:200]!r}; this engine has: {served}")


def check_run(run: pb.ProgramRun) -> None:
    """Raises `RequestError` for an impossible number of remaining tokens."""
    _check_count("run: remaining tokens of the program", run.remaining, MAX_REMAINING)


def checked_cut(segments: Sequence[Segment], position: pb.Position) -> list[Segment]:
    """The segments up to a position; raises `RequestError` if it is not in them."""
    index, offset = position.segment, position.offset
    if index > len(segments) or (index == len(segments) and offset > 0):
        raise invalid(f"reusable: segment {index}, of a prompt of {len(segments)}")
    before = list(segments[:index])
    if offset == 0:
        return before
    cut = segments[index]
    if isinstance(cut, Parts):
        raise invalid(f"reusable: offset {offset} into joined parts")
    if isinstance(cut, Pictures):
        raise invalid("reusable: a position within images; give their beginning or their end")
    length = len(cut.ids) if isinstance(cut, Ids) else len(cut.text)
    if offset > length:
        raise invalid(f"reusable: offset {offset} into a segment of {length}")
    if isinstance(cut, Ids):
        return [*before, Ids(cut.ids[:offset])]
    literal = tuple((start, min(end, offset)) for start, end in cut.literal if start < offset)
    return [*before, Text(cut.text[:offset], literal)]


def _checked_segment(segment: pb.Segment, limits: ServerLimits, images: Iterator[Read]) -> Segment:
    content = segment.WhichOneof("content")
    if content == "images":
        return _pictures(segment.images, limits, images)
    if content == "text":
        run = segment.text
        text, literal = run.text, run.literal
        return Text(text, _checked_spans(literal, len(text)) if literal else ())
    if content == "tokens":
        ids = tuple(segment.tokens.ids)
        _check_ids("prompt", ids, limits.vocab_size)
        return Ids(ids)
    if content == "joined":
        return Parts(tuple(_part(part, limits) for part in segment.joined.parts))
    raise invalid("a prompt segment has no content: expected text, tokens, images or joined parts")


def _pictures(run: pb.ImageRun, limits: ServerLimits, images: Iterator[Read]) -> Pictures:
    """images: the prompt's, from the first of this run on."""
    if not run.images or isinstance(limits.images, str):
        raise invalid("a prompt segment of images holds none")
    try:
        return pictures(list(islice(images, len(run.images))), run.text, limits.images)
    except ImageError as error:
        raise invalid(str(error)) from error


def _checked_spans(literal: Sequence[pb.Span], n_chars: int) -> Spans:
    _check_count("literal spans", len(literal), MAX_SPANS)
    spans = tuple((span.start, span.end) for span in literal)
    for start, end in spans:
        if not start <= end <= n_chars:
            raise invalid(
                f"literal span [{start}, {end}) does not lie in a text of {n_chars} code points"
            )
    return spans


def _check_ids(what: str, ids: Sequence[int], vocab_size: int) -> None:
    largest = max(ids, default=0)
    if largest >= vocab_size:
        message = f"{what}: token id {largest} is not below the vocabulary size {vocab_size}"
        raise invalid(message, what)


def check_heads(heads: Sequence[str], prompt: pb.Prompt) -> None:
    """Raises `RequestError` if there is too much to tokenize."""
    _check_count("heads", len(heads), MAX_HEADS)
    _check_joint(heads, prompt)


def check_choices(choices: Sequence[str], prompt: pb.Prompt) -> None:
    """Raises `RequestError` for choices that cannot be scored."""
    if not choices:
        raise invalid("a score request has no choices")
    _check_count("choices", len(choices), MAX_CHOICES)
    for i, choice in enumerate(choices):
        if not choice:
            raise invalid(f"choice {i} is empty")
    _check_joint(choices, prompt)


def _check_joint(texts: Sequence[str], prompt: pb.Prompt) -> None:
    last = prompt.segments[-1].text.text if prompt.segments else ""
    n_chars = sum(map(len, texts)) + len(texts) * len(last)
    what = "characters to tokenize (each text with the run it follows)"
    _check_count(what, n_chars, MAX_JOINT_CHARS)


def check_sampling(s: pb.Sampling, vocab_size: int) -> None:
    """Raises `RequestError` for a parameter out of bounds."""
    if s.min_tokens > s.max_tokens:
        message = f"min_tokens ({s.min_tokens}) is larger than max_tokens ({s.max_tokens})"
        raise invalid(message, "min_tokens")
    for name, allowed in RANGES.items():
        _check_range(name, getattr(s, name), allowed, name)
    if problem := problem_with_top_k(s.top_k):
        raise invalid(problem, "top_k")
    _check_count("stop strings", len(s.stop), MAX_STOP_STRINGS, "stop")
    for stop in s.stop:
        if not stop:
            raise invalid("a stop string is empty", "stop")
        _check_count("bytes in a stop string", len(stop.encode()), MAX_STOP_BYTES, "stop")
    _check_count("stop token ids", len(s.stop_token_ids), MAX_STOP_IDS, "stop_token_ids")
    _check_ids("stop_token_ids", s.stop_token_ids, vocab_size)
    _check_count("logit biases", len(s.logit_bias), MAX_BIASES, "logit_bias")
    _check_ids("logit_bias", [each.id for each in s.logit_bias], vocab_size)
    for each in s.logit_bias:
        _check_range("a logit bias", each.bias, BIAS, "logit_bias")
    _check_count("top_logprobs_num", s.logprobs.top, MAX_TOP_LOGPROBS, "top_logprobs_num")
    if s.heal and s.logprobs.stream:
        raise invalid("logprobs.stream and heal are both given; leave one of them out")
    if s.stop_regex and s.WhichOneof("constraint"):
        raise invalid(
            "stop_regex and a constraint are both given; where the text may end is for the "
            "constraint to say",
            "stop_regex",
        )


def _check_count(what: str, found: int, limit: int, param: str = "") -> None:
    if found > limit:
        raise invalid(f"{what}: {found}, of at most {limit}", param)


def _check_range(name: str, value: float, allowed: Range, param: str) -> None:
    if problem := problem_with(name, value, allowed):
        raise invalid(problem, param)
