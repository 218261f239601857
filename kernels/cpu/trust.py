"""Code is loaded only from folders and files that no other user can write. Missing folders are made
accessible only to their owner. `build.py` and `stored.py` call it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_OTHERS_WRITE = 0o022
_STICKY = 0o1000
_MAX_LINKS = 40
_ANOTHER = "name another in SGC_KERNEL_CACHE"


class NotTrustedError(Exception):
    """Which folder or file, why, and what to do, in plain English."""


def own_folder(folder: Path) -> Path:
    """Makes the folder, and those above it that are missing. Returns it without links."""
    folder = trusted(folder)
    for path in [*reversed(folder.parents), folder]:
        if not path.exists():
            with suppress(FileExistsError):  # another process has made it meanwhile
                path.mkdir(mode=0o700)
                path.chmod(0o700)  # whatever the umask
    return trusted(folder)


def trusted(folder: Path) -> Path:
    """The folder without links, if no other user can replace it, whether it exists or not. Who can
    write a folder above it can replace it, unless the sticky bit forbids that, as in /tmp."""
    real = _without_links(Path(os.path.normpath(folder.absolute())))
    for parent in real.parents:
        if parent.exists():
            _check_owner(parent, parent.lstat(), {0, os.geteuid()})
            if not parent.lstat().st_mode & _STICKY:
                _check_mode(parent, parent.lstat())
    if real.exists():
        check_own(real)
    return real


def check_own(path: Path) -> None:
    """Raises `NotTrustedError` unless a folder or file is ours, no link, and only we can write
    it."""
    status = path.lstat()
    _check_owner(path, status, {os.geteuid()})
    if path.is_symlink() or not (path.is_dir() or path.is_file()):
        raise NotTrustedError(f"{path} is neither a folder nor a file: remove it")
    _check_mode(path, status)


def _check_owner(path: Path, status: os.stat_result, owners: set[int]) -> None:
    if status.st_uid not in owners:
        raise NotTrustedError(f"{_kind(path)} {path} belongs to another user: {_ANOTHER}")


def _check_mode(path: Path, status: os.stat_result) -> None:
    if status.st_mode & _OTHERS_WRITE:
        raise NotTrustedError(
            f"others can write {_kind(path)} {path}: chmod go-w {path}, or {_ANOTHER}"
        )


def _kind(path: Path) -> str:
    return "the link" if path.is_symlink() else "the folder" if path.is_dir() else "the file"


def _without_links(path: Path) -> Path:
    """Follows links one by one, since the owner of a link can point it elsewhere."""
    for _ in range(_MAX_LINKS):
        link = next((part for part in [*reversed(path.parents), path] if part.is_symlink()), None)
        if link is None:
            return path
        _check_owner(link, link.lstat(), {0, os.geteuid()})
        target = os.path.join(link.parent, os.readlink(link), path.relative_to(link))
        path = Path(os.path.normpath(target))
    raise NotTrustedError(f"too many links lead to {path}: {_ANOTHER}")
