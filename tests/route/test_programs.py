"""Programs that engines run, behind one gRPC address."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest
from route.routed_engines import Engine, routed

from sgc.proto import programs_pb2 as pb
from sgc.proto import programs_pb2_grpc
from sgc.services.programs import no_program


class Runs(programs_pb2_grpc.ProgramsServicer):
    """Gives the arguments back in capitals. fails: with this status, after so many events; begun:
    what it says of the run then; effects: it has some."""

    def __init__(self, name: str, fails: str = "", after: int = 0, **told: str) -> None:
        self.name, self.fails, self.after, self.told = name, fails, after, told
        self.engine = Engine(name)
        self.asked: list[pb.ProgramCall] = []
        self.metadata: dict[str, str] = {}
        self.left_s = 0.0

    async def ListPrograms(self, request, context):
        return pb.ListProgramsReply(programs=[pb.Program(name=self.name)])

    async def RunProgram(self, request, context):
        self.asked.append(request)
        self.metadata, self.left_s = dict(context.invocation_metadata()), context.time_remaining()
        if "effects" in self.told and self.metadata.get("sgc-effects") == "refuse":
            self.asked.pop()
            no = (("sgc-begun", "no"),)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "it has effects", no)
        events = [pb.ProgramEvent(text=pb.StreamText(text=each)) for each in "ab"]
        events.append(pb.ProgramEvent(result=request.arguments.upper()))
        for number, event in enumerate(events):
            if self.fails and number == self.after:
                begun = self.told.get("begun")
                code = grpc.StatusCode[self.fails]
                trailing = (("sgc-begun", begun), ("grpc-retry-pushback-ms", "7")) if begun else ()
                await context.abort(code, f"{self.name} says so", trailing)
            yield event


@contextlib.asynccontextmanager
async def behind_one(*runs: Runs) -> AsyncIterator[programs_pb2_grpc.ProgramsStub]:
    with pytest.MonkeyPatch.context() as patch:
        made = grpc.aio.server

        def server(*args, **options):  # each engine's, before the router's
            found = made(*args, **options)
            if waiting:
                programs_pb2_grpc.add_ProgramsServicer_to_server(waiting.pop(0), found)
            return found

        waiting = [*runs]
        patch.setattr(grpc.aio, "server", server)
        at = grpc.aio.insecure_channel
        async with routed(*(e.engine for e in runs)) as router, at(router.uri) as channel:
            yield programs_pb2_grpc.ProgramsStub(channel)


async def run(stub: programs_pb2_grpc.ProgramsStub, **options) -> list[str]:
    asked = pb.ProgramCall(program="tip", arguments="tea", stream=True)
    return [event.result or event.text.text async for event in stub.RunProgram(asked, **options)]


def test_a_run_goes_to_one_engine_with_its_token_and_deadline():
    async def check() -> None:
        one, other = Runs("one"), Runs("other")
        async with behind_one(one, other) as stub:
            metadata = (("authorization", "Bearer t"), ("x-request-id", "r"))
            assert await run(stub, metadata=metadata, timeout=50) == ["a", "b", "TEA"]
            (asked,) = [each for each in (one, other) if each.asked]
            assert asked.metadata["authorization"] == "Bearer t"
            assert asked.metadata["x-request-id"] == "r"
            assert 40 < asked.left_s < 51  # gRPC rounds it up
            listed = await stub.ListPrograms(pb.ListProgramsRequest())
            assert listed.programs[0].name in ("one", "other")

    asyncio.run(check())


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (Runs("x", "UNAVAILABLE"), None),
        (Runs("x", "RESOURCE_EXHAUSTED", effects="", begun="no"), None),
        (Runs("x", "UNAVAILABLE", effects="", begun="no"), None),
        (Runs("x", "NOT_FOUND", effects=""), None),
        (Runs("x", "UNAVAILABLE", effects=""), "lost while it ran a program"),
        (Runs("x", "RESOURCE_EXHAUSTED", effects=""), "x says so"),
        (Runs("x", "UNAVAILABLE", 1), "lost while it ran a program"),
        (Runs("x", "UNKNOWN"), "x says so"),
    ],
)
def test_a_run_is_repeated_only_if_nothing_can_happen_twice(bad, told):
    async def check() -> None:
        good = Runs("good")
        async with behind_one(bad, good) as stub:
            for _ in range(4):
                if bad.asked:
                    break
                good.asked.clear()
                try:
                    assert await run(stub) == ["a", "b", "TEA"]
                    found = None
                except grpc.aio.AioRpcError as error:
                    found = error.details()
                    told_when = dict(error.trailing_metadata()).get("grpc-retry-pushback-ms")
                    assert ("lost while" in found) == (told_when == "-1")
            assert len(bad.asked) == 1
            assert len(good.asked) == (told is None)
            assert told is None or told in found

    asyncio.run(check())


def test_who_asks_not_to_run_what_has_effects_is_told_so():
    """A router before this one would run it again."""

    async def check() -> None:
        runs = [Runs(name, effects="") for name in "ab"]
        async with behind_one(*runs) as stub:
            for _ in range(2):
                with pytest.raises(grpc.aio.AioRpcError, match="it has effects") as caught:
                    await run(stub, metadata=(("sgc-effects", "refuse"),))
                assert dict(caught.value.trailing_metadata()) == {"sgc-begun": "no"}
                assert await run(stub) == ["a", "b", "TEA"]
        assert sum(len(each.asked) for each in runs) == 2

    asyncio.run(check())


def test_what_all_engines_refuse_is_told():
    async def check() -> None:
        runs = [Runs(name, "RESOURCE_EXHAUSTED", begun="no") for name in "ab"]
        async with behind_one(*runs) as stub:
            with pytest.raises(grpc.aio.AioRpcError, match="says so") as caught:
                await run(stub)
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            told = {"sgc-begun": "no", "grpc-retry-pushback-ms": "7"}
            assert dict(caught.value.trailing_metadata()) == told
            assert all(len(each.asked) == 1 for each in runs)

    asyncio.run(check())


def test_a_name_that_no_program_has_is_told_with_those_there_are_the_likest_first():
    known = ["tips", "outline", "support"]
    told = "there is no program 'suport'; this server has support, outline, tips"
    assert no_program("suport", known) == told
    many = [f"p{n}" for n in range(100)]
    assert no_program("p7", many).endswith("and 80 more")
