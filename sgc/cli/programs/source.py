"""Finds a program in a Python file: which file, which function, which arguments."""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import sys
from collections.abc import Iterable, Mapping
from importlib.machinery import SourceFileLoader
from itertools import islice
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from sgc.cli.main import main
from sgc.core.places import innermost_user_line, outermost
from sgc.errors import (
    MAX_BESIDE,
    NoSuchFile,
    ProgramError,
    SgcError,
    UsageError,
    closest,
    closest_file,
)
from sgc.ir.types import Kind, Type
from sgc.lang.tools import Tool, tools_in
from sgc.programs.function import Function
from sgc.runtime.engine.text import strict_json

MAX_TEXT_BYTES = 64 << 20  # of an argument's file
_PROGRAMS = (".py", ".sgir")
_MAX_NAMES = 8  # of programs in a folder, that an error names
_MAX_SHOWN = 200  # of an invalid argument, in characters

outermost(main)  # the calling script is not part of a program


def is_source(target: str) -> bool:
    """Whether `target` names Python source, `PROG.py[:FUNCTION]`, not a compiled program."""
    return target.endswith(".py") or ".py:" in target


def path_of(target: str) -> Path:
    """The file of `PROG.py[:FUNCTION]`, or of a compiled program."""
    path, _, name = target.partition(".py:")
    return Path(path + ".py" if name else target)


def check_program(target: str) -> None:
    """Raises UsageError for a folder in place of a program, naming the programs in it, and for a
    name without its suffix."""
    folder = Path(target)
    if not folder.is_dir():
        meant = [f"{target}{suffix}" for suffix in _PROGRAMS if Path(target + suffix).is_file()]
        if meant and not folder.exists():
            raise NoSuchFile(f"{target}: no such file. Did you mean {meant[0]!r}?")
        return
    names = sorted(islice((p.name for p in folder.iterdir() if p.suffix in _PROGRAMS), MAX_BESIDE))
    shown = ", ".join(str(folder / name) for name in names[:_MAX_NAMES])
    more = ", …" if len(names) > _MAX_NAMES else ""
    raise UsageError(
        f"{target}: expected a program, PROG.py or PROG.sgir, found a folder",
        hint=f"in it: {shown}{more}" if names else "no .py or .sgir file is in it",
    )


def load_source(source: Path) -> ModuleType:
    """The module of a Python file, which this runs."""
    if source.suffix != ".py":
        raise UsageError(f"{source}: expected a .py file")
    if not source.is_file():
        raise NoSuchFile(f"{source}: no such file{closest_file(source)}")
    return _import_file(source)


def load_function(target: str) -> Function:
    """The program named by `PROG.py[:FUNCTION]`; a UsageError lists the file's programs."""
    source, name = path_of(target), target.partition(".py:")[2]
    if source.suffix != ".py":
        raise UsageError(
            f"{target}: expected a .py file", hint="sgc compile PROG.py[:FUNCTION] -o OUT.sgir"
        )
    module = load_source(source)
    programs = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, Function) and value.python.__module__ == module.__name__
    }
    return _choose(programs, name, source)


def load_tools(targets: Iterable[str]) -> list[Tool]:
    """The tools of Python files and modules, whose code this runs."""
    found: list[Tool] = []
    for target in targets:
        if is_source(target):
            source = Path(target)
            if not source.is_file():
                raise NoSuchFile(f"--tools {source}: no such file{closest_file(source)}")
            module = _import_file(source)
        else:
            module = _import_module(target)
        tools = tools_in(module)
        if not tools:
            raise UsageError(f"--tools {target}: there is no @sgc.tool in it")
        found += tools
    return found


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"--tools {name}: {error}", hint="name a .py file or a module") from error


def _choose(programs: Mapping[str, Function], name: str, source: Path) -> Function:
    if not programs:
        raise UsageError(f"{source}: there is no @sgc.function in it")
    if name:
        if name not in programs:
            meant = closest(name, programs)
            raise UsageError(f"{source} has no @sgc.function {name!r}{meant}", hint=_list(programs))
        return programs[name]
    if len(programs) == 1:
        return next(iter(programs.values()))
    for candidate in ("main", source.stem):
        if candidate in programs:
            return programs[candidate]
    raise UsageError(
        f"{source} has several programs", hint=_list(programs) + f"; write {source}:NAME"
    )


def _list(programs: Mapping[str, Function]) -> str:
    return f"there are: {', '.join(programs)}"


class _Script(SourceFileLoader):
    """Compiles the file at every start, as `python FILE` does, and keeps no bytecode beside it.

    Python compares only the second and the size of a source with those of its bytecode: a program
    that was edited within that second would run as it was before.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _import_file(source: Path) -> ModuleType:
    """Imports a file as a module with its folder first on the path, as Python does."""
    folder = str(source.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = source.stem if source.stem not in sys.modules else f"_sgc_program_{source.stem}"
    loader = _Script(name, str(source.absolute()))
    spec = importlib.util.spec_from_file_location(name, source, loader=loader)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SgcError as error:
        error.where = error.where or innermost_user_line(error) or str(source)
        raise
    except SystemExit as error:
        raise ProgramError(f"importing it called exit({error.code})", where=str(source)) from error
    except SyntaxError as error:
        where = f"{source}:{error.lineno}" if error.lineno else str(source)
        raise ProgramError(f"not valid Python: {error.msg}", where=where) from error
    except Exception as error:
        where = innermost_user_line(error) or str(source)
        is_sglang = isinstance(error, ModuleNotFoundError) and error.name == "sglang"
        raise ProgramError(
            f"importing the program failed: {type(error).__name__}: {error}",
            where=where,
            hint="sgc run and sgc compile take --as-sglang for it" if is_sglang else "",
        ) from error
    return module


def read_pairs(pairs: tuple[str, ...], option: str) -> dict[str, str]:
    """The texts of NAME=VALUE pairs, whose files and standard input are read."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {pair!r}: expected NAME=VALUE")
        if name in found:
            raise UsageError(f"{option} {name} is given twice")
        found[name] = text_of(text, f"{option} {name}")
    return found


def parse_pairs(texts: Mapping[str, str], types: Mapping[str, Type], option: str) -> dict[str, Any]:
    """Parses texts by their parameters' types; those of unknown names stay text.

    A value of type json is parsed as JSON; if that fails it is text, unless it begins like a JSON
    list, object or string.
    """
    return {
        name: parsed_value(text, types.get(name), f"{option} {name}")
        for name, text in texts.items()
    }


def text_of(given: str, what: str) -> str:
    """A value: `@FILE` is a file's text, `@-` that of standard input; `@@` begins one with @."""
    try:
        given.encode()
    except UnicodeEncodeError as error:  # Python keeps other bytes as halves of surrogate pairs
        raise UsageError(f"{what}: not UTF-8 text: {given!r}") from error
    if not given.startswith("@") or given.startswith("@@"):
        return given.removeprefix("@")
    path = Path(given[1:])
    if given != "@-" and (path.is_dir() or not path.exists()):
        hint = f"@FILE is the text of a file; a text that begins with @ is written @@{given[1:]}"
        raise UsageError(f"{what}: there is no file {given[1:]!r}", hint=hint)
    return _read_text(given[1:], what)


def parsed_value(text: str, type_: Type | None, what: str) -> Any:
    """A text as a value of a type; what: where it is from, for errors."""
    if type_ is None or type_.kind in (Kind.TEXT, Kind.CHOICE):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if type_.kind is Kind.JSON and not text.startswith(("[", "{", '"')):
            return text
        shown = text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
        wanted = "true or false" if type_.kind is Kind.BOOL else f"{type_} as JSON"
        raise UsageError(f"{what}: expected {wanted}, found {shown!r}") from error


def parse_json_args(text: str | None) -> dict[str, Any]:
    """The object of `--args JSON|@FILE`; `@-` is standard input."""
    if text is None:
        return {}
    where = "--args"
    if text.startswith("@"):
        where = text[1:]
        text = _read_text(where, where)
    try:
        value = strict_json.load(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{where}: not valid JSON: {error}", hint="""e.g. --args '{"topic": "tea"}'"""
        ) from error
    if not isinstance(value, dict):
        raise UsageError(f"{where}: expected a JSON object, found {type(value).__name__}")
    return value


def _read_text(name: str, what: str) -> str:
    """The text of a file, which may be a pipe, or of standard input, whose name is -."""
    try:
        if name == "-":
            read = sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                read = file.read(MAX_TEXT_BYTES + 1)
        if len(read) > MAX_TEXT_BYTES:
            raise UsageError(f"{what}: {name} has more than {MAX_TEXT_BYTES:,} bytes")
        with io.TextIOWrapper(io.BytesIO(read), encoding="utf-8") as text:
            return text.read()  # with any ends of lines
    except UnicodeDecodeError as error:
        raise SgcError(f"{what}: {name} is not UTF-8 text: {error}") from error
    except FileNotFoundError as error:
        raise UsageError(f"{name}: {error.strerror}{closest_file(Path(name))}") from error
    except OSError as error:
        raise SgcError(f"{name}: {error.strerror}") from error
