"""Renders conversations with a model's own chat template, in a child process that stays up.

The pieces of `template.py` are enough for plain conversations. Tools, calls, results and a
template's own switches need the template itself, which is not trusted: the child has bounds on time
and memory, and one that exceeds them is replaced. Run as a module, it is the child: a JSON text a
line comes in, and one goes out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import IO, Any

from sgc.runtime.engine.process import child, garbage
from sgc.runtime.engine.text.template import Message, ProbeError
from sgc.runtime.engine.text.template_child import TemplateSource, limit_self

WALL_LIMIT_S = 10.0  # of one conversation, the child's start included
CPU_LIMIT_S = 600  # of one child, which is replaced when it has used this up


class RenderError(Exception):
    """Why the template does not render a conversation."""


class Renderer:
    """Renders, one conversation at a time; any thread may ask. Starts its child when first used."""

    def __init__(self, template: TemplateSource, wall_limit_s: float = WALL_LIMIT_S) -> None:
        self._template = template
        self._limit_s = wall_limit_s
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Any] | None,
        add_generation_prompt: bool = True,
        more: Mapping[str, Any] | None = None,
    ) -> str:
        """The text, without the begin-of-sequence text; raises RenderError.

        more: further values for the template, such as `enable_thinking`.
        """
        asked = json.dumps([list(messages), add_generation_prompt, tools, dict(more or {})])
        with self._lock:
            answer = self._ask(asked.encode() + b"\n")
        if "error" in answer:
            raise RenderError(answer["error"])
        text: str = answer["text"]
        return text.removeprefix(self._template.bos)

    def close(self) -> None:
        """Ends the child; a conversation that is being rendered fails."""
        self._is_closed = True
        if self._child is not None:
            self._child.kill()

    def _ask(self, line: bytes) -> dict[str, Any]:
        process, first = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(self._limit_s, process.kill)
        timer.start()
        try:
            process.stdin.write(first + line)
            process.stdin.flush()
            found: dict[str, Any] = json.loads(process.stdout.readline())
            return found
        except (OSError, ValueError) as error:
            self._end(process)
            raise RenderError("the template exceeded its limits of time or memory") from error
        finally:
            timer.cancel()

    def _running(self) -> tuple[subprocess.Popen[bytes], bytes]:
        """The child, and what it must be told first."""
        if self._is_closed:
            raise RenderError("the engine is stopping")
        if self._child is not None:
            if self._child.poll() is None:
                return self._child, b""
            self._end(self._child)
        process = self._child = subprocess.Popen(
            child.python_module(__name__),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return process, json.dumps(asdict(self._template)).encode() + b"\n"

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        self._child = None
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                _close(pipe)


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except OSError:
        return  # what it still held cannot be written: the child has ended


def main() -> None:
    from sgc.runtime.engine.text.template_render import renderer

    garbage.collect()
    template = TemplateSource(**json.loads(sys.stdin.readline()))
    limit_self(CPU_LIMIT_S)
    render = renderer(template.source, template.tokens)
    for line in sys.stdin:
        answer: dict[str, Any]
        try:
            messages, generate, tools, more = json.loads(line)
            answer = {"text": render(messages, generate, tools, more)}
        except (ProbeError, MemoryError, RecursionError) as error:
            answer = {"error": str(error)[:500] or type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
