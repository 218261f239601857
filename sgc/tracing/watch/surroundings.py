"""What functions written in C, and Python's audit events, read of a program's surroundings or do to
them."""

from __future__ import annotations

import os
import types
from typing import Any

from sgc.core.places import is_users
from sgc.core.watching import unwatched

LOOKS = "looks at a file"
# Functions of the module `posix`, by what they read or do.
_LOOKING = "access getxattr listxattr lstat readlink stat statvfs"
_ASKING = """
cpu_count get_terminal_size getcwd getcwdb getegid geteuid getgid getgroups getloadavg getlogin
getpgid getpid getppid getpriority getsid getuid isatty sched_getaffinity times ttyname uname
"""
_DRAWING = "getrandom urandom"
_ON_FILES = """
chflags chmod chown fchmod fchown ftruncate lchown link mkdir mkfifo mknod pwrite pwritev remove
removexattr rename replace rmdir setxattr symlink truncate unlink utime write writev
"""
_ON_PROCESS = """
abort chdir chroot close_range dup dup2 execv execve fchdir fork forkpty kill killpg nice pipe pipe2
posix_spawn posix_spawnp putenv sched_setaffinity setgid setpriority setsid setuid system umask
unsetenv wait waitpid
"""
READS: dict[tuple[Any, str], str] = {
    **dict.fromkeys((("posix", name) for name in _LOOKING.split()), LOOKS),
    **dict.fromkeys((("posix", name) for name in _ASKING.split()), "asks about its process"),
    **dict.fromkeys((("posix", name) for name in _DRAWING.split()), "draws a random number"),
    ("_uuid", "generate_time_safe"): "draws a random number",
}
ACTS: dict[tuple[Any, str], str] = {
    **dict.fromkeys((("posix", name) for name in _ON_FILES.split()), "changes files"),
    **dict.fromkeys((("posix", name) for name in _ON_PROCESS.split()), "changes its process"),
    ("time", "sleep"): "sleeps",
    ("_thread", "start_new_thread"): "starts a thread",
    ("_thread", "start_joinable_thread"): "starts a thread",
    ("atexit", "register"): "changes its process",
    ("_signal", "signal"): "changes its process",
    ("_signal", "alarm"): "changes its process",
    ("_signal", "setitimer"): "changes its process",
    ("sys", "setrecursionlimit"): "changes its process",
}
READ_EVENTS = {
    "open": "opens a file",
    "os.listdir": "lists a folder",
    "os.scandir": "lists a folder",
    "socket.connect": "connects a socket",
    "socket.getaddrinfo": "looks up a host",
    "socket.gethostbyaddr": "looks up a host",
    "socket.gethostbyname": "looks up a host",
    "socket.gethostname": "asks about its machine",
}
ACT_EVENTS = {
    "socket.bind": "binds a socket",
    "socket.sendto": "sends through a socket",
    "sqlite3.connect": "opens a database",
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
}

# Library modules whose functions look at the file named by their first argument.
_NAMING = frozenset({"genericpath", "pathlib", "pathlib._local", "posixpath"})


def looked_at(frame: types.FrameType) -> tuple[str, str | None]:
    """The kind and name of the file or folder that a frame looks at; empty and None if unknown."""
    code = frame.f_code
    if frame.f_globals.get("__name__") not in _NAMING or not code.co_argcount:
        return "", None
    name = frame.f_locals.get(code.co_varnames[0])
    if not isinstance(name, (str, os.PathLike)):
        return "", None
    path = os.fspath(name)
    with unwatched():
        return ("folder" if os.path.isdir(path) else "file"), os.fsdecode(path)


_MOST_OF_A_HOOK = 16  # frames between an import and a read by its hook
_SHOWING_SOURCE = frozenset({"warnings", "_py_warnings"})
# Functions of importlib that find or load a module; others, as `get_data`, read for their callers.
_IMPORTING = frozenset({"_find_and_load", "_find_spec", "find_spec", "exec_module", "get_code"})


def is_of_program(frame: types.FrameType | None) -> bool:
    """Whether a frame runs for the program, and not for Python itself, which reads or writes files
    for an import or a warning in a body."""
    while frame is not None and not is_users(frame):
        is_import = _is_of_importlib(frame) and frame.f_code.co_name in _IMPORTING
        if is_import or frame.f_globals.get("__name__") in _SHOWING_SOURCE:
            return False
        frame = frame.f_back
    return frame is not None and not _finds_module(frame)


def _finds_module(frame: types.FrameType | None) -> bool:
    """Whether a frame belongs to an import hook that is asked where a module is, as pytest's is.
    Reads by a module's own code, a loader, or a package's `__getattr__` are reads of data."""
    for _ in range(_MOST_OF_A_HOOK):
        if frame is None or frame.f_code.co_name == "<module>":
            return False
        if _is_of_importlib(frame):
            return frame.f_code.co_name == "_find_spec"
        frame = frame.f_back
    return False


def _is_of_importlib(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename.startswith("<frozen importlib")
