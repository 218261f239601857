"""Code movement as advice: a diff of the program's own lines, which its author can take.

The lines are those that append the prompt: `s += …` with literals, f-strings and `+`, also inside a
call such as `sgc.user(…)`. A prompt that is not found like that is a diff of its text.
"""

from __future__ import annotations

import ast
import difflib
import json
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from sgc.ir.graph import Graph, Loc
from sgc.passes.changing.movement.move import Proposal, move
from sgc.passes.changing.movement.pieces import SLOT
from sgc.passes.changing.movement.rebuild import reordered


@dataclass(frozen=True, slots=True)
class Suggestion:
    """loc: of the prompt; n_chars: that every row would share then; diff: unified."""

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
    loc = proposal.prompt.loc
    if source is not None and loc is not None and loc.file == source.name:
        with tokenize.open(source) as opened:
            text = opened.read()
        changed = _changed(text, proposal, loc.line)
        if changed is not None:
            return Suggestion(loc, proposal.n_chars, _diff(text, changed, str(source), str(source)))
    diff = _diff(proposal.before, proposal.after, "prompt", "suggested")
    return Suggestion(loc, proposal.n_chars, diff)


def _diff(before: str, after: str, old: str, new: str) -> str:
    lines = (before.splitlines(), after.splitlines())
    return "\n".join(difflib.unified_diff(*lines, old, new, n=2, lineterm=""))


def _changed(source: str, proposal: Proposal, line: int) -> str | None:
    """The source with the prompt in its new order; None where it is not found exactly."""
    old, new = proposal.prompt.text, reordered(proposal.prompt, proposal.order)
    for statements, row in _rows(ast.parse(source)):
        for low, first in enumerate(statements):
            if not first.lineno <= line <= (first.end_lineno or 0):
                continue
            for high in range(low + 1, len(row) + 1):
                if _text(row[low:high])[0].startswith(old):
                    return _rewritten(source, row[low:high], old, new)
    return None


def _rows(tree: ast.Module) -> Iterator[tuple[list[ast.AugAssign], list[ast.expr]]]:
    """Expressions that make one text, with their statements: those of `s += …` in a row, and the
    first argument of a call in one.
    """
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            body = getattr(node, field, None)
            for target, group in groupby(body if isinstance(body, list) else (), _target):
                if target:
                    row = [each for each in group if isinstance(each, ast.AugAssign)]
                    yield row, [each.value for each in row]
        if isinstance(node, ast.AugAssign):
            calls = (each for each in ast.walk(node.value) if isinstance(each, ast.Call))
            yield from (([node], [call.args[0]]) for call in calls if call.args)


def _target(statement: ast.stmt) -> str:
    is_append = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add)
    return ast.unparse(statement).partition(" += ")[0] if is_append else ""


def _text(row: Sequence[ast.expr]) -> tuple[str, list[str]]:
    """The text that expressions make, with SLOT for each value, and the source of the values."""
    text, values = "", []
    todo = list(reversed(row))
    while todo:
        each = todo.pop()
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add):
            todo += [each.right, each.left]
        elif isinstance(each, ast.JoinedStr):
            todo += reversed(each.values)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            text += each.value
        else:
            text += SLOT
            values.append(ast.unparse(_bare(each)))
    return text, values


def _bare(value: ast.expr) -> ast.expr:
    """What is between the braces of an f-string, if it is nothing but a value."""
    is_plain = isinstance(value, ast.FormattedValue) and value.conversion == -1
    return value.value if is_plain and value.format_spec is None else value  # type: ignore[attr-defined]


def _rewritten(source: str, row: Sequence[ast.expr], old: str, new: str) -> str | None:
    """The source with expressions made one; None where that does not make the same text."""
    text, values = _text(row)
    n_inside = old.count(SLOT)
    if text[len(old) :].strip(SLOT):
        return None
    lines = source.splitlines(keepends=True)
    start = _offset(lines, row[0].lineno, row[0].col_offset)
    end = _offset(lines, row[-1].end_lineno or 0, row[-1].end_col_offset or 0)
    indent = lines[row[0].lineno - 1].partition(lines[row[0].lineno - 1].lstrip())[0]
    is_triple = len(row) == 1 and '"""' in source[start:end]
    made = _literal(new, values[:n_inside], indent, is_triple)
    changed = source[:start] + " + ".join([made, *values[n_inside:]]) + source[end:]
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    return changed


def _offset(lines: list[str], line: int, column: int) -> int:
    """Of a place that is given in bytes, as `ast` does."""
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())


def _literal(text: str, values: Sequence[str], indent: str, is_triple: bool) -> str:
    """A text as Python: between triple quotes, or a literal for each of its lines."""
    given = iter(values)

    def written(part: str) -> str:
        escaped = part if is_triple else json.dumps(part, ensure_ascii=False)[1:-1]
        if SLOT not in part:
            return escaped
        braced = escaped.replace("{", "{{").replace("}", "}}")
        return "".join(f"{{{next(given)}}}" if each == SLOT else each for each in braced)

    if is_triple and '"""' not in text and "\\" not in text and not text.endswith('"'):
        return f'f"""{written(text)}"""'
    is_triple = False
    parts = re.findall(r"[^\n]*\n+|[^\n]+$", text)
    rows = [f'{"f" if SLOT in part else ""}"{written(part)}"' for part in parts]
    return f"\n{indent}    ".join(["(", *rows]) + f"\n{indent})"
