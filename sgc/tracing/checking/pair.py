"""The two runs of a trial, compiled and interpreted, on the same scripted replies and tools."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

from sgc.core.places import innermost_user_line
from sgc.core.session import replay_overlays
from sgc.errors import ProgramError, ProgramRaised, SgcError
from sgc.interpreter.calls import finished, start_eager
from sgc.ir.analysis.host_calls import pieces_in_python
from sgc.ir.graph import Graph
from sgc.lang.definition import Definition
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.interface.backend import Prompt, Sampling
from sgc.runtime.executor.interface.tools import Shown, ToolImpl
from sgc.runtime.executor.run.loop import Loop
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult
from sgc.tracing.body import copied
from sgc.tracing.checking.capturing import shown_to
from sgc.tracing.checking.rounds import Draw
from sgc.tracing.checking.scripted_replies import obeying
from sgc.tracing.checking.scripted_tools import ScriptedTools
from sgc.tracing.checking.trials import Trial, Walk
from sgc.tracing.failing import message_of
from sgc.tracing.object_arguments import as_objects, classes_of
from sgc.tracing.operators.code.in_python import Scripted, scripting
from sgc.tracing.overlays.namespace import Overlays
from sgc.tracing.pieces.in_python import PiecesInPython
from sgc.tracing.pieces.made import Sites

MAX_ASKED = 300  # requests of one run: a loop may wait for a reply that never comes


class Ended(ProgramError):
    """Ends a run of the check."""


class Recorded(ScriptedBackend):
    """A scripted backend whose replies depend on the end of the prompt only, so that a request
    costs the same for any prompt.

    asked: how often each request was made. shown: what the program showed, and where. returned:
    what its Python has returned, if it is interpreted.
    """

    def __init__(self, trial: Trial, noted: list[tuple[int, str]] | None = None) -> None:
        super().__init__(self._reply_to, self._preferred)
        self.trial, self._noted = trial, noted
        self.asked: Counter[str] = Counter()
        self.shown: list[Shown] = []
        self.returned: Any = None

    def _reply_to(self, prompt: Prompt, sampling: Sampling) -> str:
        draw, n_chars = self._drawn(prompt, sampling.max_tokens)
        key = f"{draw.number}/{_end(prompt)}/{sampling.seed}"
        reply = obeying(sampling, _index(key), draw.texts)
        if self._noted is not None:
            self._noted.append((n_chars, reply))
        return reply

    def _preferred(self, prompt: Prompt, choices: tuple[str, ...]) -> int:
        draw, n_chars = self._drawn(prompt, choices)
        if self._noted is not None:
            self._noted.append((n_chars, ""))
        return _index(f"{draw.number}/{_end(prompt)}/{choices!r}") % len(choices)

    def _drawn(self, prompt: Prompt, what: object) -> tuple[Draw, int]:
        """The draw for the reply to a request, and the number of characters of its prompt."""
        if self.asked.total() >= MAX_ASKED:
            raise Ended(f"the check ends a run after {MAX_ASKED} requests")
        text = "".join(segment.text for segment in prompt)
        self.asked[f"{len(text)}/{_index(text)}/{what!r}"] += 1
        return self.trial.draw_for(len(text)), len(text)


def _end(prompt: Prompt) -> str:
    return "".join(segment.text[-200:] for segment in prompt[-3:]) + f"/{len(prompt)}"


def _index(key: str) -> int:
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def run_compiled(
    graph: Graph, backend: Recorded, arguments: Mapping[str, Any], loop: Loop, walk: Walk
) -> RunResult:
    pieces = {node.text("name"): node for node in pieces_in_python(graph)}
    scripted = _tools(backend.trial)
    tools = [
        ToolImpl(name, node.text("source"), scripted.piece(name, node.results[0].type))
        for name, node in pieces.items()
    ]
    options = _options(backend)
    return loop.run(run_graph(graph, backend, arguments, options, tools=tools, on_block=walk.note))


def _tools(trial: Trial) -> ScriptedTools:
    return ScriptedTools(trial.first, trial.tools, trial.keys)


def _options(backend: Recorded) -> RunOptions:
    """Options for both runs. Every tool is scripted, as a check must not call the program's own.
    Joins are ordered, as timing differs between the two runs.
    """
    seed, tools = backend.trial.first.number, _tools(backend.trial)
    return RunOptions(seed=seed, allow_tools=tools, ordered_joins=True,
                      on_show=backend.shown.append)  # fmt: skip


def run_interpreted(
    function: Definition,
    backend: Recorded,
    bound: Mapping[str, Any],
    arguments: Mapping[str, Any],
    schemas: Mapping[str, Any],
    in_python: PiecesInPython | None,
    loop: Loop,
) -> RunResult:
    """bound: arguments that are fixed in the graph; schemas: of the others."""
    classes = classes_of(function)
    arguments = {n: as_objects(v, schemas.get(n, {}), classes) for n, v in arguments.items()}
    given = function.signature.bind((), {**bound, **arguments})
    given = {name: copied(value) for name, value in given.items()}
    # The body is only checked: it runs on copies of the data that it reads, and prints nothing.
    overlays = Overlays(is_converting=False, sites=Sites(in_python=in_python))
    replaying, pieces = (
        replay_overlays.set(overlays),
        scripting.set(_scripted(backend.trial, in_python)),
    )
    try:
        with shown_to(backend.shown.append):
            state = start_eager(function, given, backend, _options(backend), loop)
        backend.returned = state.ret_value
        return finished(state)
    except SgcError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {message_of(error)}"
        raise ProgramRaised(message, where=innermost_user_line(error)) from error
    finally:
        replay_overlays.reset(replaying)
        scripting.reset(pieces)
        overlays.put_back_all()  # what is left to the interpreter may change objects outside


def _scripted(trial: Trial, in_python: PiecesInPython | None) -> Scripted | None:
    """The stand-in for pieces that run in Python, in an interpreted run."""
    if in_python is None:
        return None
    scripted = _tools(trial)

    def piece(key: str, values: tuple[Any, ...]) -> Any:
        found = in_python.found[key]
        return scripted.piece(found.impl.name, in_python.gives[key])(*values)

    return piece
