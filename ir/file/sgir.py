"""The file form, `.sgir`: a header, then one message of `sgir.proto`. Data, never code.

    offset  size  content
    0       4     b"SGIR"
    4       2     version of this format, little-endian like all numbers here
    6       2     0
    8       8     length of the payload in bytes
    16      32    SHA-256 of the payload
    48            the payload

Equal graphs have equal bytes. Reading opens no other file, checks everything and verifies the
graph; every fault is a LoadError. The checksum detects damage, not forgery: a forged file is as
harmless as any other, because nothing in it is executed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import struct
from contextlib import suppress
from itertools import islice
from pathlib import Path

from google.protobuf.message import DecodeError

from sgc.errors import LoadError, NoSuchFile, SgcError, UsageError, closest_file
from sgc.ir.file.reader import DAMAGED, UPGRADE, read_program
from sgc.ir.file.writer import write_program
from sgc.ir.graph import Graph
from sgc.ir.limits import MAX_FILE_BYTES, max_chars
from sgc.ir.verify import iter_breaches, verify
from sgc.proto import sgir_pb2 as pb

MAGIC = b"SGIR"
FORMAT_VERSION = 1
HEADER = struct.Struct("<4sHHQ32s")

# Limits on an error's text: a hostile file may break a rule a million times, or in huge names.
_MAX_SHOWN = 5
_MAX_SHOWN_CHARS = 4000


def to_bytes(graph: Graph) -> bytes:
    """The file form; raises VerifyError or UsageError for a graph that could not be loaded."""
    verify(graph)
    program, n_chars = write_program(graph)
    payload = program.SerializeToString(deterministic=True)
    if HEADER.size + len(payload) > MAX_FILE_BYTES:
        size = f"{HEADER.size + len(payload)} bytes, more than {MAX_FILE_BYTES}"
        raise UsageError(f"the program cannot be saved: it takes {size}")
    if n_chars > (most := max_chars(len(payload))):
        raise UsageError(
            f"the program cannot be saved: its texts, each counted wherever it is used, have "
            f"{n_chars} characters, more than {most}",
            hint="give a long text that is used often as an argument, or share it with fork",
        )
    digest = hashlib.sha256(payload).digest()
    return HEADER.pack(MAGIC, FORMAT_VERSION, 0, len(payload), digest) + payload


def from_bytes(data: bytes, source: str = "<bytes>") -> Graph:
    """The verified graph in some bytes; raises LoadError if they hold none."""
    payload = _payload(data, source)
    program = pb.Program()
    try:
        program.ParseFromString(payload)
    except DecodeError:
        raise _error(source, "expected a program's tables, found something else") from None
    graph = read_program(program, source)
    breaches = "\n".join(breach.render() for breach in islice(iter_breaches(graph), _MAX_SHOWN))
    if breaches:
        shown = breaches[:_MAX_SHOWN_CHARS]
        raise _error(source, f"the program breaks the rules of the IR\n{shown}")
    return graph


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Writes a file atomically: the old file stays until the new one is complete.

    A link is followed; a pipe or a device is written to, not replaced.
    """
    data = to_bytes(graph)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        _write_into(target, data)
        return
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        _write_synced(draft, data)
        draft.replace(target)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SgcError(f"cannot write the program: {reason}", where=str(target)) from error
    finally:
        with suppress(OSError, ValueError):
            draft.unlink(missing_ok=True)


def _write_into(target: Path, data: bytes) -> None:
    if target.is_dir():
        raise SgcError("cannot write the program: it is a folder", where=str(target))
    try:
        with target.open("wb") as file:
            file.write(data)
    except OSError as error:
        reason = error.strerror or error
        raise SgcError(f"cannot write the program: {reason}", where=str(target)) from error


def load(path: str | os.PathLike[str]) -> Graph:
    """The verified graph in a file; LoadError says what is wrong with it."""
    source = os.fspath(path)
    try:
        found = os.stat(source)
        if stat.S_ISDIR(found.st_mode):
            raise _error(source, "expected a .sgir file, found a folder", "name a file in it")
        if not stat.S_ISREG(found.st_mode):
            raise _error(source, "expected a .sgir file, found a pipe or a device", "name a file")
        _check_size(found.st_size, source)
        with open(source, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise NoSuchFile(
            f"{source}: no such file{closest_file(source)}", hint="`sgc compile` makes one"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise _error(source, f"cannot read the file: {reason}", "check the path") from None
    return from_bytes(data, source)


def _write_synced(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _payload(data: bytes, source: str) -> bytes:
    _check_size(len(data), source)
    if not data:
        raise _error(source, "expected a .sgir file, found an empty one", DAMAGED)
    if not MAGIC.startswith(data[:4]) and data[:4] != MAGIC:
        raise _not_a_program(data, source)
    if len(data) < HEADER.size:
        raise _truncated(source, HEADER.size, len(data))
    _, version, reserved, size, digest = HEADER.unpack_from(data)
    if version != FORMAT_VERSION or reserved:
        hint = UPGRADE if version >= FORMAT_VERSION else DAMAGED
        found = f"{version} (reserved: {reserved})" if reserved else str(version)
        raise _error(source, f"expected format version {FORMAT_VERSION}, found {found}", hint)
    payload = data[HEADER.size :]
    if len(payload) < size:
        raise _truncated(source, HEADER.size + size, len(data))
    if len(payload) > size:
        extra = len(payload) - size
        raise _error(source, f"expected {HEADER.size + size} bytes, found {extra} more", DAMAGED)
    if hashlib.sha256(payload).digest() != digest:
        raise _error(source, "the file was altered: its checksum does not match", DAMAGED)
    return payload


def _check_size(size: int, source: str) -> None:
    if size > MAX_FILE_BYTES:
        found = f"expected at most {MAX_FILE_BYTES} bytes, found {size}"
        raise _error(source, found, "no program is that large; is this the right file?")


def _truncated(source: str, expected: int, found: int) -> LoadError:
    message = f"the file is truncated: expected {expected} bytes, found {found}"
    return _error(source, message, "copy it again, or compile the program again")


def _not_a_program(data: bytes, source: str) -> LoadError:
    if data.startswith(b"sgir "):
        found, hint = "the text form of a program", "parse it with sgc.ir.text.parser.parse"
    elif source.endswith(".py"):
        found, hint = "Python source", f"compile it first: sgc compile {source}"
    else:
        found, hint = (
            f"a file that begins with {data[:4]!r}",
            "a program is PROG.py, or PROG.sgir of `sgc compile`",
        )
    return _error(source, f"expected a .sgir file, found {found}", hint)


def _error(source: str, message: str, hint: str = DAMAGED) -> LoadError:
    return LoadError(message, where=source, hint=hint)
