"""Shrinks a random program that fails, statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from random_control_program import Made
from random_control_tree import Statement


def shrunk(made: Made, fails: Callable[[Made], str]) -> Made:
    """The smallest program found that still fails."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(made):
            if _still(smaller, fails):
                made, is_smaller = smaller, True
                break
    return made


def _still(made: Made, fails: Callable[[Made], str]) -> bool:
    try:
        return bool(fails(made))
    except (SyntaxError, RecursionError):
        return False


def _smaller(made: Made) -> Iterator[Made]:
    for called in _smaller_blocks(made.called):
        yield replace(made, called=called)
    for body in _smaller_blocks(made.body):
        yield replace(made, body=body)


def _smaller_blocks(block: list[Statement]) -> Iterator[list[Statement]]:
    for n in range(len(block) - 1, -1, -1):
        yield block[:n] + block[n + 1 :]
    for n, statement in enumerate(block):
        for inner in statement.blocks:
            yield block[:n] + inner + block[n + 1 :]
        for k in range(1, len(statement.blocks)):
            lines = statement.lines[:k] + statement.lines[k + 1 :]
            blocks = statement.blocks[:k] + statement.blocks[k + 1 :]
            yield [*block[:n], replace(statement, lines=lines, blocks=blocks), *block[n + 1 :]]
        if statement.after:
            yield [*block[:n], replace(statement, after=[]), *block[n + 1 :]]
        for k, inner in enumerate(statement.blocks):
            for less in _smaller_blocks(inner):
                blocks = [*statement.blocks[:k], less, *statement.blocks[k + 1 :]]
                yield [*block[:n], replace(statement, blocks=blocks), *block[n + 1 :]]
