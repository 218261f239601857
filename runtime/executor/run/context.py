"""The part of a run that does not change: its program and place, its options, its backend."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sgc.ir.graph import Node
from sgc.runtime.executor.functions.sharing import Sharing
from sgc.runtime.executor.interface.backend import Backend, Prompt
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.run.map_places import Called
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.stream import StreamState, special_pattern

# Processes that one engine cannot tell apart begin at different numbers.
_NUMBERS = itertools.count(int.from_bytes(os.urandom(7), "big"))

# Called with (node, stream path, text) for new text of a stream, in order, never retracted.
OnText = Callable[[Node, str, str], None]
# Called with (program, block, next block) as a run goes on; the first block follows "".
OnBlock = Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True)
class Context:
    """The constant part of a run.

    row: the key of the run's row; special: matches the model's special tokens; called: the programs
    that maps call; sharing: which values share mutable objects, None if no code changes values;
    base: the path of a mapped call in its run, "" for other runs; number: of the run
    (`hints/ahead.py`).
    """

    program: str
    row: str
    backend: Backend
    capabilities: Capabilities
    options: RunOptions
    on_text: OnText | None
    special: re.Pattern[str] | None
    called: Called
    sharing: Sharing | None = None
    on_block: OnBlock | None = None
    base: str = ""
    number: int = field(default_factory=lambda: next(_NUMBERS))

    @staticmethod
    def of(
        program: str,
        backend: Backend,
        capabilities: Capabilities,
        options: RunOptions,
        on_text: OnText | None = None,
        row: str | None = None,
        called: Called = Called(),  # noqa: B008  # it is frozen
        sharing: Sharing | None = None,
        on_block: OnBlock | None = None,
    ) -> Context:
        """Returns a run's context. row: in place of `options.row`."""
        row = options.row if row is None else row
        special = special_pattern(capabilities.special_tokens)
        return Context(
            program,
            row,
            backend,
            capabilities,
            options,
            on_text,
            special,
            called,
            sharing,
            on_block,
        )

    def part(self, program: str, base: str) -> Context:
        """Returns the context of a mapped call."""
        return replace(self, program=program, base=base)

    def placed(self, path: str) -> str:
        """Returns a path of this run as a path in the whole run, of which it may be a part."""
        return self.base + path.removeprefix(self.program) if self.base else path

    def prompt(self, state: StreamState) -> Prompt:
        return state.prompt(self.special)
