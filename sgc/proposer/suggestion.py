"""Code movement as advice: a diff of the program's own lines, which its author can take.

The lines are those that append the prompt: `s += …` with literals, f-strings and `+`, also inside a
call such as `sgc.user(…)`. For a prompt that is not found this way, the diff is of its text.
"""

from __future__ import annotations

import ast
import difflib
import json
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from sgc.ir.graph import Graph, Loc
from sgc.passes.changing.movement.move import Proposal, move
from sgc.passes.changing.movement.pieces import SLOT

_SPECIAL = re.compile(f"[{{}}{SLOT}]")  # in an f-string


@dataclass(frozen=True, slots=True)
class Suggestion:
    """loc: of the prompt; n_chars: how many more characters all rows would share; diff: unified."""

    loc: Loc | None
    n_chars: int
    diff: str

    def __str__(self) -> str:
        what = f"suggestion: rows would share {self.n_chars} characters more of this prompt"
        return f"{self.loc or 'a line unknown'}: {what}\n{self.diff}"


def suggestions(graph: Graph, source: Path | None) -> tuple[Suggestion, ...]:
    """What the rule would move in a program and those that it calls; source: its file."""
    proposals = (proposal for part in (graph, *graph.called) for proposal in move(part).moved)
    return tuple(dict.fromkeys(_suggestion(proposal, source) for proposal in proposals))


def _suggestion(proposal: Proposal, source: Path | None) -> Suggestion:
    prompt, loc = proposal.prompt, proposal.prompt.nodes[0].loc
    old, new, names = prompt.shown(), prompt.shown(proposal.order), ("prompt", "suggested")
    if source is not None and loc is not None and loc.file == source.name:
        with tokenize.open(source) as opened:
            text = opened.read()
        changed = _changed(text, proposal, loc.line)
        if changed is not None:
            old, new, names = text, changed, (str(source), str(source))
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), *names, n=2, lineterm="")
    return Suggestion(loc, proposal.n_chars, "\n".join(lines))


def _changed(source: str, proposal: Proposal, line: int) -> str | None:
    """The source with the prompt in its new order; None where it is not found exactly."""
    old, new = proposal.prompt.text, proposal.prompt.reordered(proposal.order)
    for row in _rows(ast.parse(source), line):
        for end in range(1, len(row) + 1):
            text, values = _text(row[:end])
            if text.startswith(old):
                is_exact = not text[len(old) :].strip(SLOT)
                return _rewritten(source, row[:end], new, values) if is_exact else None
    return None


def _rows(tree: ast.Module, line: int) -> Iterator[list[ast.expr]]:
    """Expressions that append to one text, from a line on: those of consecutive `s += …`, and the
    first argument of a call in one of them.
    """
    for node in ast.walk(tree):
        for _, body in ast.iter_fields(node):
            for target, group in groupby(body if isinstance(body, list) else (), _target):
                row = [each for each in group if target]
                for at, statement in enumerate(row):
                    if statement.lineno <= line <= (statement.end_lineno or 0):
                        yield [each.value for each in row[at:]]
                        calls = (c for c in ast.walk(statement.value) if isinstance(c, ast.Call))
                        yield from ([call.args[0]] for call in calls if call.args)


def _target(statement: object) -> str:
    is_append = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add)
    return ast.unparse(statement.target) if is_append else ""  # type: ignore[attr-defined]


def _text(row: Sequence[ast.expr]) -> tuple[str, list[str]]:
    """The text that expressions make, with SLOT for each value, and the source of the values."""
    text, values = "", []
    todo = list(reversed(row))
    while todo:
        match todo.pop():
            case ast.BinOp(left, ast.Add(), right):
                todo += [right, left]
            case ast.JoinedStr(parts):
                todo += reversed(parts)
            case ast.Constant(str(constant)):
                text += constant
            case ast.FormattedValue(value, -1, None) | value:
                text += SLOT
                values.append(ast.unparse(value))
    return text, values


def _rewritten(source: str, row: Sequence[ast.expr], new: str, values: list[str]) -> str | None:
    """The source with the expressions merged into one; None if the result is not valid Python."""
    first, last = row[0], row[-1]
    lines = source.encode().splitlines(keepends=True)  # `ast` counts bytes
    given, end = lines[first.lineno - 1], last.end_lineno or 0
    before = b"".join([*lines[: first.lineno - 1], given[: first.col_offset]]).decode()
    after = b"".join([lines[end - 1][last.end_col_offset :], *lines[end:]]).decode()
    indent = given[: len(given) - len(given.lstrip())].decode()
    is_triple = len(row) == 1 and '"""' in (ast.get_source_segment(source, first) or "")
    made = _literal(new, values, indent, is_triple)
    changed = before + " + ".join([made, *values[new.count(SLOT) :]]) + after
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    return changed


def _literal(text: str, values: Iterable[str], indent: str, is_triple: bool) -> str:
    """A text as Python: between triple quotes, or a literal for each of its lines."""
    given = iter(values)

    def in_braces(found: re.Match[str]) -> str:
        return f"{{{next(given)}}}" if found[0] == SLOT else 2 * found[0]

    if is_triple and '"""' not in text and "\\" not in text and not text.endswith('"'):
        return f'f"""{_SPECIAL.sub(in_braces, text)}"""'
    rows = []
    for line in re.findall(r"[^\n]*\n+|[^\n]+$", text):
        literal = json.dumps(line, ensure_ascii=False)
        rows.append(f"f{_SPECIAL.sub(in_braces, literal)}" if SLOT in line else literal)
    return f"\n{indent}    ".join(["(", *rows]) + f"\n{indent})"
