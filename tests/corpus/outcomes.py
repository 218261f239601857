"""What becomes of each program of the corpus: compiled whole, in part, or refused; and whether what
was compiled does what the interpreter does.

    .venv/bin/python -P tests/corpus/outcomes.py [--seeds 8] [--jobs 2] [--bless]
        [PROGRAM.py ...]

prints a line a program and a table; --bless writes `outcomes.txt`. A program is `program` of its
file, with the ARGUMENTS it is given and texts that a model might reply with (REPLIES).
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from itertools import repeat
from pathlib import Path
from types import ModuleType
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from control_flow import outcome, replying

from sgc.errors import SgcError, SgcWarning
from sgc.ir.analysis.host_calls import pieces_in_python
from sgc.lang.tools import resolve_tools, tools_in
from sgc.programs.compiling import compile_function
from sgc.programs.deopt import may_deopt, run_with_deopt
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions

CORPUS = Path(__file__).resolve().parent
LEVELS = (0, 1, 2)
N_AGAIN = 5  # interpreted runs that must be alike before a compiled one counts as wrong
# From the best to the worst. bound: whole, once those arguments have their values that are no text,
# number, bool or data, or decide how many streams there are; python: pieces of it run in Python;
# part: what could not be compiled is left to the interpreter.
KINDS = ("whole", "bound", "python", "part", "refused", "wrong")


@dataclass(frozen=True, slots=True)
class Outcome:
    """why: what stands against a better kind, in the compiler's words."""

    kind: str
    why: str = ""


def programs() -> list[Path]:
    """The files of the corpus."""
    return sorted(path for path in CORPUS.glob("*/*.py") if path.name != "__init__.py")


def recorded() -> dict[str, str]:
    """The kind that each program was found to be of, by its folder and name."""
    lines = (CORPUS / "outcomes.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines)


def load(path: Path) -> ModuleType:
    """The program's module, imported under a name of its own."""
    name = f"corpus_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def measured(path: Path, n_seeds: int = 8) -> Outcome:
    """What becomes of a program; its module is forgotten again."""
    module = load(path)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore", SgcWarning)
            logging.disable()  # what programs log and print is theirs
            return _measured(module, n_seeds)
    finally:
        logging.disable(logging.NOTSET)
        del sys.modules[module.__name__]


def _measured(module: ModuleType, n_seeds: int) -> Outcome:
    function, rows = module.program, module.ARGUMENTS
    types_of = function.signature.types_of(rows)
    names = function.signature.names_to_bind(rows, types_of)
    problems = []
    if not names:
        found, why = _compiled(function, {}, types_of, is_full=True)
        names = sorted({name for row in rows for name in row} - _taken(found)) if found else []
        if found is not None and not names:
            return _compared(module, n_seeds, lambda _: found, "whole", "")
        problems.append(why or f"fixed to their defaults: {', '.join(names)}")
    else:
        problems.append(f"must be known: {', '.join(names)}")
    data = [p.name for p in function.signature.parameters if p.schema]
    given = [name for name in data if any(name in row for row in rows)]
    ways = [(names, True, "bound")]
    ways += [([*names, *given], True, "bound")] if given else []
    ways += [(each, False, "part") for each in (names, [*names, *given])]
    for bound_names, is_full, kind in ways:
        each: dict[int, Program] = {}
        for index, row in enumerate(rows):
            bound = {name: row[name] for name in bound_names if name in row}
            values = function.signature.defaults | row if is_full else {}
            program, why = _compiled(function, bound, types_of, is_full=is_full, values=values)
            if program is not None:
                each[index] = program
            elif not _raises_alike(module, row, why):
                problems.append(why)
                break
        else:
            if not each:
                break
            graphs = [program.graph for program in each.values()]
            if any(map(pieces_in_python, graphs)):
                kind = "python"
            return _compared(module, n_seeds, each.get, kind, problems[-1])
    return Outcome("refused", problems[-1])


def _raises_alike(module: ModuleType, row: Mapping[str, Any], why: str) -> bool:
    """Whether the compiler raised what the program raises for a row before it asks anything."""
    found = run_of(module, module.program, row, seed=0)
    name, _, message = found.partition(": ") if isinstance(found, str) else ("", "", "")
    return bool(name) and f"raised {name} while being traced: {message}" in why


def _compiled(
    function: Any,
    bound: Mapping[str, Any],
    types_of: Any,
    is_full: bool,
    values: Mapping[str, Any] | None = None,
) -> tuple[Program | None, str]:
    known = {name: type_ for name, type_ in types_of.items() if name not in bound}
    try:
        return compile_function(
            function, bound, types_of=known, is_full=is_full, leaves=not is_full, values=values
        ), ""
    except SgcError as error:
        return None, str(error).replace("\n", " ")


def _compared(
    module: ModuleType,
    n_seeds: int,
    compiled: Callable[[int], Program | None],
    kind: str,
    why: str,
) -> Outcome:
    """The outcome of programs compiled for all rows, or for each, by its index; none for a row for
    which the compiler raises what the program raises. A run that is another each time it is
    interpreted, by state outside the program, is not compared.
    """
    for index, row in enumerate(module.ARGUMENTS):
        whole = compiled(index)
        if whole is None:
            continue
        arguments = {name: value for name, value in row.items() if name in _taken(whole)}
        for program in at_levels(whole):
            for seed in range(n_seeds):
                wanted = run_of(module, module.program, row, seed)
                found = run_of(module, program, arguments, seed, row)
                again = (run_of(module, module.program, row, seed) for _ in range(N_AGAIN))
                if wanted != found and all(each == wanted for each in again):
                    return Outcome("wrong", f"seed {seed} of row {index}: {wanted} is {found}")
    return Outcome(kind, why)


def _taken(program: Program | None) -> set[str]:
    """The arguments that a program takes; those that it does not were fixed when compiling."""
    return set() if program is None else {param.value.name for param in program.graph.params}


def at_levels(program: Program) -> Iterator[Program]:
    from sgc.passes.pipeline import optimize

    for level in LEVELS:
        yield program.with_graph(optimize(program.graph, level))


def run_of(
    module: ModuleType,
    program: Any,
    arguments: Mapping[str, Any],
    seed: int,
    row: Mapping[str, Any] | None = None,
) -> Any:
    """What a run gives and asks, or its error. row: all arguments, if the interpreter is to take
    what the compiler has left to it."""
    options = RunOptions(seed=seed, allow_tools=resolve_tools(tools_in(module)))
    endpoint = replying(seed, module.REPLIES)
    if row is None or not may_deopt(program.graph):
        return outcome(lambda: program.run_once(arguments, options, endpoint))

    def interpret(how: RunOptions) -> Any:
        return module.program.run_once(row, how, endpoint)

    return outcome(lambda: run_with_deopt(program, endpoint.backend, arguments, options, interpret))


def table(found: Iterable[Outcome]) -> str:
    """How many there are of each kind, and their share."""
    counts = Counter(each.kind for each in found)
    n = sum(counts.values())
    return "\n".join(f"{kind:8} {counts[kind]:4} {100 * counts[kind] / n:5.1f} %" for kind in KINDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=1, help="processes; outcomes are the same")
    parser.add_argument("--bless", action="store_true", help="write outcomes.txt, of all programs")
    options = parser.parse_args()
    found: dict[str, Outcome] = {}
    paths = [path.resolve() for path in options.programs or programs()]
    with ProcessPoolExecutor(options.jobs) as processes:
        outcomes = processes.map(measured, paths, repeat(options.seeds))
        for path, each in zip(paths, outcomes, strict=True):
            found[f"{path.parent.name}/{path.stem}"] = each
            print(f"{path.parent.name}/{path.stem}: {each.kind} {each.why[:300]}", flush=True)
    print(table(found.values()))
    if options.bless and not options.programs:
        lines = [f"{name} {each.kind}\n" for name, each in found.items()]
        (CORPUS / "outcomes.txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
