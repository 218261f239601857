"""Prints a run's text, as it appears or at the end, its result as JSON, and its summary."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sgc.cli.output.colours import are_shown_on, generated, role
from sgc.cli.output.dialogue import GENERATED, dialogue
from sgc.errors import SgcError, UsageError, counted
from sgc.ir.graph import Node
from sgc.runs.jobs.records import dumped
from sgc.runtime.executor.run.record import Request, RunResult


def refuse_input(path: Path, option: str, read: Iterable[Path]) -> None:
    """Raises UsageError if what is written would overwrite a file that is read."""
    for each in read:
        if each.exists() and path.exists() and path.samefile(each):
            raise UsageError(
                f"{option} {path} would overwrite the input {each}", hint="name another file"
            )


def check_writable(path: Path, option: str, read: Iterable[Path] = ()) -> None:
    """Raises UsageError, before the run, if a file cannot be written, or is one that is read. A
    file that is not there is not there afterwards either, as the run may fail."""
    refuse_input(path, option, read)
    is_new = not path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
        if is_new:
            path.unlink()
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror}") from error


def write_result(path: Path, option: str, text: str) -> None:
    """Raises SgcError, which names the option, if the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SgcError(f"{option} {path}: {error.strerror}") from error


class StreamPrinter:
    """Writes the main stream's text as it appears, with roles in place of the chat template's texts
    around them. A provider's messages have no template, and so no roles here.
    """

    def __init__(self, main: str, out: Any) -> None:
        self._main = main
        self._out = out
        self._is_coloured = are_shown_on(out)
        self._last: Node | None = None
        self._is_fresh = False  # nothing of the message is written yet
        self._broken: BrokenPipeError | None = None

    def show(self, node: Node, path: str, text: str) -> None:
        """Called by the run; a broken pipe is raised by `end`, as it is not the program's error."""
        if path == self._main and self._broken is None:
            try:
                self._out.write(self._shown(node, text))
                self._out.flush()
            except BrokenPipeError as error:
                self._broken = error

    def _shown(self, node: Node, text: str) -> str:
        before, self._last = self._last, node
        if node.op == "role_end":
            return ""
        if node.op == "role_begin":
            if before is node:  # a template may begin a message with several texts
                return ""
            self._is_fresh = True
            name = node.text("role") + ":"
            return ("\n\n" if before is not None else "") + f"{self._in(role, name)} "
        if self._is_fresh:
            text = text.lstrip()
            self._is_fresh = not text
        return self._in(generated, text) if node.op in ("gen", "select", "share") else text

    def _in(self, colour: Callable[[str], str], text: str) -> str:
        return colour(text) if self._is_coloured and text else text

    def end(self) -> None:
        """Ends the line; raises the error that kept text from being written."""
        if self._broken is not None:
            raise self._broken
        self._out.write("\n")
        self._out.flush()

    def __enter__(self) -> StreamPrinter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Ends the line of a run that failed or was interrupted, before its error is told."""
        if kind is not None and self._last is not None and self._broken is None:
            with suppress(OSError):
                self.end()


def show(result: RunResult, as_json: bool, printer: StreamPrinter | None = None) -> None:
    """Prints a result, or what the printer has not shown of it."""
    if printer is not None:
        printer.end()
    if as_json:
        click.echo(json_of(result))
    elif printer is None:
        show_text(result)
    else:
        show_returned(result)


def show_text(result: RunResult) -> None:
    """Prints the main stream, a chat as a dialogue, and what the program returns."""
    if not result.streams:  # compiled with --keep returns
        click.echo(shown(result.ret_value))
        return
    told = dialogue(result.main)
    if told is None:
        pieces = result.main.pieces
        told = "".join(generated(text) if kind in GENERATED else text for kind, text in pieces)
    click.echo(told)
    show_returned(result)


def show_returned(result: RunResult) -> None:
    if result.ret_value is not None:
        click.echo(f"{role('returns:')} {shown(result.ret_value)}")


def shown(value: Any, default: Callable[[Any], str] = repr) -> str:
    """A value as JSON, or as Python writes it where it has none: a dict with tuples as keys."""
    try:
        return json.dumps(value, ensure_ascii=False, default=default)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def json_of(result: RunResult) -> str:
    """What `--json` prints. Raises ProgramError if the result has no JSON."""
    return dumped(to_json(result))


def to_json(result: RunResult) -> dict[str, Any]:
    """The object that `--json` prints."""
    return {
        "program": result.program,
        "text": result.text(),
        "variables": dict(result.variables),
        "return": result.ret_value,
        "streams": [
            {"name": stream.name, "text": stream.text, "variables": dict(stream.variables)}
            for stream in result.streams
        ],
        "stats": {
            **asdict(result.stats),
            "hit_rate": round(result.stats.hit_rate, 4),
            "seed": result.seed,
            "by_request": [_timing(request) for request in result.requests],
        },
    }


def _timing(request: Request) -> dict[str, Any]:
    """One request's usage and times: `wall_s` is measured here, the others in the engine."""
    return {
        "kind": request.kind,
        "name": request.name,
        "stream": request.path,
        "line": str(request.loc or ""),
        "wall_s": request.end_s - request.start_s,
        **asdict(request.usage),
    }


def summary(result: RunResult) -> str:
    """One line with the run's requests, tokens, cost and time."""
    stats = result.stats
    forced = f" ({stats.forced_tokens} of them forced)" if stats.forced_tokens else ""
    reasoned = f" ({stats.reasoning_tokens} of them reasoning)" if stats.reasoning_tokens else ""
    cost = "" if stats.cost_usd is None else f"${stats.cost_usd:.4g}, "
    ahead = (
        f" ({stats.answered_ahead} more answered by speculation)" if stats.answered_ahead else ""
    )
    ahead += f" ({stats.shared_requests} more shared)" if stats.shared_requests else ""
    ahead += f" ({stats.cached_requests} from the cache)" if stats.cached_requests else ""
    logged = f" ({stats.logged_requests} from the log)" if stats.logged_requests else ""
    n_written = stats.cache_written_tokens
    written = f"{n_written} written to the cache, " if n_written else ""
    joined = f", {stats.joined_tokens} joined approximately" if stats.joined_tokens else ""
    early = _early_calls(result)
    return (
        f"{counted(stats.requests, 'request')}{logged}{ahead}, {stats.prompt_tokens} prompt tokens "
        f"({stats.cached_tokens} cached, {written}{stats.computed_tokens} computed, "
        f"{stats.hit_rate:.0%} hit{joined}), "
        f"{stats.completion_tokens} generated{forced}{reasoned}, {early}{cost}"
        f"{stats.wall_s:.2f} s, seed {result.seed}"
    )


def _early_calls(result: RunResult) -> str:
    if not result.early_calls:
        return ""
    n_used = sum(call.is_early for call in result.tool_calls)
    tools, n_in_vain = counted(result.early_calls, "tool"), result.early_calls - n_used
    return f"{tools} called early ({n_in_vain} in vain), "
