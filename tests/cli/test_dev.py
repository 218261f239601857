"""`sgc dev`: an edit asks only what it changes, and only the page itself may run a program."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from sgc.cli.dev.describe import described
from sgc.cli.dev.runner import Asked, Runner
from sgc.cli.dev.server import MAX_BODY, Pages
from sgc.cli.dev.versions import MAX_VERSIONS, Versions
from sgc.cli.dev.watching import stamps
from sgc.cli.programs.loading import Given
from sgc.runs.endpoints import Runtime
from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.site import application, serving
from sgc.runtime.engine.server.listen import Address, Security

NAMES = [f"v{number}" for number in range(6)]
PROGRAM = "import sgc\n\n\n@sgc.function\ndef chain(s, topic: str, n: int = 2):\n" + "".join(
    f'    s += "Part {name} " + topic + ":" + sgc.gen("{name}", max_tokens=4) + "\\n"\n'
    for name in NAMES
)


def runner_of(folder: Path, engine: Runtime, text: str = PROGRAM) -> tuple[Runner, Versions, Path]:
    source = folder / "chain.py"
    source.write_text(text)
    versions = Versions(folder / "state")
    versions.folder.mkdir()
    options = ("--engine", engine._engine.uri)
    return Runner(Asked(str(source), options, 1), versions), versions, source


async def edited(runner: Runner, arguments: dict[str, Any]) -> None:
    await runner.start(arguments)
    await runner.wait()


@pytest.mark.slow
def test_an_edit_asks_what_depends_on_it(fake_engine: Runtime, tmp_path: Path) -> None:
    async def run() -> None:
        runner, versions, source = runner_of(tmp_path, fake_engine)
        for text, asked in [
            (PROGRAM, NAMES),
            (PROGRAM, []),
            (PROGRAM.replace("Part v5", "The last part"), NAMES[5:]),
            (PROGRAM.replace("Part v3", "The middle part"), NAMES[3:]),
            (PROGRAM.replace("Part v0", "The first part"), NAMES),
            (PROGRAM.replace("\n\n\n", "\n\n# a comment\n\n"), []),
        ]:
            source.write_text(text)
            await edited(runner, {"topic": "tea"})
            version = versions.all[-1]
            assert (version.state, version.error) == ("done", "")
            assert version.asked == asked, text
            assert version.asked + version.kept == NAMES or version.kept == NAMES[: 6 - len(asked)]
        assert {each.text for each in versions.all[:2]} == {versions.all[-1].text}
        assert all(versions.page(each.number).is_file() for each in versions.all)

    asyncio.run(run())


@pytest.mark.slow
def test_errors_of_a_version_and_the_next(fake_engine: Runtime, tmp_path: Path) -> None:
    async def run() -> None:
        runner, versions, source = runner_of(tmp_path, fake_engine, "def broken(:\n")
        await edited(runner, {"topic": "tea"})
        assert versions.all[0].state == "failed"
        assert "not valid Python" in versions.all[0].error
        source.write_text(PROGRAM)
        first = await runner.start({"topic": "tea"})
        second = await runner.start({"topic": "tea"})  # the first is ended
        assert first.state == "stopped"
        await runner.stop()
        assert second.state == "stopped"

    asyncio.run(run())


@pytest.mark.slow
def test_edits_that_come_together_and_long_results(fake_engine: Runtime, tmp_path: Path) -> None:
    async def run() -> None:
        text = PROGRAM + '    s += "x" * 300_000\n    return s["v0"]\n'
        runner, versions, _ = runner_of(tmp_path, fake_engine, text)
        await asyncio.gather(*(runner.start({"topic": "tea"}) for _ in range(3)))
        await runner.wait()
        assert [each.state for each in versions.all] == ["stopped", "stopped", "done"]
        assert len(versions.all[-1].text) > 300_000
        state = await versions.state(-1, 0.0)
        assert [bool(each["text"]) for each in state["versions"]] == [False, False, True]

    asyncio.run(run())


def test_parameters_and_arguments(tmp_path: Path) -> None:
    source = tmp_path / "described_chain.py"
    source.write_text(PROGRAM)
    found = described(str(source), Given(None, {"topic": "tea", "n": "3"}))
    assert found["arguments"] == {"topic": "tea", "n": 3}
    told = [(each["name"], each["type"], each["is_required"]) for each in found["parameters"]]
    assert told == [("topic", "text", True), ("n", "int", False)]
    json.dumps(found)


def test_files_that_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub" / "__pycache__").mkdir(parents=True)
    for name in ("a.py", "sub/b.py", "sub/__pycache__/c.py", "d.txt"):
        (tmp_path / name).write_text("1")
    monkeypatch.setattr("sgc.cli.dev.watching.MAX_FOLDERS", 2)
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "far.py").write_text("1")
    before = stamps(tmp_path)
    assert sorted(Path(each).name for each in before) == ["a.py", "b.py"]
    (tmp_path / "sub" / "b.py").write_text("22")
    assert stamps(tmp_path) != before


def test_old_versions_are_forgotten(tmp_path: Path) -> None:
    versions = Versions(tmp_path)
    for _ in range(MAX_VERSIONS + 2):
        version = versions.begin({})
        versions.page(version.number).write_text("page")
    assert [each.number for each in versions.all] == list(range(3, MAX_VERSIONS + 3))
    assert len(list(tmp_path.iterdir())) == MAX_VERSIONS


class NoRunner:
    """Notes what it is to run."""

    def __init__(self, versions: Versions) -> None:
        self.versions = versions
        self.given: list[Any] = []

    async def start(self, arguments: Any) -> Any:
        self.given.append(arguments)
        return self.versions.begin(arguments)


def served(
    folder: Path, ask: Callable[[str, aiohttp.ClientSession, NoRunner], Awaitable[None]]
) -> None:
    async def run() -> None:
        versions = Versions(folder)
        runner: Any = NoRunner(versions)
        connections = Connections()
        app = application(Pages(versions, runner).routes(), Security(), connections)
        async with (
            serving(app, connections, Address("127.0.0.1", 0), None) as url,
            aiohttp.ClientSession() as session,
        ):
            await ask(url, session, runner)

    asyncio.run(run())


def test_the_page_and_its_state(tmp_path: Path) -> None:
    async def ask(url: str, session: aiohttp.ClientSession, runner: NoRunner) -> None:
        for path in ("/", "/dev.js", "/dev.css"):
            async with session.get(url + path) as answer:
                assert answer.status == 200
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        async with session.post(f"{url}/run", json={"topic": "</script>"}) as answer:
            assert await answer.json() == {"version": 1}
        async with session.get(f"{url}/state?seen=-1") as answer:
            state = await answer.json()
        assert state["versions"][0]["arguments"] == {"topic": "</script>"}
        waiting = asyncio.create_task(
            session.get(f"{url}/state?seen={state['changes']}").__aenter__()
        )
        await asyncio.sleep(0.05)
        assert not waiting.done()
        runner.versions.change()
        assert (await (await waiting).json())["changes"] == state["changes"] + 1
        assert runner.given == [{"topic": "</script>"}]

    served(tmp_path, ask)


def test_what_may_not_run_a_program(tmp_path: Path) -> None:
    async def ask(url: str, session: aiohttp.ClientSession, runner: NoRunner) -> None:
        body = json.dumps({"topic": "tea"})
        plain = {"Content-Type": "application/json"}
        for headers, data, status in [
            ({**plain, "Host": "evil.example"}, body, 403),
            ({**plain, "Origin": "http://evil.example"}, body, 403),
            ({"Content-Type": "text/plain"}, body, 415),
            (plain, "[1]", 400),
            (plain, "{", 400),
            (plain, "[" * 100_000, 400),
            (plain, '{"topic": NaN}', 400),
            (plain, json.dumps({"topic": "x" * MAX_BODY}), 400),
        ]:
            async with session.post(f"{url}/run", data=data, headers=headers) as answer:
                assert answer.status == status, (headers, data)
        for path in (
            "/versions/9",
            "/versions/../state",
            "/nothing",
            "/dev.html",
            "/state?seen=\u00b2",
        ):
            async with session.get(url + path) as answer:
                assert answer.status in (200, 404)
        assert runner.given == []

    served(tmp_path, ask)


def test_an_argument_may_come_in_many_parts(tmp_path: Path) -> None:
    """A long text does not come in one piece."""
    text = "tea " * 100_000

    async def ask(url: str, session: aiohttp.ClientSession, runner: NoRunner) -> None:
        async with session.post(f"{url}/run", json={"topic": text}) as answer:
            assert answer.status == 200
        assert runner.given == [{"topic": text}]

    served(tmp_path, ask)


def test_numbers_that_json_lacks_do_not_stop_the_page(tmp_path: Path) -> None:
    def refused(constant: str) -> None:
        raise AssertionError(constant)

    async def ask(url: str, session: aiohttp.ClientSession, runner: NoRunner) -> None:
        runner.versions.begin({}).returned = {"scores": [0.5, float("nan"), float("-inf")]}
        runner.versions.about = {"parameters": [{"name": "most", "default": float("inf")}]}
        async with session.get(f"{url}/state?seen=-1") as answer:
            state = json.loads(await answer.text(), parse_constant=refused)
        assert state["versions"][0]["returned"] == {"scores": [0.5, "nan", "-inf"]}
        assert state["parameters"][0]["default"] is None

    served(tmp_path, ask)
