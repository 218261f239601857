"""A program as a model of OpenAI's chat completions: the reply is its return value, else its text.

The reply is streamed as it is generated if the graph tells which texts it consists of; else it is
sent as one text at the run's end.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from sgc.errors import SgcError
from sgc.ir.analysis.dependencies import successors
from sgc.ir.graph import Block, Graph, Lit, Ref
from sgc.runtime.engine.http.errors import Json
from sgc.runtime.engine.http.render import dumps
from sgc.runtime.executor.run.record import RunResult
from sgc.services.programs import Shows, Text
from sgc.services.replies import as_json, usage


def texts_of_reply(graph: Graph) -> Shows:
    """Which texts, by their node and their stream's path, are the reply when put together.

    Those of the program's stream, if it returns nothing on every path; those of one generation that
    is the value returned and runs once at most. No text of other programs.
    """
    returned = {node.get("value") for node in graph.nodes() if node.op == "return"}
    if returned == {Lit(None)}:
        return lambda node, path: path == graph.name
    value = returned.pop() if len(returned) == 1 else None
    if isinstance(value, Ref):
        for block in graph.blocks:
            for made in block.nodes:
                if made.op == "gen" and made.results[-1].name == value.name:
                    is_plain = made.get("hidden") == Lit(False) and not _comes_again(block, graph)
                    return lambda node, path: is_plain and node is made
    return lambda node, path: False


def _comes_again(block: Block, graph: Graph) -> bool:
    """Whether a run may reach a block again."""
    blocks, seen = {each.name: each for each in graph.blocks}, set[str]()
    ahead = [*successors(block.nodes[-1])]
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead.extend(successors(blocks[name].nodes[-1]))
    return block.name in seen


class Chat:
    """A run as a chat completion."""

    def __init__(self, chat_id: str, model: str, created: int) -> None:
        self._common = {"id": chat_id, "created": created, "model": model}

    def whole(self, result: RunResult) -> Json:
        message = {"role": "assistant", "content": _content(result)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {
            **self._common, "object": "chat.completion", "choices": [choice],
            "usage": usage(result),
        }  # fmt: skip

    async def chunks(
        self, events: AsyncIterator[Text | RunResult], include_usage: bool
    ) -> AsyncGenerator[str]:
        """events: texts of the reply as they come, and the run's result."""
        shown = ""
        role = {"role": "assistant"}
        async for event in events:
            text = event.text if isinstance(event, Text) else _rest(event, shown)
            if text or role:
                yield self._chunk({**role, "content": text})
            shown, role = shown + text, {}
            if isinstance(event, RunResult):
                yield self._chunk({}, "stop")
                if include_usage:
                    yield dumps(self._with([], usage(event)))

    def _chunk(self, delta: Json, reason: str | None = None) -> str:
        return dumps(self._with([{"index": 0, "delta": delta, "finish_reason": reason}]))

    def _with(self, choices: list[Json], usage: Json | None = None) -> Json:
        found = {**self._common, "object": "chat.completion.chunk", "choices": choices}
        return found if usage is None else {**found, "usage": usage}


def _content(result: RunResult) -> str:
    value = result.text() if result.ret_value is None else result.ret_value
    written = as_json(value)
    return value if isinstance(value, str) else written


def _rest(result: RunResult, shown: str) -> str:
    """The unsent part of the reply. Raises SgcError if the sent text is not its beginning."""
    content = _content(result)
    if not content.startswith(shown):
        raise SgcError("the program's reply does not begin with what was streamed of it")
    return content[len(shown) :]
