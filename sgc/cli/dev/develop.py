"""`sgc dev`: watches a program, runs it when it changes, and serves its page."""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgc.cli.dev.describe import FAILED
from sgc.cli.dev.runner import Asked, Runner, process
from sgc.cli.dev.server import Pages
from sgc.cli.dev.versions import Versions
from sgc.cli.dev.watching import stamps
from sgc.cli.programs.loading import Given
from sgc.cli.programs.source import check_program, path_of
from sgc.errors import NoSuchFile, SgcError, UsageError, closest_file
from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.site import application, serving
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.server.listen import Address, Security

GIVEN = "given.json"  # the command line's arguments
LOOK_S = 0.3
IMPORT_S = 60.0


@dataclass(frozen=True, slots=True)
class DevAsked:
    """The arguments of `sgc dev`; given: the program's, read once, as a file may be a pipe;
    options: those that are passed on to `sgc run`.
    """

    target: str
    engine: str | None
    model: str | None
    given: Given
    options: tuple[str, ...]
    seed: int
    port: int
    opens: bool


def source_of(target: str) -> Path:
    """The file of PROG.py[:FUNCTION]; raises UsageError for one that is not there."""
    check_program(target)
    source = path_of(target)
    if source.suffix != ".py":
        raise UsageError(f"{source}: expected a .py file", hint="sgc dev PROG.py[:FUNCTION]")
    if not source.is_file():
        raise NoSuchFile(f"{source}: no such file{closest_file(source)}")
    return source


def develop(asked: DevAsked, tell: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM."""
    source = source_of(asked.target)
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="sgc-dev-")))
        given = {"json_args": asked.given.json_args, "single_args": asked.given.single_args}
        (folder / GIVEN).write_text(json.dumps(given), encoding="utf-8")
        uri = asked.engine
        if uri is None:
            uri = held.enter_context(EmbeddedEngine(asked.model)).uri
        asyncio.run(_serve(asked, source, folder, uri, tell))


async def _serve(
    asked: DevAsked, source: Path, folder: Path, uri: str, tell: Callable[[str], None]
) -> None:
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    versions = Versions(folder)
    runner = Runner(Asked(asked.target, ("--engine", uri, *asked.options), asked.seed), versions)
    connections = Connections()
    app = application(Pages(versions, runner).routes(), Security(), connections)
    async with serving(app, connections, Address("127.0.0.1", asked.port), None) as url:
        tell(f"{url} shows {asked.target}; edit it, and what changes runs again. Ctrl-C ends it.")
        if asked.opens:
            webbrowser.open(url)
        watching = asyncio.create_task(_watch(asked, source, versions, runner, tell))
        await asyncio.wait(
            [watching, asyncio.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED
        )
        watching.cancel()
        found = await asyncio.gather(watching, return_exceptions=True)
        await runner.stop()
    for error in found:
        if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
            raise error


async def _watch(
    asked: DevAsked, source: Path, versions: Versions, runner: Runner, tell: Callable[[str], None]
) -> None:
    """Runs the program with the last arguments, at the start and whenever a file changes."""
    folder = source.resolve().parent
    seen = None
    while True:
        now = await asyncio.to_thread(stamps, folder)
        if now != seen:
            seen = now
            if versions.all and FAILED not in versions.about:
                await _run(runner, versions.all[-1].arguments, tell)
                versions.about = await _described(asked, versions.folder / GIVEN)
            else:
                versions.about = await _described(asked, versions.folder / GIVEN)
                if _is_enough(versions.about):
                    before = versions.all[-1].arguments if versions.all else None
                    await _run(runner, before or versions.about["arguments"], tell)
            versions.change()
            if FAILED in versions.about:
                failed = versions.about[FAILED]
                named = failed.startswith(str(source))  # with its line
                tell(failed if named else f"{asked.target}: {failed}")
        await asyncio.sleep(LOOK_S)


async def _run(runner: Runner, arguments: Mapping[str, Any], tell: Callable[[str], None]) -> None:
    version = await runner.start(arguments)
    tell(f"version {version.number} runs")


def _is_enough(about: Mapping[str, Any]) -> bool:
    """Whether the command line has given all arguments that the program needs."""
    needed = [each["name"] for each in about.get("parameters", ()) if each["is_required"]]
    return FAILED not in about and all(name in about["arguments"] for name in needed)


async def _described(asked: DevAsked, given: Path) -> dict[str, Any]:
    """The program's parameters, and the command line's arguments; else `error`."""
    command = [asked.target, str(given)]
    try:
        async with asyncio.timeout(IMPORT_S), process(command, "sgc.cli.dev.describe") as child:
            out, err = await child.communicate()
    except TimeoutError:
        return {FAILED: f"importing it took more than {IMPORT_S:g} s"}
    try:
        found = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        return {FAILED: err.decode("utf-8", "replace")[-4000:] or "it cannot be read"}
    if not isinstance(found, dict):
        raise SgcError(f"{asked.target} printed {found!r} while it was imported")
    return found
