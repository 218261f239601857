"""Renders a conversation as a prompt with the model's own chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sgc.runtime.engine.http.errors import Json, bad
from sgc.runtime.engine.http.turns.masks import Masks
from sgc.runtime.engine.text.template_worker import Renderer, RenderError

_END = "\U000f0f02"  # marks the end of the message that the reply continues


def rendered(
    renderer: Renderer,
    messages: Sequence[Json],
    tools: Sequence[Json],
    more: Mapping[str, Any],
    specials: Sequence[str],
    continues_last: bool = False,
) -> tuple[str, list[tuple[int, int]]]:
    """The text, and the spans in which special tokens are plain text; raises HttpError.

    more: the client's values for the template. continues_last: whether the reply continues the last
    message.
    """
    masks = Masks([*specials, _END])
    hidden = masks.hide(list(messages))
    if continues_last:
        hidden[-1]["content"] += _END
    try:
        text = renderer.render(
            hidden, masks.hide(list(tools)) or None, not continues_last, masks.hide(dict(more))
        )
    except RenderError as error:
        raise bad(
            f"the model's chat template refuses these messages: {error}", "messages"
        ) from error
    if continues_last:
        text, found, _ = text.partition(_END)
        if not found:
            raise bad("this chat template cannot go on with a message", "continue_final_message")
    return masks.show(text)
