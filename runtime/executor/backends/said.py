"""A reply's text after a prompt, and how much of it answers a later generation.

It makes no requests: `speculation.py` does, and keeps the replies.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from sgc.runtime.executor.backends.stops import first_stop
from sgc.runtime.executor.interface.backend import (
    FinishReason,
    Generated,
    MediaRun,
    Prompt,
    Sampling,
    TextRun,
    Usage,
)

# Parameters that decide where a text is cut, not what the model generates.
_CUTS = frozenset({"max_tokens", "stop", "seed", "own_seed", "logprobs", "is_repeatable"})


@dataclass(frozen=True, slots=True)
class Said:
    """The text of a reply after a prompt. is_ended: the model ended the text itself.

    ends: where each token ends, in characters; None if unknown. n_asked: the requested max_tokens;
    n_most: the most tokens that it has. is_whole_message: the model cannot continue a begun
    message, so this reply is all that can be known of the message.
    """

    before: str
    media: tuple[MediaRun, ...]
    text: str
    is_ended: bool
    ends: tuple[int, ...] | None
    sampling: Sampling
    n_asked: int
    n_most: int
    is_whole_message: bool = False

    def appended(self, prompt: Prompt) -> str | None:
        """What a longer prompt has appended; None if the reply continues differently."""
        text, media = flat(prompt)
        if media != self.media or not text.startswith(self.before):
            return None
        appended = text[len(self.before) :]
        return appended if self.text.startswith(appended) else None

    def is_border(self, at: int) -> bool:
        """Whether a token ends at `at`: a prompt that ends inside a token is tokenized differently.
        If token ends are unknown, only the position before a single space is safe, as a space
        begins a token in nearly all vocabularies.
        """
        if at == 0 or self.is_whole_message:
            return True
        if self.ends is not None:
            return at in self.ends
        return self.text[at : at + 1] == " " and not self.text[at - 1].isspace()

    def n_tokens(self, start: int, end: int) -> int:
        """The most tokens of a part of the text; a token per byte if token ends are unknown."""
        if self.ends is None:
            n_bytes = len(self.text[start:end].encode("utf-8", "surrogatepass"))
            return min(n_bytes, self.n_most)
        return sum(start < at < end for at in self.ends) + (end > start)

    def answer(self, start: int, sampling: Sampling) -> Generated | None:
        """The generation that the reply answers from `start` on, if it holds all of it."""
        rest = self.text[start:]
        found = first_stop(rest, sampling.stop)
        if found is None and not self._is_told_whole(start, sampling):
            return self._shortened(start, sampling)
        end, matched = found or (len(rest), None)
        # The token in which the stop string ends counts too, as in an ordinary request.
        until = start + end + len(matched or "")
        is_short = self.n_tokens(start, until) <= sampling.max_tokens
        if not is_short and not (self.is_whole_message and self.ends is None):
            return self._shortened(start, sampling)
        is_cut = matched is None and not self.is_ended
        reason = FinishReason.LENGTH if is_cut else FinishReason.STOP
        return _given(rest[:end], reason, matched)

    def _is_told_whole(self, start: int, sampling: Sampling) -> bool:
        """Whether a generation without a stop string would end where the reply ends."""
        if self.is_whole_message:
            return self.is_ended or start < len(self.text)
        if self.is_ended:
            return start == 0 or start < len(self.text)
        return start == 0 and self.n_asked == sampling.max_tokens

    def _shortened(self, start: int, sampling: Sampling) -> Generated | None:
        """The generation cut after max_tokens tokens, if it is known where they end."""
        if self.ends is None or (start and not self.is_whole_message):
            return None
        ends = [end for end in self.ends if end > start]
        if not 0 < sampling.max_tokens <= len(ends):
            return None
        text = self.text[start : ends[sampling.max_tokens - 1]]
        return _given(text, FinishReason.LENGTH, None)


def said_by(reply: Generated, prompt: Prompt, sampling: Sampling, n_asked: int) -> Said:
    """sampling: of the needed generation; n_asked: the requested max_tokens."""
    text, media = flat(prompt)
    return Said(
        text, media, reply.text, reply.finish_reason is FinishReason.STOP, _ends(reply), sampling,
        n_asked, min(n_asked, reply.usage.completion_tokens or n_asked),
    )  # fmt: skip


def whole_message(said: Said, begun: str) -> Said | None:
    """The reply as a whole message that must begin with `begun`; None if it does not.

    White space at the beginning of a message is ignored, because APIs strip it.
    """
    if not said.text.startswith(begun):
        blank = begun[: len(begun) - len(begun.lstrip())]
        if not said.text.startswith(begun[len(blank) :]):
            return None
        ends = None if said.ends is None else tuple(end + len(blank) for end in said.ends)
        said = replace(said, text=blank + said.text, ends=ends)
    return replace(said, is_whole_message=True)


def flat(prompt: Prompt) -> tuple[str, tuple[MediaRun, ...]]:
    media = tuple(part for part in prompt if isinstance(part, MediaRun))
    return "".join("\0" if isinstance(part, MediaRun) else part.text for part in prompt), media


def begun_message(prompt: Prompt) -> tuple[Prompt, str] | None:
    """The prompt up to the start of its last message, and that message's text so far; None if no
    message has begun, as in a prompt without roles, which is always a whole message.
    """
    for index in reversed(range(len(prompt))):
        run = prompt[index]
        if not isinstance(run, TextRun) or not run.roles:
            continue
        mark = run.roles[-1]
        if not mark.is_begin:
            return None
        literal = tuple((start, min(end, mark.end)) for start, end in run.literal)
        head = replace(
            run,
            text=run.text[: mark.end],
            literal=tuple(span for span in literal if span[0] < span[1]),
            cache_marks=tuple(each for each in run.cache_marks if each.at <= mark.end),
        )
        return (*prompt[:index], head), run.text[mark.end :] + flat(prompt[index + 1 :])[0]
    return None


def bindings(sampling: Sampling) -> list[str]:
    """The parameters that constrain more than where a text ends."""
    bound = ("regex", "json_schema", "ebnf", "logprobs")
    flags = ("stop_regex", "stop_token_ids", "heal", "min_tokens", "ignore_eos")
    found = [name for name in bound if getattr(sampling, name) is not None]
    return found + [name for name in flags if getattr(sampling, name)]


def difference(one: Sampling, other: Sampling) -> str:
    """A parameter that changes the text and differs; "" if there is none."""
    names = [field.name for field in fields(Sampling) if field.name not in _CUTS]
    return next((name for name in names if getattr(one, name) != getattr(other, name)), "")


def _ends(reply: Generated) -> tuple[int, ...] | None:
    """Where a reply's tokens end in its text, if their texts are known and add up to it."""
    if reply.logprobs is None or not reply.logprobs.output:
        return None
    texts = [text for _, _, text in reply.logprobs.output]
    ends, length = [], 0
    for text in texts:
        if text is None:
            return None
        length += len(text)
        ends.append(length)
    whole = "".join(text or "" for text in texts)
    return tuple(ends) if whole.startswith(reply.text) else None


def _given(text: str, reason: FinishReason, matched: str | None) -> Generated:
    return Generated(text, (), (), text, reason, matched, Usage())
