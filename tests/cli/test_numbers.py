"""No option takes a number that is none."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from sgc.cli.main import cli
from sgc.cli.numbers import FiniteRange


def options(command: click.Command, path: str) -> Iterator[tuple[str, click.Parameter]]:
    yield from ((f"{path} {each.name}", each) for each in command.params)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from options(inner, f"{path} {name}")


RANGES = {
    name: each.type for name, each in options(cli, "sgc") if isinstance(each.type, click.FloatRange)
}


def test_there_are_such_options() -> None:
    assert len(RANGES) > 8
    assert {"sgc serve drain_s", "sgc serve ray_cpus", "sgc top interval"} <= RANGES.keys()


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("text", ["nan", "-nan", "inf", "-inf", "1e999"])
def test_neither_nan_nor_infinity_is_in_a_range(name: str, text: str) -> None:
    with pytest.raises(click.BadParameter):
        RANGES[name].convert(text, None, None)


def test_a_number_within_the_bounds_is() -> None:
    assert FiniteRange(0, 2).convert("0.5", None, None) == 0.5
