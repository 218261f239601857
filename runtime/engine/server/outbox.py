"""The unsent replies of a session, already in the frames to be sent.

A reply is made inside its frame, because protobuf copies a message that is added to another.
"""

from __future__ import annotations

from sgc.proto import engine_pb2 as pb

MAX_FRAME_REPLIES = 512
MAX_FRAME_BYTES = 2 * 1024 * 1024


class Outbox:
    def __init__(self) -> None:
        self._frames: list[pb.ServerFrame] = []
        self._unsent_delta: dict[int, pb.Reply] = {}
        self._n_replies = 0

    def __len__(self) -> int:
        """The number of replies."""
        return self._n_replies

    def add(self, request_id: int) -> pb.Reply:
        """A new reply, which the caller must fill in at once."""
        self._unsent_delta.pop(request_id, None)
        if self._n_replies % MAX_FRAME_REPLIES == 0:
            self._frames.append(pb.ServerFrame())
        self._n_replies += 1
        return self._frames[-1].replies.add(id=request_id)

    def add_delta(self, request_id: int, text: str) -> pb.Delta:
        """Adds text of a stream; it joins the request's last unsent reply if that is text too.
        Returns what is to be sent with it, to which log-probabilities may be added at once."""
        unsent = self._unsent_delta.get(request_id)
        if unsent is not None:
            unsent.delta.text += text
            return unsent.delta
        reply = self.add(request_id)
        reply.delta.text = text
        self._unsent_delta[request_id] = reply
        return reply.delta

    def drain(self) -> list[pb.ServerFrame]:
        """Removes and returns all replies, in frames of bounded size."""
        frames, self._frames = self._frames, []
        self._unsent_delta.clear()
        self._n_replies = 0
        return [part for frame in frames for part in _bounded(frame)]


def _bounded(frame: pb.ServerFrame) -> list[pb.ServerFrame]:
    """The frame, split if it is too large."""
    if frame.ByteSize() <= MAX_FRAME_BYTES:
        return [frame]
    parts: list[pb.ServerFrame] = []
    size = 0
    for reply in frame.replies:
        n_bytes = reply.ByteSize()
        if not parts or size + n_bytes > MAX_FRAME_BYTES:
            parts.append(pb.ServerFrame())
            size = 0
        parts[-1].replies.append(reply)
        size += n_bytes
    return parts
