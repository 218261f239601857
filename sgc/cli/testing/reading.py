"""Reads a file of tests: YAML or JSON in promptfoo's form, JSON lines, or CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from sgc.cli.testing.cases import Assertion, Case, Suite
from sgc.cli.testing.kinds import KINDS, UNOFFERED
from sgc.cli.testing.yaml_file import MAX_BYTES, Located, load_yaml
from sgc.errors import UsageError, closest, closest_file, counted
from sgc.runs.rows.jsonl import told

NAMES = ("tests.yaml", "tests.yml", "tests.json", "tests.jsonl", "tests.csv")
_OF_FILE = ("program", "description", "defaultTest", "tests")
_OF_TEST = ("description", "vars", "assert", "threshold", "metadata")
_OF_ASSERT = ("type", "value", "threshold", "weight", "of", "metric")
_PROMPTFOO = {
    "prompts": "the program is the prompt: program: PROG.py",
    "providers": "a model is named by --model or --engine",
    "provider": "a judge is named by --judge",
    "transform": "let the program return what is to be checked",
    "options": "a judge is named by --judge",
    "scenarios": "write the tests themselves",
}
_CELL = re.compile(
    r"(?P<type>(?:not-)?[a-z-]+)(?:\((?P<threshold>[0-9]+(?:\.[0-9]+)?)\))?"
    r"(?:\s*:\s*(?P<value>.*))?",
    re.S,
)
_OF_COLUMNS = re.compile(r"(?!__).*|__(?:expected[0-9]*|description|metric|metadata.*)", re.S)
_WORD = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")


def find_suites(given: tuple[Path, ...]) -> list[Path]:
    """The named files, else the file of tests in this folder."""
    if given:
        for path in given:
            if path.is_dir():
                inside = [path / name for name in NAMES if (path / name).is_file()]
                raise UsageError(
                    f"{path}: expected a file of tests, found a folder",
                    hint=f"cd {quote(str(path))}; sgc test" if inside else "",
                )
            if not path.is_file():
                raise UsageError(f"{path}: no such file of tests{closest_file(path)}")
        return [*given]
    found = [Path(name) for name in NAMES if Path(name).is_file()]
    if not found:
        raise UsageError(
            f"there are no tests here: none of {', '.join(NAMES)}",
            hint="sgc test FILE; sgc new NAME writes a project with some",
        )
    return found[:1]


def read_suite(path: Path) -> Suite:
    """The tests of a file. Raises UsageError that names file, line and test."""
    if path.suffix == ".csv":
        return Suite(path, None, tuple(_of_csv(path)), has_texts=True)
    if path.suffix == ".jsonl":
        return Suite(path, None, tuple(_cases(list(_of_lines(path)), str(path), Located())))
    if path.suffix not in (".yaml", ".yml", ".json"):
        raise UsageError(f"{path}: tests are .yaml, .json, .jsonl or .csv")
    found = load_yaml(_text(path), str(path)) if path.suffix != ".json" else _json(path)
    if isinstance(found, list):
        return Suite(path, None, tuple(_cases(found, str(path), Located())))
    place = str(path)
    top = _object(found, place, "a list of tests, or an object with tests")
    _known(top, _OF_FILE, place)
    default = _object(top.get("defaultTest") or Located(), place, "an object")
    _known(default, _OF_TEST, f"{place}: defaultTest")
    tests = top.get("tests")
    program = top.get("program")
    if program is not None and not isinstance(program, str):
        raise UsageError(f"{place}: program: expected PROG.py or PROG.sgir, found {program!r}")
    if isinstance(tests, str):
        rows = read_suite(_beside(path, tests.removeprefix("file://"), "tests"))
        cases = tuple(_with_default(case, default, place) for case in rows.cases)
        return Suite(path, _program(path, program), cases, rows.has_texts)
    if not isinstance(tests, list):
        raise UsageError(f"{place}: expected tests: a list, or the name of a file")
    return Suite(path, _program(path, program), tuple(_cases(tests, place, default)))


def fill(value: Any, given: Mapping[str, Any], place: str) -> Any:
    """Replaces each `{{name}}` in a value's texts by that variable of the test."""
    if isinstance(value, str):
        return _WORD.sub(lambda at: _filled(at[1], given, place), value)
    if isinstance(value, list):
        return [fill(each, given, place) for each in value]
    if isinstance(value, dict):
        return {key: fill(each, given, place) for key, each in value.items()}
    return value


def _filled(name: str, given: Mapping[str, Any], place: str) -> str:
    if name not in given:
        raise UsageError(
            f"{place}: {{{{{name}}}}} is no variable of this test{closest(name, given)}"
        )
    value = given[name]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _program(path: Path, program: str | None) -> str | None:
    if program is None:
        return None
    name, dot, function = program.partition(".py:")
    found = _beside(path, f"{name}.py" if dot else program, "program")
    return f"{found}:{function}" if dot else str(found)


def _beside(path: Path, name: str, what: str) -> Path:
    """The path of a file that another file names: in the same folder, or below."""
    folder = path.parent.resolve()
    found = (folder / name).resolve()
    if not found.is_relative_to(folder):
        raise UsageError(
            f"{path}: {what}: {name!r} is outside of the folder of this file",
            hint="name it on the command line: sgc test FILE --program PROG.py",
        )
    if not found.is_file():
        raise UsageError(f"{path}: {what}: there is no file {name!r} beside it")
    return path.parent / name


def _text(path: Path) -> str:
    if path.stat().st_size > MAX_BYTES:
        raise UsageError(f"{path}: more than {MAX_BYTES:,} bytes")
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text: {error.reason}") from error


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not valid JSON: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> Located:
    """An object of JSON; raises ValueError for a key that comes twice, as in YAML."""
    found = Located()
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key!r} comes twice")
        found[key] = value
    return found


def _of_lines(path: Path) -> Iterator[Located]:
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line, object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path}:{number}: not valid JSON: {told(error)}") from error
        found = _object(found, f"{path}:{number}", "a test")
        found.line = number
        yield found


def _cases(tests: list[Any], place: str, default: Located) -> Iterator[Case]:
    for index, test in enumerate(tests, 1):
        found = _object(test, f"{place}: test {index}", "a test: vars and assert")
        here = f"{place}:{found.line}: test {index}"
        _known(found, _OF_TEST, here)
        given = {**_vars(default, here), **_vars(found, here)}
        asserts = [*_list(default, "assert", here), *_list(found, "assert", here)]
        threshold = found.get("threshold", default.get("threshold"))
        yield Case(
            name=str(found.get("description") or _named(given, index)),
            file=place,
            place=here,
            line=found.line,
            vars=given,
            asserts=tuple(_assertion(each, given, here) for each in asserts),
            threshold=_number(threshold, "threshold", here),
        )


def _with_default(case: Case, default: Located, place: str) -> Case:
    """A case of another file, with the variables and assertions of `defaultTest` before its own."""
    given = {**_vars(default, place), **case.vars}
    asserts = [_assertion(each, given, place) for each in _list(default, "assert", place)]
    threshold = case.threshold
    if threshold is None:
        threshold = _number(default.get("threshold"), "threshold", place)
    return replace(case, vars=given, asserts=(*asserts, *case.asserts), threshold=threshold)


def _named(given: Mapping[str, Any], index: int) -> str:
    first = next((value for value in given.values() if isinstance(value, str)), "")
    short = " ".join(first.split())
    return f"test {index}" + (f": {short[:40]}{'…' if len(short) > 40 else ''}" if short else "")


def _vars(test: Located, place: str) -> dict[str, Any]:
    found = test.get("vars")
    return {} if found is None else dict(_object(found, f"{place}: vars", "variables by name"))


def _list(test: Located, name: str, place: str) -> list[Any]:
    found = test.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise UsageError(f"{place}: {name}: expected a list, found {type(found).__name__}")
    return found


def _assertion(given: Any, variables: Mapping[str, Any], place: str) -> Assertion:
    found = _object(given, f"{place}: assert", "type and value")
    here = (
        f"{place}: assert" if found.line == 1 else f"{place.partition(':')[0]}:{found.line}: assert"
    )
    _known(found, _OF_ASSERT, here)
    name = found.get("type")
    if not isinstance(name, str):
        raise UsageError(f"{here}: expected a type: {', '.join(KINDS)}")
    of = found.get("of", "")
    if not isinstance(of, str):
        raise UsageError(f"{here}: of: expected the name of a variable, found {of!r}")
    threshold = _number(found.get("threshold"), "threshold", here)
    weight = _number(found.get("weight", 1), "weight", here)
    value = fill(found.get("value"), variables, here)
    return made(name, here, value, threshold, 1.0 if weight is None else weight, of)


def made(
    name: str, place: str, value: Any, threshold: float | None, weight: float = 1.0, of: str = ""
) -> Assertion:
    """An assertion whose type, value and threshold fit. Raises UsageError."""
    is_negated = name.startswith("not-")
    kind = name.removeprefix("not-")
    if kind not in KINDS:
        why = UNOFFERED.get(kind, f"there are: {', '.join(KINDS)}, and not-… of them")
        raise UsageError(f"{place}: there is no type {name!r}{closest(name, KINDS)}", hint=why)
    problem = KINDS[kind].problem(value, threshold, is_negated)
    if problem:
        raise UsageError(f"{place}: {name}: {problem}")
    return Assertion(kind, place, value, is_negated, threshold, weight, of)


def _of_csv(path: Path) -> Iterator[Case]:
    """Columns are variables; those that begin with `__expected` are assertions."""
    rows = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        columns = next(rows, [])
        if twice := [name for name in columns if columns.count(name) > 1]:
            hint = "assertions are __expected, __expected2, …"
            raise UsageError(f"{path}:1: the column {twice[0]!r} comes twice", hint=hint)
        if unknown := [name for name in columns if not _OF_COLUMNS.fullmatch(name)]:
            like = closest(unknown[0], ("__expected", "__description"))
            hint = "columns with two underscores are __expected, __expected2, … and __description"
            raise UsageError(f"{path}:1: unknown column {unknown[0]!r}{like}", hint=hint)
        for index, cells in enumerate(filter(None, rows), 1):
            place = f"{path}:{rows.line_num}: test {index}"
            if len(cells) != len(columns):
                raise UsageError(
                    f"{place}: expected {counted(len(columns), 'cell')}, found {len(cells)}"
                )
            row = dict(zip(columns, cells, strict=True))
            given = {name: cell for name, cell in row.items() if not name.startswith("__")}
            asserts = (
                _of_cell(cell, given, place)
                for name, cell in row.items()
                if name.startswith("__expected") and cell.strip()
            )
            name = row.get("__description") or _named(given, index)
            yield Case(name, str(path), place, rows.line_num, given, tuple(asserts))
    except csv.Error as error:
        raise UsageError(f"{path}:{rows.line_num}: not valid CSV: {error}") from error


def _of_cell(cell: str, given: Mapping[str, Any], place: str) -> Assertion:
    """Reads `contains: tea`, `latency(500)`, or a text that the output must equal."""
    found = _CELL.fullmatch(cell.strip())
    if found is None or found["type"].removeprefix("not-") not in (*KINDS, *UNOFFERED):
        return made("equals", place, fill(cell, given, place), None)
    threshold = _number(found["threshold"] and float(found["threshold"]), "threshold", place)
    value: Any = found["value"]
    if value is not None:
        of_kind: Callable[[str], Any] = KINDS[found["type"].removeprefix("not-")].of_text
        value = of_kind(fill(value, given, place))
    return made(found["type"], place, value, threshold)


def _object(found: Any, place: str, what: str) -> Located:
    if not isinstance(found, dict):
        raise UsageError(f"{place}: expected {what}, found {type(found).__name__}")
    return found if isinstance(found, Located) else Located(found)


def _known(found: Mapping[str, Any], names: tuple[str, ...], place: str) -> None:
    for name in found:
        if name not in names and not name.startswith("x-"):
            raise UsageError(
                f"{place}: {name!r} is not known here; there are: {', '.join(names)}"
                f"{closest(name, names)}",
                hint=_PROMPTFOO.get(name, ""),
            )


def _number(found: Any, name: str, place: str) -> float | None:
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not found >= 0:
        raise UsageError(f"{place}: {name}: expected a number of 0 or more, found {found!r}")
    return float(found)
