"""Golden cases of passes: files of programs before and after, `tests/golden/passes/`.

A file has the name of its pass. A case has a name, a program's body, the called programs, and the
body after the pass, or `-- unchanged`:

    == a text is worked out
      %s = const %t "a"
    -- called
    called @f() { … }
    -- after
      …
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

from golden_files import is_to_be_written

from sgc.ir.graph import Graph
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.passes.pipeline import PASSES, run_pass

FOLDER = Path(__file__).parents[1] / "golden" / "passes"
UNCHANGED = "-- unchanged\n"


@dataclass(frozen=True, slots=True)
class Case:
    path: Path
    arguments: str
    name: str
    before: str
    called: str
    outcome: str

    def graph(self) -> Graph:
        return _program(self.arguments, self.before, self.called)


def cases() -> dict[str, Case]:
    """The cases by pass and name."""
    found = {}
    for path in sorted(FOLDER.glob("*.txt")):
        head, *texts = path.read_text(encoding="utf-8").split("\n== ")
        assert "\narguments: " in head, f"{path}: its first lines are not as in the others"
        arguments = head.splitlines()[1].removeprefix("arguments: ")
        for text in texts:
            name, _, rest = text.rstrip("\n").partition("\n")
            given, mark, after = rest.partition("\n-- after\n")
            if not mark:
                given, mark = rest.removesuffix(UNCHANGED.rstrip()), UNCHANGED
            before, _, called = given.strip("\n").partition("\n-- called\n")
            outcome = UNCHANGED if mark == UNCHANGED else f"-- after\n{after}\n"
            found[f"{path.stem}: {name}"] = Case(path, arguments, name, before, called, outcome)
    return found


def check(case: Case) -> None:
    """Runs the pass twice, and compares the result with the file; SGC_BLESS=1 writes it."""
    name, given = case.path.stem, case.graph()
    found = run_pass(PASSES[name], given)
    after, called = _shown(found)
    outcome = UNCHANGED if found is given else f"-- after\n{after}"
    if is_to_be_written(case.outcome, outcome, f"pytest tests/passes/test_golden.py -k {name}"):
        text = case.path.read_text(encoding="utf-8")
        start = text.index(case.outcome, text.index(f"\n== {case.name}\n"))
        text = text[:start] + outcome + text[start + len(case.outcome) :]
        case.path.write_text(text, encoding="utf-8")
    assert called == _shown(given)[1]
    assert found == _program(case.arguments, after, case.called), "not what its text says"
    assert run_pass(PASSES[name], found) is found, "a second time changes nothing"
    assert [receipt.pass_name for receipt in found.receipts] == [name] * (found is not given)


def graph(body: str, called: str = "") -> Graph:
    """A program with the arguments x (text), n (int) and ok (bool)."""
    lines = textwrap.dedent(body).strip().splitlines()
    shown = "\n".join(line if line.startswith("^") else f"  {line.strip()}" for line in lines)
    return _program("%x: text, %n: int, %ok: bool", shown, called)


def _program(arguments: str, body: str, called: str) -> Graph:
    return parse(f"sgir 1\nprogram @p({arguments}) {{\n{body}\n}}\n{called}")


def _shown(made: Graph) -> tuple[str, str]:
    """The body of the program, and its called programs."""
    body, _, called = to_text(made).split("program", 1)[1].partition("\n}\n")
    return body.split("\n", 1)[1] + "\n", called
