"""Collects the replies of steps and sends them, several steps' in one message if steps are short.

Sending wakes the server, which takes as long as a short step does. So what is not urgent waits for
up to `HOLD_S` after the last message; the end of a request never waits.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.requests.request import EngineError, Update
from sgc.runtime.engine.worker.wire import Channel, add_logprobs, add_update, bounded

HOLD_S = 0.002


class Outgoing:
    """message: what the next `send` sends."""

    def __init__(self, channel: Channel, clock: Callable[[], float] = time.perf_counter) -> None:
        self.message = wpb.StepOutput()
        self._channel = channel
        self._clock = clock
        self._sent_at = -HOLD_S
        self._is_urgent = False
        self._growing: dict[int, wpb.Update] = {}  # requests whose next tokens join an update

    def add(self, update: Update) -> None:
        """Adds an update; if it cannot be encoded, only its request fails."""
        growing = self._growing.get(update.id)
        if growing is not None and not update.final:
            growing.new_ids.extend(update.new_ids)
            add_logprobs(growing, update)
            return
        n = len(self.message.updates)
        try:
            add_update(self.message, update)
        except (ValueError, TypeError) as error:
            traceback.print_exc()
            del self.message.updates[n:]
            reason = f"the reply cannot be sent: {error}"
            failed = EngineError(pb.ERROR_CODE_INTERNAL, reason)
            update = Update(update.id, final=True, error=failed)
            add_update(self.message, update)
        if update.final:
            self._is_urgent = True
            self._growing.pop(update.id, None)
        else:
            self._growing[update.id] = self.message.updates[n]

    def drop(self, request_id: int) -> None:
        """Forgets what waits for a cancelled request."""
        if self._growing.pop(request_id, None) is None:
            return
        updates = self.message.updates
        for at in reversed(range(len(updates))):
            if updates[at].id == request_id:
                del updates[at]

    def send(self, *, is_idle: bool) -> None:
        """Sends what is there, unless it can wait. is_idle: whether no step follows."""
        message = self.message
        is_urgent = self._is_urgent or is_idle or message.flushed or message.HasField("stats")
        now = self._clock()
        if not is_urgent and now - self._sent_at < HOLD_S:
            return
        self.message, self._is_urgent, self._growing = wpb.StepOutput(), False, {}
        for part in bounded(message):
            self._channel.send(part)
            self._sent_at = now
