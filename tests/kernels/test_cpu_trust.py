"""Code is loaded only from folders and files that nobody else can write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_cache import found, needs_compiler, why_not

from sgc.kernels.cpu import build
from sgc.kernels.cpu.trust import NotTrustedError, own_folder, trusted


@pytest.fixture
def own(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.mark.parametrize("umask", [0, 0o002, 0o777])
def test_folders_are_their_owners_alone_whatever_the_umask(own, umask) -> None:
    before = os.umask(umask)
    try:
        folder = own_folder(own / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (folder, *folder.parents[:2])] == [0o700] * 3
    assert own_folder(folder) == folder


@needs_compiler
def test_under_umask_0_the_next_start_finds_what_was_compiled(cache) -> None:
    before = os.umask(0)
    try:
        path = found()
        assert found() == path
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o700


@needs_compiler
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_folder_that_others_can_write_is_refused(cache, mode) -> None:
    path = found()
    cache.chmod(mode)
    assert f"others can write the folder {cache}: chmod go-w" in why_not()
    path.unlink()
    assert "SGC_KERNEL_CACHE" in why_not()
    assert not path.exists()


@needs_compiler
def test_a_file_that_others_can_write_is_refused(cache) -> None:
    found().chmod(0o720)
    assert "others can write the file" in why_not()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_above_that_others_can_write_is_refused(own, mode) -> None:
    folder = own_folder(own / "above" / "kernels")
    folder.parent.chmod(mode)
    with pytest.raises(NotTrustedError, match=f"others can write the folder {folder.parent}"):
        trusted(folder)
    folder.parent.chmod(mode | 0o1000)  # as /tmp: nobody takes another's folder away
    assert trusted(folder) == folder


@needs_compiler
def test_what_belongs_to_another_is_refused(cache, monkeypatch) -> None:
    found()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert "belongs to another user" in why_not()


@needs_compiler
def test_a_link_in_place_of_the_library_is_refused(cache, tmp_path) -> None:
    path = found()
    path.rename(tmp_path / "elsewhere.so")
    path.symlink_to(tmp_path / "elsewhere.so")
    assert build.find().path is None


def test_the_folders_that_a_link_leads_to_count(own) -> None:
    folder = own_folder(own / "open" / "kernels")
    (own / "link").symlink_to(own / "open" / "kernels")
    (own / "relative").symlink_to("link")
    assert trusted(own / "relative" / "more") == folder / "more"
    folder.parent.chmod(0o777)
    with pytest.raises(NotTrustedError, match="others can write"):
        trusted(own / "relative" / "more")


def test_a_link_of_another_is_refused(own, monkeypatch) -> None:
    target, link = own_folder(own / "target"), own / "link"
    link.symlink_to(target)
    assert trusted(link) == target
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.lchown(link, 12345, -1)
    with pytest.raises(NotTrustedError, match=r"the link .* belongs to another user"):
        trusted(link)


def test_links_in_a_circle(own) -> None:
    (own / "a").symlink_to("b")
    (own / "b").symlink_to("a")
    with pytest.raises(NotTrustedError, match="too many links"):
        trusted(own / "a" / "kernels")


@needs_compiler
def test_a_refusal_is_one_line_and_no_error(cache) -> None:
    found()
    cache.chmod(0o777)
    code = "from sgc.kernels.cpu import library; print(library.find())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "None"
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{build.NO_KERNELS}: others can write the folder {cache}: chmod go-w")
