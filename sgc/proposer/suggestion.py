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
from itertools import accumulate, groupby
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
    for row in _rows(ast.parse(source)):
        for low, (statement, _) in enumerate(row):
            if not statement.lineno <= line <= (statement.end_lineno or 0):
                continue
            for high in range(low + 1, len(row) + 1):
                held = [value for _, value in row[low:high]]
                if _text(held)[0].startswith(old):
                    return _rewritten(source, held, old, new)
    return None


def _rows(tree: ast.Module) -> Iterator[list[tuple[ast.AugAssign, ast.expr]]]:
    """Expressions that make one text, with their statements: those of `s += …` in a row, and the
    first argument of a call in one.
    """
    for node in ast.walk(tree):
        for _, body in ast.iter_fields(node):
            for target, group in groupby(body if isinstance(body, list) else (), _target):
                if target:
                    yield [(each, each.value) for each in group]
        if isinstance(node, ast.AugAssign):
            calls = (each for each in ast.walk(node.value) if isinstance(each, ast.Call))
            yield from ([(node, call.args[0])] for call in calls if call.args)


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


def _rewritten(source: str, row: Sequence[ast.expr], old: str, new: str) -> str | None:
    """The source with expressions made one; None where that does not make the same text."""
    text, values = _text(row)
    n_inside = old.count(SLOT)
    if text[len(old) :].strip(SLOT):
        return None
    given = source.encode()  # `ast` counts bytes
    lines = given.splitlines(keepends=True)
    offsets = [0, *accumulate(map(len, lines))]
    start = offsets[row[0].lineno - 1] + row[0].col_offset
    end = offsets[(row[-1].end_lineno or 0) - 1] + (row[-1].end_col_offset or 0)
    line = lines[row[0].lineno - 1]
    indent = line[: len(line) - len(line.lstrip())].decode()
    is_triple = len(row) == 1 and b'"""' in given[start:end]
    made = _literal(new, values[:n_inside], indent, is_triple)
    inserted = " + ".join([made, *values[n_inside:]])
    changed = given[:start].decode() + inserted + given[end:].decode()
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    return changed


def _literal(text: str, values: Sequence[str], indent: str, is_triple: bool) -> str:
    """A text as Python: between triple quotes, or a literal for each of its lines."""
    given = iter(values)
    if is_triple and '"""' not in text and "\\" not in text and not text.endswith('"'):
        return f'f"""{_braced(text, given)}"""'
    rows = []
    for line in re.findall(r"[^\n]*\n+|[^\n]+$", text):
        literal = json.dumps(line, ensure_ascii=False)
        rows.append(f"f{_braced(literal, given)}" if SLOT in line else literal)
    return f"\n{indent}    ".join(["(", *rows]) + f"\n{indent})"


def _braced(text: str, values: Iterator[str]) -> str:
    """What stands in an f-string for a text, with the next values for its SLOTs."""

    def written(found: re.Match[str]) -> str:
        return f"{{{next(values)}}}" if found[0] == SLOT else 2 * found[0]

    return re.sub(f"[{{}}{SLOT}]", written, text)
