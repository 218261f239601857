"""Stream states at run time: immutable prompts that share their prefixes.

A state is a link to the previous state and the piece appended since, so a fork costs nothing and
every state can be read at any time. Nothing here talks to a backend.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any

from sgc.runtime.executor.interface.backend import (
    CacheMark,
    Joined,
    MediaRun,
    Prompt,
    RoleMark,
    TextRun,
    TokenRun,
)
from sgc.runtime.executor.interface.media import Media


class PieceKind(Enum):
    CONSTANT = "constant"  # the program's own text
    VALUE = "value"  # an argument or a computed text
    CHOSEN = "chosen"  # the choice of a select
    GENERATED = "generated"  # sampled tokens, with their text
    ROLE_BEGIN = "role_begin"  # the text of a chat template before a role's content
    ROLE_END = "role_end"
    MEDIA = "media"  # an image or a video, and its text in the prompt
    JOINED = "joined"  # texts of other streams, each as it was computed there
    MARK = "mark"  # no text: a provider keeps the prompt up to here


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece appended to a stream.

    role: of the two role kinds; ids: of GENERATED; media: of MEDIA; ttl: of MARK; part: of JOINED,
    the other stream's pieces; goes_on: whether it belongs to the join that the piece before it
    begins or goes on with.
    """

    kind: PieceKind
    text: str
    role: str = ""
    ids: tuple[int, ...] = ()
    media: Media | None = None
    ttl: str = ""
    part: tuple[Piece, ...] | None = None
    goes_on: bool = False

    @property
    def is_trusted(self) -> bool:
        """Whether special tokens in its text stay special."""
        return self.kind not in (PieceKind.VALUE, PieceKind.CHOSEN, PieceKind.GENERATED)


@dataclass(frozen=True, slots=True, eq=False)
class StreamState:
    """One state of a stream.

    path: its place among calls and forks, unique in a run; n_draws, n_forks: the number of sampling
    ops and forks in this stream so far; roles: of the first two messages begun; gate: done once the
    trunk is committed; first: the prompt of the stream's first draw since it began or forked.
    """

    path: str
    prev: StreamState | None = None
    piece: Piece | None = None
    n_draws: int = 0
    n_forks: int = 0
    roles: tuple[str, ...] = ()
    gate: asyncio.Future[None] | None = None
    closed: Prompt | None = None  # the prompt up to here, if later pieces cannot change its runs
    first: Prompt | None = None

    def append(self, piece: Piece) -> StreamState:
        """The state after `piece`."""
        roles = self.roles
        if piece.kind is PieceKind.ROLE_BEGIN:
            roles = (*roles, piece.role)[:2]
        return StreamState(
            self.path, self, piece, self.n_draws, self.n_forks, roles, self.gate, None, self.first
        )

    def rewound(self, start: StreamState, pieces: list[Piece]) -> StreamState:
        """Returns the state in which `pieces` replace all that was appended since `start`."""
        state = replace(
            self, prev=start, piece=None, roles=start.roles, gate=start.gate, closed=start.closed,
            first=start.first,
        )  # fmt: skip
        for piece in pieces:
            state = state.append(piece)
        return state

    def draw(
        self, pieces: list[Piece], prompt: Prompt, special: re.Pattern[str] | None
    ) -> StreamState:
        """Returns the state after a sampling op, requested with `prompt`, that appended `pieces`.

        Its gate has been passed. Generated tokens close the prompt before them.
        """
        roles, n_draws, first = self.roles, self.n_draws + 1, self.first
        first = prompt if first is None else first
        state = StreamState(self.path, self, None, n_draws, self.n_forks, roles, None, None, first)
        for piece in pieces:
            closed = None
            if piece.ids:
                # Text before the tokens comes from a healed border: it joins the last text run of
                # the request, where it may complete a special token.
                before = prompt if state.piece is None else state.prompt(special)
                closed = (*before, TokenRun(piece.ids, piece.text))
            state = StreamState(
                self.path, state, piece, n_draws, self.n_forks, roles, None, closed, first
            )
        return state

    def prompt(self, special: re.Pattern[str] | None) -> Prompt:
        """Returns maximal text runs and generated ids; the closed part of the prompt is reused."""
        found: list[Piece] = []
        state: StreamState | None = self
        while state is not None and state.closed is None:
            if state.piece is not None:
                found.append(state.piece)
            state = state.prev
        found.reverse()
        closed = () if state is None or state.closed is None else state.closed
        return closed + make_prompt(found, special)

    def fork(self, n: int, gate: asyncio.Future[None] | None) -> tuple[StreamState, ...]:
        """Returns the trunk and n children; all wait for `gate` before their first request."""
        n_forks = self.n_forks + 1
        trunk = replace(
            self, prev=self, piece=None, n_forks=n_forks, gate=gate, closed=None, first=None
        )
        children = (
            StreamState(f"{self.path}/:{self.n_forks}.{i}", self, None, 0, 0, self.roles, gate)
            for i in range(n)
        )
        return (trunk, *children)

    def open_fork(self, gate: asyncio.Future[None] | None) -> tuple[StreamState, StreamState]:
        """Returns the trunk, and what `child` makes the children of, which is no stream itself."""
        trunk, first = self.fork(1, gate)
        return trunk, replace(first, path=f"{self.path}/:{self.n_forks}")

    def child(self) -> tuple[StreamState, StreamState]:
        """Returns the open fork, whose `n_forks` counts its children, and the next child."""
        path = f"{self.path}.{self.n_forks}"
        return replace(self, n_forks=self.n_forks + 1), replace(self, path=path, n_forks=0)

    def pieces(self, since: StreamState | None = None) -> list[Piece]:
        """The pieces in order: all, or those after the earlier state `since`; of joined texts,
        their own."""
        return [*_flat(self.appended(since))]

    def appended(self, since: StreamState | None = None) -> list[Piece]:
        """Returns the appended pieces in order: all, or those after the earlier state `since`."""
        found: list[Piece] = []
        state: StreamState | None = self
        while state is not None and state is not since:
            if state.piece is not None:
                found.append(state.piece)
            state = state.prev
        found.reverse()
        return found

    def text(self, since: StreamState | None = None) -> str:
        return "".join(piece.text for piece in self.pieces(since))


def _flat(pieces: Iterable[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        if piece.part is None:
            yield piece
        else:
            yield from _flat(piece.part)


def make_prompt(pieces: list[Piece], special: re.Pattern[str] | None) -> Prompt:
    """Returns maximal text runs and generated ids, so that how text was cut cannot matter."""
    segments: list[TextRun | TokenRun | MediaRun | Joined] = []
    run: list[Piece] = []
    for piece in pieces:
        if piece.ids:
            segments.extend(_close_run(run, special))
            segments.append(TokenRun(piece.ids, piece.text))
            run = []
        elif piece.part is not None:
            segments.extend(_close_run(run, special))
            part, last = make_prompt([*piece.part], special), segments[-1] if segments else None
            if piece.goes_on and isinstance(last, Joined) and not run:
                segments[-1] = Joined((*last.parts, part))
            else:
                segments.append(Joined((part,)))
            run = []
        elif piece.media is not None:
            segments.extend(_close_run(run, special))
            segments.append(MediaRun(piece.media, piece.text))
            run = []
        elif piece.text or piece.role or piece.kind is PieceKind.MARK:  # a role may be empty
            run.append(piece)
    segments.extend(_close_run(run, special))
    return tuple(segments)


def _close_run(run: list[Piece], special: re.Pattern[str] | None) -> Iterator[TextRun]:
    """Yields the text run of the pieces, if not empty; in one pass, since each request needs it."""
    text = "".join([piece.text for piece in run])
    if not text:
        return
    roles, caches, values = list[RoleMark](), list[CacheMark](), list[tuple[int, int]]()
    end = 0
    for piece in run:
        start, end = end, end + len(piece.text)
        kind = piece.kind
        if piece.role:
            roles.append(RoleMark(start, end, piece.role, kind is PieceKind.ROLE_BEGIN))
        elif kind is PieceKind.MARK:
            caches.append(CacheMark(start, piece.ttl))
        elif not piece.is_trusted:
            values.append((start, end))
    yield TextRun(text, _literal_spans(text, values, special), tuple(roles), tuple(caches))


def _literal_spans(
    text: str, values: list[tuple[int, int]], special: re.Pattern[str] | None
) -> tuple[tuple[int, int], ...]:
    """Returns the spans of special tokens that overlap a value, and so must be plain text."""
    if special is None or not values or special.search(text) is None:
        return ()
    found = [match.span() for match in special.finditer(text)]
    return tuple(
        (start, end)
        for start, end in found
        if any(start < value_end and value_start < end for value_start, value_end in values)
    )


@lru_cache  # every run calls it
def special_pattern(special_tokens: tuple[str, ...]) -> re.Pattern[str] | None:
    """Matches any special token, the longest first; None if there are none."""
    if not special_tokens:
        return None
    longest_first = sorted(special_tokens, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)))


def messages(pieces: list[Piece]) -> list[dict[str, Any]]:
    """Returns a chat as role and content pairs, in OpenAI's form.

    Text outside roles and a message that has not ended are left out. As in SGLang, white space
    before a message's text is left out too, and with images the content is a list of the text and
    the images, whose MIME type is always JPEG.
    """
    found: list[dict[str, Any]] = []
    inside: list[Piece] | None = None
    for piece in pieces:
        if piece.kind is PieceKind.ROLE_BEGIN:
            inside = []
        elif piece.kind is PieceKind.ROLE_END and inside is not None:
            found.append({"role": piece.role, "content": _content(inside)})
            inside = None
        elif inside is not None:
            inside.append(piece)
    return found


def _content(pieces: list[Piece]) -> Any:
    text = "".join(piece.text for piece in pieces).lstrip()
    images = [piece.media for piece in pieces if piece.media is not None]
    if not images:
        return text
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    for image in images:
        url = f"data:image/jpeg;base64,{image.base64()}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


async def pass_gate(state: StreamState) -> None:
    if state.gate is not None:
        await asyncio.shield(state.gate)
