"""Images and videos from files: only files are read, so far as they may be, off the event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import pytest
from executor.free_backend import Free, within
from waiting import BOUND_S

import sgc
from sgc.errors import ArgumentError
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.interface.media import MAX_MEDIA_BYTES, load_media, load_video
from sgc.runtime.executor.run.record import RunResult

PNG = b"\x89PNG\r\n\x1a\n rest"


def test_a_file_is_read_if_it_is_one(tmp_path):
    (tmp_path / "i.png").write_bytes(PNG)
    assert load_media(tmp_path / "i.png").data == PNG
    (tmp_path / "link.png").symlink_to(tmp_path / "i.png")
    assert load_media(str(tmp_path / "link.png")).data == PNG


@pytest.mark.parametrize("load", [load_media, lambda path: load_video(path, 2)])
def test_pipes_devices_and_folders_are_refused(tmp_path, load):
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path / "pipe", "a pipe"), ("/dev/zero", "a device")):
        failed = within(lambda path=path: load(path))
        assert isinstance(failed, ArgumentError)
        assert f"it is {kind}" in str(failed)
    with pytest.raises(ArgumentError, match="it is a directory"):
        load(tmp_path)


def test_paths_that_are_none():
    with pytest.raises(ArgumentError, match="No such file"):
        load_media("/no/such.png")
    with pytest.raises(ArgumentError, match="null"):
        load_media("a\0b")


def test_a_file_is_read_no_further_than_it_may_be(tmp_path):
    with open(tmp_path / "big.png", "wb") as file:
        file.truncate(MAX_MEDIA_BYTES + 1)
    with pytest.raises(ArgumentError, match="the most that are taken"):
        load_media(tmp_path / "big.png")


def test_images_are_read_off_the_event_loop_and_in_order(monkeypatch, tmp_path):
    from sgc.runtime.executor.ops import handlers

    threads, turned = [], threading.Event()

    def slow(value: Any) -> Any:
        threads.append(threading.current_thread())
        assert not value.endswith("1.png") or turned.wait(BOUND_S)
        return load_media(value)

    @sgc.function
    def two(s, a, b):
        s += sgc.user("x" + sgc.image(a) + "y" + sgc.image(b) + "z") + sgc.gen("g")

    paths = [tmp_path / "1.png", tmp_path / "2.png"]
    for path in paths:
        path.write_bytes(PNG + path.name.encode())
    graph = two.compile(check=False).graph
    monkeypatch.setattr(handlers, "load_media", slow)
    arguments = dict(zip("ab", map(str, paths), strict=True))

    async def run() -> RunResult:
        work = asyncio.ensure_future(run_graph(graph, Free("r"), arguments))
        while not threads and not work.done():
            await asyncio.sleep(0.005)
        turned.set()  # the loop turns while the first is read
        return await work

    result = asyncio.run(run())
    assert result.text() == "<|user|>x<image>y<image>z<|end|>r"
    media = [run.media.data[-5:] for run in result.requests[0].prompt if hasattr(run, "media")]
    assert media == [b"1.png", b"2.png"]
    assert threading.main_thread() not in threads
