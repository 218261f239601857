"""What `sgc test` shows: lines, JSON, and JUnit's XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click

from sgc.cli.output.colours import bad, faint, good
from sgc.cli.testing.cases import Outcome, Suite
from sgc.errors import counted

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS = {"passed": good("PASS"), "failed": bad("FAIL"), "error": bad("ERROR")}
MAX_LISTED = 200  # with more tests than this, only those that failed are listed


@dataclass(frozen=True, slots=True)
class Report:
    """The outcomes of a file of tests, in its order."""

    suite: Suite
    program: str
    outcomes: Sequence[Outcome]
    seconds: float
    seed: int

    def count(self, status: str) -> int:
        return sum(each.status == status for each in self.outcomes)

    def show(self, quiet: bool) -> None:
        """Prints a line for each test, with what failed; with quiet, only for tests that failed."""
        lists_all = not quiet and len(self.outcomes) <= MAX_LISTED
        for each in self.outcomes:
            if each.passed and not lists_all:
                continue
            click.echo(
                f"{_MARKS[each.status]}  {_printable(each.case.name)}  {faint(_numbers(each))}"
            )
            if each.error:
                click.echo(_indented(f"{each.case.place}: {each.error}"))
            for verdict in each.verdicts if not each.passed else ():
                if not verdict.passed:
                    of = f" of {verdict.assertion.of}" if verdict.assertion.of else ""
                    line = f"{verdict.assertion.place}: {verdict.assertion.name}{of}"
                    click.echo(_indented(f"{line}: {verdict.reason}"))

    def summary(self) -> str:
        tokens = sum(each.tokens for each in self.outcomes)
        requests = sum(each.requests for each in self.outcomes)
        cost = [each.cost_usd for each in self.outcomes if each.cost_usd is not None]
        money = f", ${sum(cost):.4g}" if cost else ""
        errors = f", {self.count('error')} with errors" if self.count("error") else ""
        return (
            f"{self.suite.path}: {self.count('passed')} passed, {self.count('failed')} failed"
            f"{errors}; {counted(requests, 'request')}, {counted(tokens, 'token')}{money}, "
            f"{self.seconds:.2f} s, seed {self.seed}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "file": str(self.suite.path),
            "program": self.program,
            "seed": self.seed,
            "passed": self.count("passed"),
            "failed": self.count("failed"),
            "errors": self.count("error"),
            "tests": [_test_json(each) for each in self.outcomes],
        }

    def to_junit(self) -> ElementTree.Element:
        suite = ElementTree.Element(
            "testsuite", name=str(self.suite.path), tests=str(len(self.outcomes)),
            failures=str(self.count("failed")), errors=str(self.count("error")),
            time=f"{self.seconds:.3f}",
        )  # fmt: skip
        for each in self.outcomes:
            case = ElementTree.SubElement(
                suite, "testcase", classname=self.suite.path.stem, name=_legal(each.case.name),
                file=str(self.suite.path), line=str(each.case.line), time=f"{each.seconds:.3f}",
            )  # fmt: skip
            if each.error:
                told = ElementTree.SubElement(case, "error", message=_legal(each.error))
                told.text = _legal(each.case.place)
            elif not each.passed:
                reasons = [
                    f"{v.assertion.place}: {v.assertion.name}: {v.reason}"
                    for v in each.verdicts
                    if not v.passed
                ]
                told = ElementTree.SubElement(case, "failure", message=_legal(reasons[0]))
                told.text = _legal("\n".join(reasons))
            out = ElementTree.SubElement(case, "system-out")
            out.text = _legal(each.output)
        return suite


def write_junit(path: Path, reports: Sequence[Report]) -> None:
    root = ElementTree.Element("testsuites")
    root.extend([each.to_junit() for each in reports])
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _legal(text: str) -> str:
    """A text without the characters that XML cannot have."""
    return _NOT_IN_XML.sub("�", text)


def _indented(text: str) -> str:
    return "\n".join(f"      {_printable(line)}" for line in text.splitlines())


def _printable(text: str) -> str:
    """A text of a model or a file, without characters that control a terminal."""
    return "".join(each if each.isprintable() else "�" for each in text)


def _numbers(outcome: Outcome) -> str:
    money = "" if outcome.cost_usd is None else f", ${outcome.cost_usd:.4g}"
    return f"{outcome.seconds:.2f} s, {outcome.tokens} tokens{money}"


def _test_json(each: Outcome) -> dict[str, Any]:
    return {
        "name": each.case.name,
        "place": each.case.place,
        "status": each.status,
        "vars": dict(each.case.vars),
        "output": each.output,
        "variables": dict(each.variables),
        "score": round(each.score, 6),
        "error": each.error or None,
        "latency_ms": round(each.seconds * 1000, 3),
        "tokens": each.tokens,
        "cost_usd": each.cost_usd,
        "asserts": [
            {
                "type": verdict.assertion.name,
                "of": verdict.assertion.of or None,
                "value": verdict.assertion.value,
                "pass": verdict.passed,
                "score": verdict.score,
                "reason": verdict.reason or None,
            }
            for verdict in each.verdicts
        ],
    }
